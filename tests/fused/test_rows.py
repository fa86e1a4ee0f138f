# SPDX-License-Identifier: BSD-3-Clause
"""Expressions of rows: what they are made of, and their derivatives against autograd's."""

import pytest
import torch
from torch_values import value_of

from codegen.fused.derivatives import Arguments, gradients, tangent
from codegen.fused.extents import Extent, extent
from codegen.fused.functions import computed_as, functions, pieces
from codegen.fused.reading import Mistake, names_of_rows, read
from codegen.fused.rows import of_primitives
from codegen.fused.sums import sum_of
from codegen.fused.tree import Call, Name, OfRow, Slice, in_order, names, text

KINDS = {**dict.fromkeys("xyzwsi", "tensor"), "n": "int"}
OF_ROWS = frozenset({"s", "i"})
EXPRESSIONS = {
    "x * rsqrt(mean(x ** 2) + 1e-6) * w": Extent.ELEMENT,
    "exp(x - detach(amax(x))) / sum(exp(x - detach(amax(x))))": Extent.ELEMENT,
    "mean(log_softmax(x))": Extent.ROW,
    "sum(log_softmax(x) * w) + sum(log_softmax(x) * s[..., None])": Extent.ROW,
    "logsumexp(x * y) * sum(softmax(x) * y) * mean(x / amax(abs(x)))": Extent.ROW,
    "cat(x, arange(n) * s[..., None])": Extent.ELEMENT,
    "(x - mean(x)) * rsqrt(var(x, 0) + 1e-5) * w + y": Extent.ELEMENT,
    "logsumexp(x * y) - x[i]": Extent.ROW,
    "x / maximum(sqrt(sum(x ** 2)), 0.5)": Extent.ELEMENT,
    "x * s[..., None] - mean(y) * amax(x * w)": Extent.ELEMENT,
    "prod(x) * s[..., None] + prod(1 - x * y)": Extent.ROW,
    "mean(tanh(x) * s[..., None]) * sum(y)": Extent.ROW,
    "sum((x - mean(y)) ** 2) / n + var(x * y)": Extent.ROW,
    "amin(x) + logsumexp(x + s[..., None] * y)": Extent.ROW,
    "(x * y)[i] + mean(x if x > s[..., None] else y * y)": Extent.ROW,
    "x * (0 if s[..., None] < 0 else mean(y)) + expand_as(sum(x * w), x)": Extent.ELEMENT,
    "sum(x if arange(n) < 3 else 0) * y": Extent.ELEMENT,
    "softmax(x * y) * w - sum(log_softmax(x + w) * y)": Extent.ELEMENT,
    "exp(x * y - logsumexp(x * y)) + exp(x - logsumexp(y))": Extent.ELEMENT,
    "silu(z[:n // 2]) * z[n // 2:] + x": Extent.ELEMENT,
    "cat(z[:n // 2] * x - z[n // 2:], 0, sum(z[:n // 2]) * y)": Extent.ELEMENT,
    "cat(z[n // 2:] * s[..., None], softmax(z[:n // 2] * x))": Extent.ELEMENT,
    "z[n // 2:][i] * logsumexp(z[:n // 2])": Extent.ROW,
}


def tensors():
    torch.manual_seed(7)
    full = {name: torch.randn(4, 6, dtype=torch.float64) for name in "xy"}
    full["z"] = torch.randn(4, 12, dtype=torch.float64)
    row = {"s": torch.randn(4, dtype=torch.float64), "i": torch.tensor([0, 5, 2, 2])}
    return {**full, "w": torch.randn(4, 6, dtype=torch.float64), **row, "n": 6}


def written(expression):
    return read(expression, KINDS, of_rows=OF_ROWS)


def gradients_of(tree, given):
    """The gradients of an expression, of this language and of autograd."""
    wanted = [name for name in names(tree) if name in "xyzws" or name.startswith("g")]
    kinds = {**KINDS, **dict.fromkeys(given, "tensor"), "n": "int", "grad": "tensor"}
    leaves = {name: given[name].clone().requires_grad_() for name in wanted}
    result = value_of(tree, {**given, **leaves})
    of_rows = OF_ROWS | {n for n, value in given.items() if n.startswith("g") and value.dim() == 1}
    if extent(tree, kinds) is Extent.ROW:
        of_rows |= {"grad"}
        result = result.squeeze(-1) if result.shape[-1] == 1 else result[..., 0]
    grad = torch.randn_like(result)
    expected = [None] * len(wanted)
    if result.requires_grad:
        expected = torch.autograd.grad(result, list(leaves.values()), grad, allow_unused=True)
    found = gradients({"grad": tree}, wanted, Arguments(kinds, of_rows))
    return {n: (found[n], value) for n, value in zip(wanted, expected)}, grad


