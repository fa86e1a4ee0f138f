# SPDX-License-Identifier: BSD-3-Clause
"""Overloads that take the same arguments, each form in each transform, beside PyTorch's own.

A form is never traced, batched, compiled or differentiated by that of another overload.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from library_build import build_and_load
from torch._library._out_variant import to_out_variant

from torchext.compat import version

Function = Callable[[torch.Tensor], object]

EXPECTED: dict[str, Function] = {
    **{
        f"{base}.{overload}": functools.partial(F.gelu, approximate=approximate)
        for base in ("gelu", "copied", "ruled", "parted", "grown", "inner")
        for overload, approximate in (("exact", "none"), ("tanh", "tanh"))
    },
    "wave.sin": torch.sin,
    "wave.cos": torch.cos,
    "wave.tanh": torch.tanh,
    "scale.double": lambda x: x * 2.0,
    "scale.triple": lambda x: x * 3.0,
    "parts.floor": lambda x: (torch.floor(x), x - torch.floor(x)),
    "parts.ceil": lambda x: (torch.ceil(x), x - torch.ceil(x)),
    "lift.ceil": torch.ceil,
    "made_like.sevens": lambda x: torch.full_like(x, 7),
    "made_like.eights": lambda x: torch.full_like(x, 8),
    "answers.answer": lambda x: torch.full_like(x, 42),
}
WITHOUT_FORMULA = ("parts", "grown", "inner", "made_like", "answers")
# Forms without a functional one.
ALONE = ("gelu_.answer", "lift_.answer", "inner_.exact", "gelu.answer_out", "inner.exact_out")


@pytest.fixture(scope="module")
def ops():
    return build_and_load(Path(__file__).parent / "overloadtest", "overloadtest_library.so")


def forms(ops) -> dict[str, tuple[str, str, torch._ops.OpOverload]]:
    """Every form of the library that EXPECTED has: what it computes, and how it is called."""
    found = {}
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("overloadtest::"):
            continue
        base, _, overload = name.removeprefix("overloadtest::").partition(".")
        kind = "in-place" if base.endswith("_") else "out" if overload.endswith("_out") else ""
        computes = f"{base.rstrip('_')}.{overload.removesuffix('_out')}"
        if overload.endswith("_functional"):
            continue  # what traced calls become
        computes = "answers.answer" if "answer" in overload else computes
        if computes in EXPECTED:
            op = getattr(getattr(ops, base), overload)
            found[f"{base}.{overload}"] = (computes, kind or "functional", op)
    return found


def call(op, kind: str, count: int) -> Function:
    """A function of one tensor that calls a form, and leaves its argument alone."""

    def in_place(x):
        y = x * 1
        assert op(y) is y
        return y

    def out(x):
        outs = [torch.zeros_like(x) for _ in range(count)]
        names = ["out"] if count == 1 else [f"out{i}" for i in range(count)]
        op(x, **dict(zip(names, outs)))
        return outs[0] if count == 1 else tuple(outs)

    return {"functional": op, "in-place": in_place, "out": out}[kind]


def families(ops, served) -> dict[str, tuple[Function, Function]]:
    """For each base name all of its forms as one function, and what they compute."""
    found: dict[str, dict[str, tuple[Function, Function]]] = {}
    for name, (computes, kind, op) in forms(ops).items():
        if served(name, kind):
            count = 2 if computes.startswith("parts.") else 1
            family = found.setdefault(computes.partition(".")[0], {})
            family[name] = call(op, kind, count), EXPECTED[computes]
    return {base: (_together(f, 0), _together(f, 1)) for base, f in found.items()}


def _together(family: dict[str, tuple[Function, Function]], which: int) -> Function:
    return lambda x: {name: functions[which](x) for name, functions in family.items()}


def eager(function: Function, x: torch.Tensor) -> object:
    return function(x)


def functionalized(function: Function, x: torch.Tensor) -> object:
    return torch.func.functionalize(function)(x)


def traced(function: Function, x: torch.Tensor) -> object:
    """The graph holds no form that writes."""
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(torch.func.functionalize(function))(x)
    called = [n.target for n in graph.graph.nodes if isinstance(n.target, torch._ops.OpOverload)]
    written = [t for t in called if t.namespace == "overloadtest" and t._schema.is_mutable]
    assert written == []
    return graph(x)


def exported(function: Function, x: torch.Tensor) -> object:
    class Module(torch.nn.Module):
        def forward(self, x):
            return function(x)

    return torch.export.export(Module(), (x,)).run_decompositions().module()(x)


def compiled(backend: str, dynamic: bool) -> Callable[[Function, torch.Tensor], object]:
    def run(function: Function, x: torch.Tensor) -> object:
        torch._dynamo.reset()
        return torch.compile(function, backend=backend, dynamic=dynamic, fullgraph=True)(x)

    return run


def batched(function: Function, x: torch.Tensor) -> object:
    return torch.vmap(function)(x)


def batched_elsewhere(function: Function, x: torch.Tensor) -> object:
    return torch.vmap(torch.vmap(function), in_dims=1, out_dims=1)(x)


def batched_and_functionalized(function: Function, x: torch.Tensor) -> object:
    return torch.func.functionalize(torch.vmap(function))(x)


TRANSFORMS = {
    "eager": eager,
    "functionalize": functionalized,
    "make_fx": traced,
    "export": exported,
    "aot_eager": compiled("aot_eager", dynamic=False),
    "inductor": compiled("inductor", dynamic=False),
    "inductor, dynamic": compiled("inductor", dynamic=True),
}
BATCHES = {
    "vmap": batched,
    "nested vmap": batched_elsewhere,
    "functionalize of vmap": batched_and_functionalized,
}


def inputs() -> torch.Tensor:
    return torch.linspace(-2.3, 2.6, 12).view(3, 4)


def check(ops, transform: Callable[[Function, torch.Tensor], object], served) -> None:
    """All forms that are served, in one transform, beside what they compute in it."""
    x, differing = inputs(), {}
    for base, (actual, expected) in families(ops, served).items():
        try:
            torch.testing.assert_close(transform(actual, x), transform(expected, x))
        except Exception as error:  # all of them, in one message
            differing[base] = f"{type(error).__name__}: {error}"
    assert differing == {}


def test_all_forms_are_looked_at(ops):
    found = forms(ops)
    kinds = [kind for _, kind, _ in found.values()]
    assert {computes for computes, _, _ in found.values()} == EXPECTED.keys()
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "functional": 21, "in-place": 16, "out": 19,
    }  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_every_form_computes_what_its_overload_does(ops, transform):
    check(ops, TRANSFORMS[transform], lambda name, kind: True)


@pytest.mark.parametrize("transform", BATCHES)
def test_every_form_with_a_functional_one_is_batched_by_it(ops, transform):
    check(ops, BATCHES[transform], lambda name, kind: name not in ALONE)


def sums(function: Function) -> Function:
    """The sum of all results, each with another weight."""
    return lambda x: sum(i * y.sum() for i, y in enumerate(function(x).values(), start=1))


def gradient(function: Function, x: torch.Tensor) -> torch.Tensor:
    x = x.clone().requires_grad_()
    return torch.autograd.grad(sums(function)(x), x)[0]


def gradient_of_compiled(backend: str) -> Callable[[Function, torch.Tensor], torch.Tensor]:
    def run(function: Function, x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.reset()
        return gradient(torch.compile(function, backend=backend, fullgraph=True), x)

    return run


def tangent(function: Function, x: torch.Tensor) -> object:
    return torch.func.jvp(function, (x,), (torch.full_like(x, 0.5),))[1]


DERIVATIVES = {
    "grad": gradient,
    "torch.func.grad": lambda function, x: torch.func.grad(sums(function))(x),
    "aot_eager": gradient_of_compiled("aot_eager"),
    "inductor": gradient_of_compiled("inductor"),
    "jvp": tangent,
    "jacrev": lambda function, x: torch.func.jacrev(function)(x),
    "vmap of grad": lambda function, x: torch.vmap(torch.func.grad(sums(function)))(x),
}


@pytest.mark.parametrize("transform", DERIVATIVES)
def test_every_form_differentiates_as_its_overload_does(ops, transform):
    def served(name, kind):
        return kind != "out" and name not in ALONE and not name.startswith(WITHOUT_FORMULA)

    check(ops, DERIVATIVES[transform], served)


@pytest.mark.parametrize("name", ["gelu_.answer", "lift_.answer"])
def test_an_in_place_form_has_no_formula_of_another_overload(ops, name):
    _, kind, op = forms(ops)[name]
    x, base = inputs().requires_grad_(), name.partition(".")[0]
    with pytest.raises(RuntimeError, match=f"overloadtest::{base} is not implemented"):
        call(op, kind, 1)(x).sum().backward()
    with pytest.raises(RuntimeError, match=f"overloadtest::{base}: .* is not implemented"):
        torch.func.jvp(call(op, kind, 1), (inputs(),), (inputs(),))


def test_out_forms_of_functions_that_make_tensors_have_the_options_of_their_own(ops):
    for overload, value in (("sevens", 7), ("eights", 8)):
        op = getattr(ops.made, f"{overload}_out")
        for run in (
            eager,
            functionalized,
            compiled("aot_eager", False),
            compiled("inductor", True),
        ):
            for dtype in (torch.int64, torch.float64):
                out = torch.zeros(2, 3, dtype=dtype)
                run(lambda x, op=op: op(x.shape, out=x).clone(), out)
                assert (out.dtype, out.tolist()) == (dtype, [[value] * 3] * 2)


def test_vmap_runs_an_out_form_without_a_functional_one_on_each_example(ops):
    x = inputs()
    out = torch.vmap(lambda x, out: ops.gelu.answer_out(x, out=out))(x, torch.empty_like(x))
    torch.testing.assert_close(out, torch.full_like(x, 42.0))


@pytest.mark.skipif(version() < (2, 13), reason="torch 2.11 has no tag for out= forms")
def test_inductor_finds_no_out_form_of_another_overload(ops):
    for name, (_, kind, op) in forms(ops).items():
        found = to_out_variant(op) if kind == "functional" else None
        assert found is None or found.name() == f"overloadtest::{name}_out"


def test_what_is_written_beside_the_result_is_that_of_the_overload(ops):
    x = inputs()
    for overload, expected in (("sum", x.sum()), ("max", x.max())):
        op, seen = getattr(ops.track, overload), torch.zeros(2)
        torch.testing.assert_close(op(x, seen), expected)
        result, copied = getattr(ops.track, f"{overload}_functional")(x, seen)
        out = torch.zeros(())
        getattr(ops.track, f"{overload}_out")(x, seen, out=out)
        torch.testing.assert_close(
            (result, out, copied), (expected, expected, torch.full((2,), 2.0))
        )
        assert seen.tolist() == [2, 2]
        for backend in ("aot_eager", "inductor"):
            torch._dynamo.reset()
            function = torch.compile(lambda x, seen, op=op: op(x, seen), backend=backend)
            torch.testing.assert_close(function(x, seen), expected)
        assert seen.tolist() == [4, 4]


def test_check_compares_each_form_with_that_of_its_overload(ops, capsys):
    from torchext.testing import check

    report = check("overloadtest", checks=["forms", "vmap", "autocast"])  # raises where one fails
    assert report.passed and not (report.made_samples or report.others)
