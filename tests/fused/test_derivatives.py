# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of expressions, against autograd through the same ones of torch's operators."""

import pytest
import torch
from torch_values import value_of

from codegen.fused.derivatives import gradients, tangent
from codegen.fused.functions import functions
from codegen.fused.reading import read
from codegen.fused.tree import Call, IsMissing, Name, Number, exchanged, names, text

KINKS = [-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 0.1, 1e-200, -1e-200]
KINKS += [float("inf"), -float("inf"), float("nan")]
BELOW_ONE = {"asin", "acos", "atanh"}
FROM_ONE = {"acosh"}
POSITIVE = {"log", "log2", "log10", "sqrt", "rsqrt", "log1p", "reciprocal"}
NUMBERS = {"softplus": {"beta": 1.5, "threshold": 2.0}}


def written(name):
    """A call of a function, with conditions where it takes some."""
    arguments = functions()[name].arguments
    if name in ("and", "or", "not"):
        return text(Call(name, tuple(Call("<", (Name(a), Number(1))) for a in arguments)))
    return text(Call(name, tuple(map(Name, arguments))))


def tensors_of(name, count=60):
    generator = torch.Generator().manual_seed(1)
    given = {}
    for argument in functions()[name].arguments:
        x = torch.randn(count, generator=generator, dtype=torch.float64) * 2
        if name in BELOW_ONE:
            x = x.sin() * 0.99
        elif name in FROM_ONE:
            x = x.abs() + 1.01
        elif name in POSITIVE:
            x = x.abs() + 0.01
        given[argument] = x
    if name == "**":
        given["x"] = given["x"].abs()
    if name == "clamp":
        given["high"] = given["low"].abs() + given["low"] + 0.5
    given.update(NUMBERS.get(name, {}))
    return given


def at_kinks(name):
    """Every pair of values at which a function may have a kink, each often enough for torch's
    vectors, which have other derivatives at NaN than what is left behind them."""
    arguments = functions()[name].arguments
    values = torch.tensor(KINKS, dtype=torch.float64)
    pairs = torch.cartesian_prod(*[values] * len(arguments)).view(-1, len(arguments))
    pairs = pairs.repeat_interleave(16, 0)
    given = dict(zip(arguments, pairs.unbind(1)))
    given.update(NUMBERS.get(name, {}))
    return given


def compare(tree, given, wanted):
    """The gradients and the tangent of an expression, and those that autograd finds."""
    leaves = {n: v.clone().requires_grad_() for n, v in given.items() if n in wanted}
    everything = {**given, **leaves}
    result = value_of(tree, everything)
    grad = torch.randn(result.shape, dtype=result.dtype)
    expected = torch.autograd.grad(result, list(leaves.values()), grad, allow_unused=True)
    found = gradients({"grad": tree}, wanted)
    for (name, _), value in zip(leaves.items(), expected, strict=True):
        own = found[name]
        if own is None:
            assert value is None or not value.any()
            continue
        torch.testing.assert_close(
            value_of(own, {**given, "grad": grad}),
            torch.zeros_like(result) if value is None else value,
            equal_nan=True,
            msg=lambda words, name=name, own=own: f"{name}: {text(own)}\n{words}",
        )
    tangents = {f"{n}_t": torch.randn_like(v) for n, v in leaves.items()}
    own = tangent(tree, {n: Name(f"{n}_t") for n in leaves})
    parts = [
        torch.zeros_like(result) if value is None else value / grad * tangents[f"{name}_t"]
        for (name, _), value in zip(leaves.items(), expected)
    ]
    wanted_tangent = sum(parts)
    if own is not None:
        found_tangent = value_of(own, {**given, **tangents})
        torch.testing.assert_close(found_tangent, wanted_tangent, equal_nan=True)


DIFFERENTIABLE = [n for n, f in functions().items() if f.formulas and not f.is_of_rows]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_the_formulas_of_a_function_are_torchs(name):
    wanted = list(functions()[name].formulas)
    tree = read(written(name), dict.fromkeys(functions()[name].arguments, "tensor"))
    compare(tree, tensors_of(name), wanted)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_the_formulas_of_a_function_are_torchs_at_kinks(name):
    wanted = list(functions()[name].formulas)
    tree = read(written(name), dict.fromkeys(functions()[name].arguments, "tensor"))
    compare(tree, at_kinks(name), wanted)


@pytest.mark.parametrize(
    "name",
    [
        n for n, f in functions().items()
        if not f.formulas and not f.is_of_rows and f.kind != "given"
    ],
)  # fmt: skip
def test_a_function_without_formulas_has_no_gradient(name):
    arguments = functions()[name].arguments
    tree = read(written(name), dict.fromkeys(arguments, "tensor"))
    assert gradients({"grad": tree}, arguments) == dict.fromkeys(arguments)
    given = {a: torch.randn(3, requires_grad=True) for a in arguments}
    result = value_of(tree, given)
    if result.requires_grad:
        assert not torch.autograd.grad(result.sum(), given["x"])[0].any()