def compare(found, given):
    for name, (own, expected) in found.items():
        value = torch.zeros_like(given[name]) if own is None else value_of(own, given)
        if name in "s" or given[name].dim() == 1:
            value = value if value.dim() == 1 else value[..., 0]
        expected = torch.zeros_like(given[name]) if expected is None else expected
        torch.testing.assert_close(
            value.expand(expected.shape), expected, msg=lambda m: f"{name}: {text(own)}\n{m}"
        )


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_is_read_and_has_an_extent(expression):
    tree = written(expression)
    assert read(text(tree), KINDS, of_rows=OF_ROWS) == tree
    assert extent(tree, KINDS) is EXPRESSIONS[expression]
    assert names_of_rows(expression) == OF_ROWS & {*names(tree)}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_primitives_are_worth_the_same(expression):
    tree, given = written(expression), tensors()
    simple = of_primitives(tree, KINDS)
    for part in in_order(simple):
        if isinstance(part, Call):
            function = functions()[part.function]
            assert not function.equals
            if function.kind == "element":
                assert isinstance(part.arguments[0], (Name, Slice))
    shape = (4, 6 * len(pieces(tree)))
    both = (value_of(one, given).expand(shape) for one in (simple, tree))
    torch.testing.assert_close(*both)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_first_and_second_gradients_are_autograds(expression):
    tree, given = written(expression), tensors()
    found, grad = gradients_of(tree, given)
    assert found
    given["grad"] = grad
    compare(found, given)
    for name, (first, _) in found.items():
        if first is not None:
            again = {("g" if n == "grad" else n): v for n, v in given.items()}
            renamed = read(
                text(first).replace("grad", "g"),
                {**KINDS, "g": "tensor"},
                of_rows=OF_ROWS | ({"g"} if grad.dim() == 1 else set()),
            )
            if any(n in "xyzws" or n == "g" for n in names(renamed)):
                seconds, outer = gradients_of(renamed, again)
                compare(seconds, {**again, "grad": outer})


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_tangent_is_autograds(expression):
    tree, given = written(expression), tensors()
    wanted = [name for name in names(tree) if name in "xyzws"]
    directions = {f"{name}_t": torch.randn_like(given[name]) for name in wanted}
    kinds = {**KINDS, **dict.fromkeys(directions, "tensor")}
    of_rows = OF_ROWS | {"s_t"}
    rows = Arguments(kinds, of_rows)
    own = tangent(tree, {name: rows.named(f"{name}_t") for name in wanted}, rows)

    def value(*leaves):
        return value_of(tree, {**given, **dict(zip(wanted, leaves))})

    _, expected = torch.func.jvp(
        value, tuple(given[n] for n in wanted), tuple(directions[f"{n}_t"] for n in wanted)
    )
    found = value_of(own, {**given, **directions})
    is_row = extent(tree, KINDS) is Extent.ROW
    torch.testing.assert_close(
        found[..., :1] if is_row else found, expected[..., :1] if is_row else expected
    )


@pytest.mark.parametrize(
    "name", [n for n, f in functions().items() if f.is_reduction and f.formulas]
)
def test_the_formula_of_a_reduction_is_torchs(name):
    """Also where several elements are the largest, or the least."""
    function = functions()[name]
    arguments = [OfRow(a) if a == "index" else Name(a) for a in function.arguments]
    arguments[1:] = [
        a if isinstance(a, OfRow) else d
        for a, d in zip(arguments[1:], function.defaults or arguments[1:])
    ]
    tree = Call(name, tuple(arguments))
    kinds = {"x": "tensor", "index": "tensor", "grad": "tensor", "n": "int"}
    x = torch.tensor([[1.0, 3, 3, -2, -2], [0, 0, 0, 0, 0], [4, 1, -7, 2, 5]]).double()
    given = {"x": x, "index": torch.tensor([1, 0, 4]), "n": 5, "grad": torch.randn(3).double()}
    leaf = x.clone().requires_grad_()
    value_of(tree, {**given, "x": leaf}).squeeze(-1).backward(given["grad"])
    found = gradients({"grad": tree}, ["x"], Arguments(kinds, frozenset({"index", "grad"})))["x"]
    torch.testing.assert_close(value_of(found, given), leaf.grad)


