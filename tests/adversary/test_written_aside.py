# SPDX-License-Identifier: BSD-3-Clause
"""Buffers that are written aside and that the formula reads, beside composites of ATen's operators.

Eager mode does what ATen's do. What is compiled gives what ATen's give in eager mode, or by
aot_eager where torch compiles something else: Inductor gets some of these situations wrong with
ATen's operators alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
import torch._functorch.config as functorch_config
from library_build import build_and_load
from torch._inductor import config as inductor_config
from torch.utils.checkpoint import checkpoint

from codegen.schema.forms import copied_form
from codegen.schema.parser import parse_schema
from torchext.testing import check


@pytest.fixture(scope="session")
def ops():
    """The operators of asidetest/."""
    return build_and_load(Path(__file__).parent / "asidetest", "asidetest_library.so")


@pytest.fixture(autouse=True)
def without_caches():
    """torch 2.13 takes a backward from its cache that reuses the memory of what was saved, where
    another function with the same backward returns that to its caller."""
    with inductor_config.patch(fx_graph_cache=False):
        with functorch_config.patch(enable_autograd_cache=False):
            yield


BACKENDS = ["eager", "aot_eager", "inductor"]
Tensors = list[torch.Tensor]
Norm = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def assert_same(actual, expected) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


def aten(x: torch.Tensor, running: torch.Tensor) -> torch.Tensor:
    """What `norm` does."""
    running.mul_(0.5).add_(1)
    return x * running


def values(seed: int = 0, rows: int = 2) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(rows, 3, generator=generator, dtype=torch.double) + 0.5


def leaf(seed: int = 0, rows: int = 2) -> torch.Tensor:
    return values(seed, rows).requires_grad_()


def backward(result: torch.Tensor) -> None:
    (result * result).sum().backward()


# -- every form of a schema, over several steps: a function of x and two buffers, and what it does


def aten_two(x, r, s):
    return aten(x, r) + x * s.mul_(0.5).add_(2)


def aten_listed(x, r, s):
    return aten(x, r) * s.mul_(0.5).add_(1)


def of_one(x, r, s):
    return aten(x, r)


FORMS = {
    "norm": (lambda ops, x, r, s: ops.norm(x, r), of_one),
    "shorthand": (lambda ops, x, r, s: ops.shorthand(x, r), of_one),
    "called_result": (lambda ops, x, r, s: ops.called_result(x, r), of_one),
    "two": (lambda ops, x, r, s: sum(ops.two(x, r, s)), aten_two),
    "listed": (lambda ops, x, r, s: ops.listed(x, [r, s]), aten_listed),
    "optional": (lambda ops, x, r, s: ops.optional(x, r), of_one),
    "missing": (lambda ops, x, r, s: ops.optional(x) * 1, lambda x, r, s: x.clone()),
    "returned": (lambda ops, x, r, s: ops.returned(x, r)[0], of_one),
    "declared": (lambda ops, x, r, s: ops.declared(x, r), of_one),
    "ruled": (lambda ops, x, r, s: ops.ruled(x, r), of_one),
    "by_key": (lambda ops, x, r, s: ops.by_key(x, r), of_one),
    "by_parts": (lambda ops, x, r, s: ops.by_parts(x, r), of_one),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", FORMS)
def test_a_training_leaves_what_that_of_aten_leaves(name, backend, ops) -> None:
    torch._dynamo.reset()
    ours, oracle = FORMS[name]
    found = []
    for f in (lambda *given: ours(ops, *given), oracle):
        is_compiled = f is not oracle and backend != "eager"
        step = torch.compile(f, backend=backend, fullgraph=True) if is_compiled else f
        x, r, s = leaf(), values(1), values(2)
        kept = []
        for _ in range(3):
            result = step(x, r, s)
            backward(result)
            kept += [t.detach().clone() for t in (result, x.grad, r, s)]
            with torch.no_grad():
                x -= 0.1 * x.grad
            x.grad = None
        found.append(kept)
    assert_same(*found)


# -- one operator in every situation


@dataclass
class Run:
    """What a situation runs."""

    norm: Norm
    backend: str = "eager"

    def compiled(self, function: Callable, **options) -> Callable:
        if self.backend == "eager":
            return function
        return torch.compile(function, backend=self.backend, fullgraph=True, **options)


@dataclass(frozen=True)
class Situation:
    """A situation, and what its errors say, by backend: ATen's say it too."""

    run: Callable[[Run], Tensors]
    errors: dict[str, str] = field(default_factory=dict)
    is_other: bool = False  # compiled, it gives other values than in eager mode

    def __str__(self) -> str:
        return self.run.__name__

    def outcome(self, norm: Norm, backend: str) -> Tensors:
        torch._dynamo.reset()
        return [t.detach().clone() for t in self.run(Run(norm, backend))]


