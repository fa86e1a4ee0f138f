# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that return what their schema says is new: an argument, its memory, one tensor twice."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
import torch
from library_build import build_and_load

from torchext.testing import check
from torchext.testing.report import State


@pytest.fixture(scope="session")
def ops():
    """The operators of returnedtest/."""
    return build_and_load(Path(__file__).parent / "returnedtest", "returnedtest_library.so")


ARGUMENT = "the kernel returned one of its arguments, expected a new tensor"
SHARED = "the kernel returned a tensor that shares memory with one of its arguments, expected a new"
TWICE = "the kernel returned one tensor as two results, expected new tensors"
COMMON = "the kernel returned two results that share memory, expected new tensors"
WHAT = {"argument": ARGUMENT, "view": SHARED}
CHECKED = ["plain", "ignored", "formula"]
SHAPES = ["one", "two", "list", "beside"]


def x_of(requires_grad: bool = True) -> torch.Tensor:
    return torch.arange(1.0, 4.0).requires_grad_(requires_grad)


def called(ops, kind: str, shape: str, how: str, x: torch.Tensor):
    """What an operator returns that is not new where `how` says so."""
    op = getattr(ops, f"{kind}_{shape}")
    if shape == "list":
        return op([x, x * 1], None, how)[-1]
    if shape == "beside":
        return op(x, torch.zeros(3), how)[1]
    found = op(x, how)
    return found if shape == "one" else found[1]


MODES = {
    "recording": (torch.enable_grad, True),
    "nothing_to_record": (torch.enable_grad, False),
    "no_grad": (torch.no_grad, True),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", WHAT)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", CHECKED)
def test_what_is_not_new_is_refused_by_name(kind, shape, how, mode, ops) -> None:
    guard, requires_grad = MODES[mode]
    x = x_of(requires_grad)
    with guard(), pytest.raises(RuntimeError, match=f"returnedtest::{kind}_{shape}: {WHAT[how]}"):
        called(ops, kind, shape, how, x)
    assert x.is_leaf and x.grad_fn is None
    assert called(ops, kind, shape, "new", x).equal(x)


@pytest.mark.parametrize("kind", CHECKED)
def test_a_parameter_that_is_returned_is_freed(kind, ops) -> None:
    parameter = torch.nn.Parameter(x_of())
    reference = weakref.ref(parameter)
    with pytest.raises(RuntimeError, match=ARGUMENT):
        called(ops, kind, "one", "argument", parameter)
    del parameter
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("shape", ["two", "list"])
@pytest.mark.parametrize("kind", CHECKED)
def test_one_tensor_as_two_results_is_refused(kind, shape, ops) -> None:
    with pytest.raises(RuntimeError, match=f"returnedtest::{kind}_{shape}: {TWICE}"):
        called(ops, kind, shape, "twice", x_of())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["alias", "overlapping"])
@pytest.mark.parametrize("shape", ["two", "list"])
@pytest.mark.parametrize("kind", CHECKED)
def test_two_results_with_elements_in_common_are_refused(kind, shape, how, mode, ops) -> None:
    """Inductor computes `a + 1` in the memory of `a`, and `b * 3` behind it."""
    guard, requires_grad = MODES[mode]
    with guard(), pytest.raises(RuntimeError, match=f"{kind}_{shape}: {COMMON}"):
        called(ops, kind, shape, how, x_of(requires_grad))


@pytest.mark.parametrize("shape", ["two", "list"])
@pytest.mark.parametrize("kind", CHECKED)
def test_parts_of_one_memory_are_two_results(kind, shape, ops) -> None:
    found = called(ops, kind, shape, "halves", x_of())
    assert found.reshape(-1).equal(x_of())
    if shape == "list":
        xs = [x_of() for _ in range(200)]
        assert len(getattr(ops, f"{kind}_list")(xs, None, "halves")) == 200
        with pytest.raises(RuntimeError, match=COMMON):
            getattr(ops, f"{kind}_list")(xs, None, "overlapping")