def test_what_is_computed_as_another_expression_equals_it_at_infinities():
    values = torch.tensor([0.0, 1, -1, float("inf"), -float("inf"), float("nan"), 1e300, -1e300])
    x = torch.cartesian_prod(values, values, values).double()
    for expression, equal in computed_as().items():
        both = (value_of(written(one), {"x": x}) for one in (expression, equal))
        torch.testing.assert_close(*both, equal_nan=True)


SUMS = {
    "sum(x * s[..., None] * y)": "s[..., None] * sum(x * y)",
    "sum(-x)": "-sum(x)",
    "sum(x * mean(y) / s[..., None] + y * 2)": "mean(y) * sum(x) / s[..., None] + 2 * sum(y)",
    "sum(x + y)": "sum(x + y)",
    "sum(x * y - x)": "sum(x * y - x)",
    "sum((x - mean(x)) * s[..., None])": "s[..., None] * sum(x - mean(x))",
    "sum(x if s[..., None] > 0 else 0)": "sum(x) if s[..., None] > 0 else 0",
    "sum(x if y > 0 else 0)": "sum(x if y > 0 else 0)",
    "sum(-(x * 2 + y) / s[..., None])": "-((2 * sum(x) + sum(y)) / s[..., None])",
}


@pytest.mark.parametrize("expression", SUMS)
def test_what_a_row_has_one_of_is_taken_out_of_sums(expression):
    """But for differences from the mean, whose sum is small beside those of both."""
    (row,) = written(expression).arguments
    found, given = sum_of(row, KINDS), tensors()
    assert text(found) == SUMS[expression]
    values = (value_of(one, given)[..., :1] for one in (found, written(expression)))
    torch.testing.assert_close(*values)


MISTAKES = {
    "sum(sum(x))": (4, "'sum(x)' is one number, and no row of them"),
    "x[0]": (2, "an index is the name of a tensor"),
    "(x * 2)[..., None]": (0, "'[..., None]' stands behind the name of a tensor"),
    "x[s[..., None] + 1]": (2, "an index is the name of a tensor"),
    "s[i]": (0, "'s' is one number, and no row of them"),
    "arange(3) * x": (0, "a row has n elements"),
    "var(x, s)": (0, "'correction' is one number for all rows"),
    "gather(x, i)": (0, "'gather' is no function of an expression"),
    "x[:3]": (0, "'x[:3]' is no slice: one of equal parts is"),
    "y + x[1:]": (4, "'x[1:]' is no slice: one of equal parts is"),
    "x[::2]": (0, "'x[::2]' is no slice: one of equal parts is"),
    "x[n // 4:3 * n // 4]": (0, "'x[n // 4:3 * n // 4]' is no slice: one of equal parts is"),
    "x[n // 2:n // 2]": (0, "'x[n // 2:n // 2]' is no slice: one of equal parts is"),
    "(x * y)[:n // 2]": (0, "'x * y' has no slices: an argument that has rows has"),
    "n[:n // 2]": (0, "'n' has no slices: an argument that has rows has"),
    "cat(x)": (0, "'cat(x)' joins rows, at least two of them"),
    "cat(0, 1)": (0, "'cat(0, 1)' joins rows, at least two of them"),
    "cat(x, sum(x))": (7, "'sum(x)' is one number, and no row of them"),
    "to(x)": (0, "'to(x)' is no cast: 'to(x, int8)' is one"),
    "to(x, bool)": (6, "results are cast to no 'bool'"),
    "to(x, torch.int8)": (6, "results are cast to no 'torch.int8'"),
    "to(x * 2, n)": (10, "'n' is no Tensor that is always given"),
    "to(x[i], i)": (9, "'i' is an index, and has integers"),
    "to(x * 2, w)": (10, "nothing that is cast to the dtype of 'w' is computed of it"),
}


@pytest.mark.parametrize("expression", MISTAKES)
def test_a_mistake_says_where_it_is(expression):
    offset, words = MISTAKES[expression]
    with pytest.raises(Mistake) as caught:
        written(expression)
    assert (caught.value.offset, caught.value.message[: len(words)]) == (offset, words)