EXPRESSIONS = [
    "gate * sigmoid(gate) * up",
    "x * x * x - 2 * x",
    "sqrt(x * x + y * y + 1)",
    "x if x > y else y * y",
    "exp(-(x - y) ** 2 / 2)",
    "tanh(x) ** 3 / (1 + y ** 2)",
    "relu(x) * relu(y) + clamp(x, -1, 1)",
    "log1p(exp(-abs(x))) + maximum(x, 0)",
    "gelu(x * y) - gelu_tanh(x * y)",
    "lerp(x, y, sigmoid(x))",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_first_and_second_derivatives_of_expressions(expression):
    known = dict.fromkeys(("x", "y", "gate", "up"), "tensor")
    tree = read(expression, known)
    used = names(tree)
    given = {n: torch.randn(40, dtype=torch.float64) for n in used}
    compare(tree, given, used)
    for first in gradients({"grad": tree}, used).values():
        if first is not None:
            more = {**given, "grad": torch.randn(40, dtype=torch.float64)}
            compare_named(first, more, names(first))


def compare_named(tree, given, wanted):
    """The same, of an expression in which `grad` is an argument."""
    leaves = {n: given[n].clone().requires_grad_() for n in wanted}
    result = value_of(tree, {**given, **leaves})
    grad = torch.randn_like(result)
    expected = torch.autograd.grad(result, list(leaves.values()), grad, allow_unused=True)
    found = gradients({"gradient": tree}, wanted)
    for name, value in zip(leaves, expected, strict=True):
        own = found[name]
        nothing = torch.zeros_like(result)
        mine = nothing if own is None else value_of(own, {**given, "gradient": grad})
        torch.testing.assert_close(mine, nothing if value is None else value)


def test_what_is_written_is_read_again():
    for expression in (*EXPRESSIONS, "-(x ** 2)", "(-x) ** 2", "x - (y - 1)", "x ** y ** 2",
                       "(x ** y) ** 2", "not (x < y and y < 1) and x == y", "x / (y * 2) / 3",
                       "(x if x < y else y) * 2", "x if x < 0 else y if y < 0 else 0"):  # fmt: skip
        known = dict.fromkeys(("x", "y", "gate", "up"), "tensor")
        tree = read(expression, known)
        assert read(text(tree), known) == tree
        for grad in gradients({"grad": tree}, names(tree)).values():
            if grad is not None:
                assert read(text(grad), {**known, "grad": "tensor"}) == grad


def test_factors_of_one_and_constants_are_folded():
    tree = read("x ** 2", {"x": "tensor"})
    assert text(gradients({"grad": tree}, ["x"])["x"]) == "grad * (2 * x)"
    assert gradients({"grad": Number(3)}, ["x"]) == {"x": None}


@pytest.mark.parametrize(
    "expression", ["softplus(x)", "softplus(x, 2)", "x ** y", "0 ** x + x * y"]
)
def test_second_derivatives_where_a_branch_is_infinite(expression):
    """The branch that is not chosen is multiplied by no infinity."""
    x = torch.tensor([100.0, 1000.0, 0.0, 0.5], dtype=torch.float64)
    given = {"x": x, "y": torch.tensor([2.0, 3.0, 2.0, 0.5], dtype=torch.float64)}
    tree = read(expression, dict.fromkeys("xy", "tensor"))
    used = names(tree)
    for of in used:
        first = gradients({"grad": tree}, used)[of]
        found = gradients({"again": first}, ["grad"])["grad"]
        leaves = {n: v.clone().requires_grad_() for n, v in given.items()}
        grad = torch.ones(4, dtype=torch.float64, requires_grad=True)
        (torchs,) = torch.autograd.grad(
            value_of(tree, leaves), leaves[of], grad, create_graph=True, allow_unused=True
        )
        (expected,) = torch.autograd.grad(torchs.sum(), grad)
        own = value_of(found, {**given, "again": torch.ones_like(x), "grad": torch.ones_like(x)})
        torch.testing.assert_close(own.expand(4), expected)


def test_several_gradients_are_added_where_autograd_adds_them():
    """And not after each was multiplied by what may be infinite."""
    kinds = dict.fromkeys(("x", "w", "c", "g"), "tensor")
    first = gradients({"g": read("x * w * c", kinds)}, ["x", "w"])
    (found,) = gradients({"h_x": first["x"], "h_w": first["w"]}, ["g"]).values()
    given = {"x": 1.0, "w": 1.0, "c": float("inf"), "g": 1.0, "h_x": 1.0, "h_w": -0.5}
    given = {name: torch.tensor([value]) for name, value in given.items()}

    def without(*missing):
        known = {IsMissing(h): Number(h in missing) for h in ("h_x", "h_w")}
        values = {n: float("nan") * value if n in missing else value for n, value in given.items()}
        return value_of(exchanged(found, known), values).item()

    assert without() == float("inf")
    assert without("h_x") == -float("inf")
    assert without("h_x", "h_w") == 0


@pytest.mark.parametrize("count", [2, 5])
def test_conditions_of_missing_gradients_are_said_once(count):
    kinds = dict.fromkeys(("x", "g"), "tensor")
    results = {f"h{i}": read(f"exp(x) * {i + 2}", kinds) for i in range(count)}
    (found,) = gradients(results, ["x"]).values()
    for i in range(count):
        assert text(found).count(f"h{i} is") <= 2