@pytest.mark.parametrize("shape", ["two", "list"])
@pytest.mark.parametrize("kind", CHECKED)
def test_tensors_without_elements_may_be_one(kind, shape, ops) -> None:
    assert called(ops, kind, shape, "twice", torch.empty(0)).numel() == 0


@pytest.mark.parametrize("kind", CHECKED)
def test_the_tensor_of_an_optional_argument_is_an_argument(kind, ops) -> None:
    with pytest.raises(RuntimeError, match=ARGUMENT):
        getattr(ops, f"{kind}_list")([x_of(), x_of()], torch.ones(3), "optional")


@pytest.mark.parametrize("kind", CHECKED)
def test_long_lists_are_compared(kind, ops) -> None:
    op, xs = getattr(ops, f"{kind}_list"), [x_of() for _ in range(200)]
    assert len(op(xs, None, "new")) == 200
    for how, error in (("argument", ARGUMENT), ("view", SHARED), ("twice", TWICE)):
        with pytest.raises(RuntimeError, match=error):
            op(xs, None, how)


@pytest.mark.parametrize("kind", CHECKED)
def test_what_is_written_to_is_no_new_result(kind, ops) -> None:
    out = torch.zeros(3)
    with pytest.raises(RuntimeError, match=f"returnedtest::{kind}_beside: {ARGUMENT}"):
        getattr(ops, f"{kind}_beside")(x_of(), out, "written")
    assert out.grad_fn is None or kind == "plain"  # it was written to with x before
    if kind != "ignored":
        with pytest.raises(RuntimeError, match=f"returnedtest::{kind}_aside: {ARGUMENT}"):
            getattr(ops, f"{kind}_aside")(x_of(), torch.zeros(3), "written")


# -- what only a kernel for a device returns, and no traced call sees


@pytest.fixture
def _only_warned_by_aot_autograd():
    """AOTAutograd looks at results before autograd does: a warning, an error where CI is set."""
    with torch._functorch.config.patch(error_on_custom_op_aliasing=False):
        yield


@pytest.mark.usefixtures("_only_warned_by_aot_autograd")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("how", WHAT)
@pytest.mark.parametrize("kind", CHECKED)
def test_a_compiled_call_refuses_it_too(kind, how, backend, ops) -> None:
    """Inductor computes further results in the memory of what it takes for its own."""
    torch._dynamo.reset()
    op = getattr(ops, f"{kind}_hidden")
    compiled = torch.compile(lambda x: op(x, how) + 1, backend=backend, fullgraph=True)
    x = x_of(requires_grad=False)
    with pytest.raises(RuntimeError, match=f"returnedtest::{kind}_hidden: {WHAT[how]}"):
        compiled(x)
    assert x.equal(x_of(requires_grad=False))


TRANSFORMS = {
    "vmap": lambda f, x: torch.vmap(f)(torch.stack([x, x])),
    "grad": lambda f, x: torch.func.grad(lambda x: f(x).sum())(x),
    "vmap_grad": lambda f, x: torch.vmap(torch.func.grad(lambda x: f(x).sum()))(x.repeat(2, 1)),
    "functionalize": lambda f, x: torch.func.functionalize(f)(x),
    "export": lambda f, x: torch.export.export(_Module(f), (x,)).module()(x),
    "checkpoint": lambda f, x: torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False),
    "script": lambda f, x: torch.jit.trace(f, x),
    "compiled_backward": lambda f, x: f(x * 2),
}


class _Module(torch.nn.Module):
    def __init__(self, f) -> None:
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", CHECKED)
def test_a_transform_refuses_it_too(kind, transform, ops) -> None:
    op = getattr(ops, f"{kind}_hidden")
    with pytest.raises(RuntimeError, match=f"returnedtest::{kind}_hidden: {ARGUMENT}"):
        TRANSFORMS[transform](lambda x: op(x, "argument"), x_of(requires_grad=False))