def two_forwards(run: Run) -> Tensors:
    step, x, r = run.compiled(run.norm), leaf(), values(1)
    results = [step(x, r) for _ in range(2)]
    for result in results:
        backward(result)
    return [*results, x.grad, r]


def written_between(run: Run) -> Tensors:
    step, x, r = run.compiled(run.norm), leaf(), values(1)
    result = step(x, r)
    r.add_(1)
    backward(result)
    return [result, x.grad, r]


def two_calls(run: Run) -> Tensors:
    step, x, r = run.compiled(lambda x, r: run.norm(run.norm(x, r), r)), leaf(), values(1)
    backward(step(x, r))
    return [x.grad, r]


def two_calls_on_copies(run: Run) -> Tensors:
    def function(x, r):
        other = r.clone()
        return run.norm(run.norm(x, r), other)

    step, x, r = run.compiled(function), leaf(), values(1)
    backward(step(x, r))
    return [x.grad, r]


def two_calls_one_recorded(run: Run) -> Tensors:
    step = run.compiled(lambda x, r: run.norm(x.detach(), r) + run.norm(x, r))
    x, r = leaf(), values(1)
    backward(step(x, r))
    return [x.grad, r]


def checkpointed(run: Run) -> Tensors:
    step = run.compiled(lambda x, r: checkpoint(run.norm, x * 2, r, use_reentrant=False))
    x, r = leaf(), values(1)
    result = step(x, r)
    kept = r.clone()
    backward(result)
    return [result, x.grad, kept, r]


def checkpointed_reentrant(run: Run) -> Tensors:
    step = run.compiled(lambda x, r: checkpoint(run.norm, x * 2, r, use_reentrant=True))
    x, r = leaf(), values(1)
    result = step(x, r)
    kept = r.clone()
    backward(result)
    return [result, x.grad, kept, r]


def total(run: Run) -> Callable:
    return lambda x, r: (run.norm(x, r) ** 3).sum()


def functional_gradient(run: Run) -> Tensors:
    step, x, r = run.compiled(torch.func.grad(total(run))), values(), values(1)
    return [step(x, r), r.clone(), step(x, r), r]


def functional_second_derivative(run: Run) -> Tensors:
    def first(x, r):
        return torch.func.grad(total(run))(x, r).sum()

    step, x, r = run.compiled(torch.func.grad(first)), values(), values(1)
    return [step(x, r), r]


class Model(torch.nn.Module):
    def __init__(self, norm: Norm) -> None:
        super().__init__()
        self.norm = norm
        self.weight = torch.nn.Parameter(values(1))
        self.register_buffer("running", values(2))

    def forward(self, x):
        return self.norm(x * self.weight, self.running)


def functional_call(run: Run) -> Tensors:
    model = Model(run.norm)
    parameters, buffers = {"weight": values(1)}, {"running": values(2)}

    def loss(parameters, buffers, x):
        return (torch.func.functional_call(model, (parameters, buffers), (x,)) ** 2).sum()

    step = run.compiled(lambda *given: torch.func.grad(loss)(*given))
    return [step(parameters, buffers, values())["weight"], buffers["running"], model.running]


def module(run: Run) -> Tensors:
    model = Model(run.norm)
    step, optimizer = run.compiled(model), torch.optim.SGD(model.parameters(), 0.1)
    kept = []
    for seed in range(3):
        optimizer.zero_grad()
        result = step(values(seed))
        backward(result)
        optimizer.step()
        kept += [t.detach().clone() for t in (result, model.weight, model.running)]
    return kept