def test_forward_mode_refuses_it_too(ops) -> None:
    """An operator without a formula refuses the tangent before; one that has none drops it."""
    x = x_of(requires_grad=False)
    with pytest.raises(RuntimeError, match=f"returnedtest::formula_tangent: {ARGUMENT}"):
        torch.func.jvp(lambda x: ops.formula_tangent(x, "argument"), (x,), (x,))
    with pytest.raises(NotImplementedError, match="carries a forward-mode tangent"):
        torch.func.jvp(lambda x: ops.plain_one(x, "argument"), (x,), (x,))
    with pytest.raises(RuntimeError, match=f"returnedtest::ignored_one: {ARGUMENT}"):
        torch.func.jvp(lambda x: ops.ignored_one(x, "argument"), (x,), (x,))


# -- what is as the schema, the tag or ATen has it


@pytest.mark.parametrize("kind", ["parts", "tagged_parts"])
def test_a_composite_may_return_its_argument_as_those_of_aten_do(kind, ops) -> None:
    x = x_of()
    for f in (lambda x: getattr(ops, f"{kind}_one")(x, "argument"), torch.conj_physical):
        assert f(x) is x  # CompositeImplicitAutograd, and neither says so in its schema
    assert x.is_leaf
    view = getattr(ops, f"{kind}_one")(x, "view")
    assert view._base is x and "View" in view.grad_fn.name()


@pytest.mark.parametrize("kind", ["tagged_plain", "tagged_formula"])
def test_a_tag_says_that_memory_may_be_shared_and_not_that_it_is_the_argument(kind, ops) -> None:
    x = x_of()
    assert getattr(ops, f"{kind}_one")(x, "view").data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match=f"returnedtest::{kind}_one: {ARGUMENT}"):
        getattr(ops, f"{kind}_one")(x, "argument")
    assert x.is_leaf


def test_a_view_by_its_schema_is_none_of_this(ops) -> None:
    x = x_of()
    same, view = ops.viewed(x, "argument"), ops.viewed(x, "view")
    assert same is not x and same._base is x and view._base is x
    assert x.is_leaf


def test_an_argument_that_is_returned_twice_by_its_schema_is(ops) -> None:
    x = torch.zeros(3)
    first, second = ops.given_twice(x)
    assert first is x and second is x
    compiled = torch.compile(lambda x: ops.given_twice(x * 1), backend="aot_eager", fullgraph=True)
    assert [t.tolist() for t in compiled(torch.zeros(3))] == [[1.0] * 3] * 2


def test_an_inference_tensor_has_no_autograd_and_is_returned(ops) -> None:
    """As by ATen: no kernel of autograd runs. `check` finds it."""
    with torch.inference_mode():
        x = torch.ones(3)
        assert ops.plain_one(x, "argument") is x


# -- check


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        ("wrong_argument", "the result is the argument 'x', and new by the schema"),
        ("wrong_view", "the result shares memory with the argument 'x', and is new by the schema"),
        ("wrong_twice", "result 1 is result 0 too, and both are new by the schema"),
        ("wrong_in_list", "the result has one tensor twice, and all are new by the schema"),
    ],
)
def test_check_finds_what_composites_return(operator, words, ops, capsys) -> None:
    report = check("returnedtest", operators=[operator], checks=["opcheck"], raise_exception=False)
    cell = report.cells[operator, "opcheck"]
    assert cell.state is State.FAILED
    assert words in cell.reason


def test_check_finds_nothing_in_the_others(ops, capsys) -> None:
    names = [f"{kind}_{shape}" for kind in (*CHECKED, "parts") for shape in SHAPES]
    names += ["tagged_parts_one", "given_twice"]
    report = check("returnedtest", operators=names, checks=["opcheck"], raise_exception=False)
    assert [(c.operator, c.check, c.reason) for c in report.failures] == []