def exported(run: Run) -> Tensors:
    """torch.export for training: the program differentiates as the module does."""
    model = torch.export.export(Model(run.norm), (values(),)).module()
    step, kept = run.compiled(model), []
    for seed in range(2):
        result = step(values(seed))
        backward(result)
        kept += [result, *(p.grad for p in model.parameters()), *model.buffers()]
        kept = [t.detach().clone() for t in kept]
    return kept


def exported_for_inference(run: Run) -> Tensors:
    program = torch.export.export(Model(run.norm), (values(),)).run_decompositions()
    model = program.module()
    step, kept = run.compiled(model), []
    with torch.no_grad():
        for seed in range(2):
            kept += [step(values(seed)), *(b.clone() for b in model.buffers())]
    return kept


def without_gradients(run: Run) -> Tensors:
    step, x, r = run.compiled(run.norm), leaf(), values(1)
    with torch.no_grad():
        first = [step(x, r), r.clone()]
    return [*first, step(x, r), r]


def without_gradients_inside(run: Run) -> Tensors:
    def function(x, r):
        with torch.no_grad():
            run.norm(x, r)
        return x * r

    step, x, r = run.compiled(function), leaf(), values(1)
    result = step(x, r)
    backward(result)
    return [result, x.grad, r]


def inference_mode(run: Run) -> Tensors:
    step, x, r = run.compiled(run.norm), values(), values(1)
    with torch.inference_mode():
        result = step(x, r)
    return [result.clone(), r]


def dynamic_shapes(run: Run) -> Tensors:
    step, kept = run.compiled(run.norm, dynamic=True), []
    for rows in (2, 5, 7):
        x, r = leaf(rows=rows), values(1, rows)
        result = step(x, r)
        backward(result)
        kept += [result, x.grad, r]
    return kept


def retained(run: Run) -> Tensors:
    step, x, r = run.compiled(run.norm), leaf(), values(1)
    loss = (step(x, r) ** 2).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    return [x.grad, r]


def double_backward(run: Run) -> Tensors:
    step, x, r = run.compiled(run.norm), leaf(), values(1)
    (first,) = torch.autograd.grad((step(x, r) ** 3).sum(), x, create_graph=True)
    return [first, *torch.autograd.grad(first.sum(), x), r]


def training_on(buffers: Tensors, step: Callable, x: torch.Tensor) -> Tensors:
    kept = []
    for _ in range(2):
        result = step(x, *buffers)
        backward(result)
        kept += [t.detach().clone() for t in (result, x.grad, *buffers)]
    return kept


def view_of_a_buffer(run: Run) -> Tensors:
    step = run.compiled(lambda x, base: run.norm(x, base[1:3]) * base[0])
    return training_on([values(1, rows=4)], step, leaf())


def view_that_is_given(run: Run) -> Tensors:
    base = values(1, rows=4)
    return [*training_on([base[1:3]], run.compiled(run.norm), leaf()), base]


def view_and_its_base(run: Run) -> Tensors:
    base = values(1, rows=4)
    step = run.compiled(lambda x, base, view: run.norm(x, view) + base.sum())
    return training_on([base, base[1:3]], step, leaf())


def transposed_buffer(run: Run) -> Tensors:
    step = run.compiled(lambda x, base: run.norm(x, base.t()))
    return training_on([values(1, rows=3)[:, :2]], step, leaf())


def intermediate(run: Run) -> Tensors:
    def function(x, r):
        between = r * 2
        return run.norm(x, between) + between.sum()

    return training_on([values(1)], run.compiled(function), leaf())


def intermediate_returned(run: Run) -> Tensors:
    def function(x, r):
        between = r * 2
        return run.norm(x, between), between

    step, x, r = run.compiled(function), leaf(), values(1)
    result, between = step(x, r)
    backward(result)
    return [result, between, x.grad, r]


def buffer_returned(run: Run) -> Tensors:
    step, x, r = run.compiled(lambda x, r: (run.norm(x, r), r)), leaf(), values(1)
    result, same = step(x, r)
    backward(result)
    assert same.data_ptr() == r.data_ptr()
    return [result, same, x.grad, r]


def compiled_backward(run: Run) -> Tensors:
    step, x, r = run.compiled(run.norm), leaf(), values(1)
    kept = []
    for _ in range(2):
        result = step(x, r)
        compiler = torch.compile(backend="aot_eager" if run.backend == "eager" else run.backend)
        with torch._dynamo.compiled_autograd._enable(compiler):
            backward(result)
        kept += [t.detach().clone() for t in (result, x.grad, r)]
    return kept


WRITTEN = "has been modified by an inplace operation"
EAGER_WRITTEN = {"eager": WRITTEN}
ALWAYS_WRITTEN = dict.fromkeys(BACKENDS, WRITTEN)
ONCE = "torch.compile with aot_autograd does not currently support double backward"
SITUATIONS = [
    Situation(two_forwards, EAGER_WRITTEN),
    Situation(written_between, EAGER_WRITTEN),
    Situation(two_calls, ALWAYS_WRITTEN),
    Situation(two_calls_on_copies),
    Situation(two_calls_one_recorded),
    Situation(checkpointed, EAGER_WRITTEN),
    Situation(checkpointed_reentrant, is_other=True),  # which computes again without writing
    Situation(functional_gradient),
    Situation(functional_second_derivative),
    Situation(functional_call),
    Situation(module),
    Situation(exported),
    Situation(exported_for_inference),
    Situation(without_gradients),
    Situation(without_gradients_inside),
    Situation(inference_mode),
    Situation(dynamic_shapes),
    Situation(retained),
    Situation(double_backward, {"aot_eager": ONCE, "inductor": ONCE}),
    Situation(view_of_a_buffer),
    Situation(view_that_is_given),
    Situation(view_and_its_base),
    Situation(transposed_buffer),
    Situation(intermediate),
    Situation(intermediate_returned),
    Situation(buffer_returned),
    Situation(compiled_backward),
]  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_every_situation_is_that_of_aten(situation, backend, ops) -> None:
    if backend in situation.errors:
        for norm in (ops.norm, aten):
            with pytest.raises(Exception, match=situation.errors[backend]):
                situation.outcome(norm, backend)
        return
    is_other = backend != "eager" and situation.is_other
    oracle = "aot_eager" if is_other or "eager" in situation.errors else "eager"
    assert_same(situation.outcome(ops.norm, backend), situation.outcome(aten, oracle))


# -- views of a buffer, which a graph makes again of what its base holds at the end

VIEWS = {
    "rows": lambda base: base[1:3],
    "first_rows": lambda base: base[:2],
    "columns": lambda base: base.view(2, 6)[:, :3],
    "reshaped_rows": lambda base: base[:2].view(3, 2).view(2, 3),
    "transposed": lambda base: base.t()[:2, :3],
    "steps": lambda base: base[::2],
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize(
    ("form", "view"),
    [*(("norm", view) for view in VIEWS), ("returned", "rows"), ("listed", "rows")],
)
def test_a_view_of_a_buffer_is_written_and_read_as_by_aten(form, view, backend, ops) -> None:
    torch._dynamo.reset()
    ours, oracle = FORMS[form]
    found = []
    for f, run in ((lambda *given: ours(ops, *given), Run(ops.norm, backend)), (oracle, Run(aten))):

        def function(x, base, other, f=f):
            return f(x, VIEWS[view](base), VIEWS[view](other)) + base.sum()

        buffers = [values(1, rows=4), values(2, rows=4)]
        found.append(training_on(buffers, run.compiled(function), leaf()))
    assert_same(*found)


@pytest.mark.parametrize("name", ["two", "returned", "optional"])
def test_every_form_is_differentiated_twice_in_a_graph(name, ops) -> None:
    torch._dynamo.reset()
    ours, oracle = FORMS[name]
    found = []
    for f, backend in ((lambda *given: ours(ops, *given), "aot_eager"), (oracle, "eager")):

        def first(x, r, s, f=f):
            return torch.func.grad(lambda x, r, s: (f(x, r, s) ** 3).sum())(x, r, s).sum()

        step = Run(ops.norm, backend).compiled(torch.func.grad(first))
        buffers = [values(1), values(2)]
        found.append([step(values(), *buffers), *buffers])
    assert_same(*found)


# -- what ATen's operators refuse, or what has none beside it


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_buffer_that_a_transform_captures_is_written_to(backend, ops) -> None:
    """ATen's in-place operators refuse it; here no gradient flows to the buffer."""
    torch._dynamo.reset()
    found = []
    for backend_of, captures in ((backend, True), ("eager", False)):
        function = total(Run(ops.norm))

        def gradient(x, r, captures=captures, function=function):
            if captures:
                return torch.func.grad(lambda x: function(x, r))(x)
            return torch.func.grad(function)(x, r)

        step, x, r = Run(ops.norm, backend_of).compiled(gradient), values(), values(1)
        found.append([step(x, r), r.clone(), step(x, r), r])
    assert_same(*found)


@pytest.mark.parametrize("name", ["norm", "listed", "two", "ruled", "returned"])
def test_functionalize_gives_the_same(name, ops) -> None:
    ours, oracle = FORMS[name]
    found = []
    for f in (lambda *given: ours(ops, *given), oracle):
        buffers = values(1), values(2)
        found.append((torch.func.functionalize(f)(values(), *buffers), *buffers))
    assert_same(*found)


def test_a_buffer_that_requires_grad_is_refused(ops) -> None:
    with pytest.raises(NotImplementedError, match="'running' requires grad, and the derivative"):
        ops.norm(values(), leaf(1))


def test_what_was_saved_has_the_version_of_the_buffer(ops) -> None:
    x, r = leaf(), values(1)
    node = ops.norm(x, r).grad_fn
    assert node._saved_running is r  # no copy
    r.add_(1)
    with pytest.raises(RuntimeError, match=WRITTEN):
        node._saved_running  # noqa: B018  read


def test_another_formula_reads_what_was_written_where_nothing_is_donated(ops) -> None:
    """Inductor of torch 2.13 writes over it otherwise, as over what ATen's `index_copy_` writes."""
    places = torch.arange(2)

    def track(x, r):
        ops.track(r)
        return x * r

    def copy(x, r):
        r.index_copy_(0, places, r * 0.5 + 1)
        return x * r

    with functorch_config.patch(donated_buffer=False):
        found = []
        for function in (track, copy):
            torch._dynamo.reset()
            step = Run(ops.norm, "inductor").compiled(function)
            found.append(training_on([values(1)], step, leaf()))
    found.append(training_on([values(1)], aten, leaf()))
    assert_same(found[0], found[2])
    assert_same(found[1], found[2])


# -- arguments that are called like those of the functions of torch that trace what writes


def nothing(*_) -> None:
    """For the effect of what it is given."""


def aten_of_mode(dst, x, mode="max", k=1):
    dst.copy_(torch.maximum(dst, x) if mode == "max" else torch.minimum(dst, x)).mul_(k)


def aten_of_mode_returning(x, dst, *, mode=1):
    dst.add_(x, alpha=mode)
    return x * mode


def aten_of_bases(dst, _all_bases, _dst_length=()):
    for each in dst:
        each.add_(_all_bases, alpha=len(_dst_length) + 1)


def aten_of_op(dst, _mutable_op, _only_clone_these_bases=0):
    dst.add_(_only_clone_these_bases)
    if _mutable_op is not None:
        dst.mul_(_mutable_op)


# What an operator does, and calls of it with tensors that it writes to (d, e) and reads (x).
NAMED = {
    "of_mode": (
        aten_of_mode,
        [
            lambda f, d, e, x: f(d, x),
            lambda f, d, e, x: f(d, x, "min", 2),
            lambda f, d, e, x: f(dst=d, mode="min", x=x, k=0.5),
            lambda f, d, e, x: f(d[0], x[1], mode="min"),
        ],
    ),
    "of_mode_returning": (
        aten_of_mode_returning,
        [lambda f, d, e, x: f(x, d), lambda f, d, e, x: f(x[:, :2], d[:, 1:], mode=3)],
    ),
    "of_key": (
        lambda dst, dispatch_key, mode=1: nothing(dst.mul_(dispatch_key).add_(mode)),
        [lambda f, d, e, x: f(d, x), lambda f, d, e, x: f(e, dispatch_key=x, mode=2)],
    ),
    "of_alias": (
        lambda dst, _dst_alias=1: nothing(dst.mul_(_dst_alias)),
        [
            lambda f, d, e, x: f(d, 3),
            lambda f, d, e, x: f(e[:, 1:], _dst_alias=0),
            lambda f, d, e, x: nothing(f(d, 2), f(e, -1)),
        ],
    ),
    "of_bases": (
        aten_of_bases,
        [lambda f, d, e, x: f([d, e], x), lambda f, d, e, x: f([e], x, _dst_length=[1, 2])],
    ),
    "of_op": (
        aten_of_op,
        [lambda f, d, e, x: f(d, x, 2), lambda f, d, e, x: f(d, None, _only_clone_these_bases=1)],
    ),
}
NAMED_CALLS = [(name, i) for name, (_, calls) in NAMED.items() for i in range(len(calls))]


class Named(torch.nn.Module):
    """A call of one of them, with tensors of its own: it returns them and the result."""

    def __init__(self, function, call) -> None:
        super().__init__()
        self.function, self.call = function, call

    def forward(self, x):
        d, e = x * 2 - 1, x.sin()
        result = self.call(self.function, d, e, x)
        return d, e, result if result is not None else x


WAYS = {
    "aot_eager": lambda f, x: torch.compile(f, backend="aot_eager", fullgraph=True)(x),
    "inductor": lambda f, x: torch.compile(f, fullgraph=True)(x),
    "dynamic": lambda f, x: torch.compile(f, backend="aot_eager", dynamic=True)(x),
    "export": lambda f, x: torch.export.export(f, (x,)).run_decompositions().module()(x),
    "functionalize": lambda f, x: torch.func.functionalize(f)(x),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "index"), NAMED_CALLS)
def test_arguments_called_like_those_of_torch_are_told_apart(name, index, way, ops) -> None:
    oracle, calls = NAMED[name]
    torch._dynamo.reset()
    wanted = Named(oracle, calls[index])(values())
    assert_same(WAYS[way](Named(getattr(ops, name), calls[index]), values()), wanted)


def names_of_torch() -> list[str]:
    """The parameters of what torch calls with the arguments of an operator that it functionalizes,
    by their names."""
    operator = torch._higher_order_ops.auto_functionalize.auto_functionalized_v2
    tables = (operator.py_kernels, operator.python_key_table, operator.functorch_table)
    called = [type(operator).__call__, type(operator).dispatch]
    called += [function for table in tables for function in table.values()]
    names = {name for function in called for name in inspect.signature(function).parameters}
    return sorted(names - {"self", "args", "kwargs"})


@pytest.mark.parametrize("name", [*names_of_torch(), "_all_bases", "_dst_alias", "_dst_size"])
def test_what_torch_mixes_up_is_traced_by_a_form_of_ours(name) -> None:
    schema = f"write(Tensor(a!) dst, int {name}=1) -> ()"
    with torch.library._scoped_library("names_of_torch", "FRAGMENT") as library:
        library.define(schema)
        library.impl("write", lambda dst, number=1: nothing(dst.add_(number)), "CPU")
        library.impl("write", lambda dst, number=1: None, "Meta")
        call = Named(torch.ops.names_of_torch.write, lambda f, d, e, x: f(d, 3))
        wanted = call(values())
        torch._dynamo.reset()
        try:
            torch.testing.assert_close(WAYS["aot_eager"](call, values()), wanted)
            is_mixed_up = False
        except (torch._dynamo.exc.TorchDynamoException, KeyError, AssertionError):
            is_mixed_up = True
    form = copied_form(parse_schema(schema), saves_written=False)
    assert form is not None or not is_mixed_up
    assert is_mixed_up or name in ("ctx", "interpreter")  # the test sees what torch does


# -- check


def test_check_finds_nothing(ops, capsys) -> None:
    names = ["norm", "listed", "returned", *NAMED]
    checks = ["opcheck", "gradcheck", "compile"]
    report = check("asidetest", operators=names, checks=checks, raise_exception=False)
    assert [(c.operator, c.check, c.reason) for c in report.failures] == []
