# SPDX-License-Identifier: BSD-3-Clause
"""Rules of operators whose kernels allocate or return no tensor, and sizes that values tell."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

X = torch.arange(6.0).reshape(2, 3)
ROWS = torch.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 0.0]])

# -- kernels that allocate


def test_what_a_kernel_made_is_returned(ops) -> None:
    assert_close(ops.norms(X), (X.sum(1), X * X))
    meta = ops.norms(X.to("meta"))
    assert [(t.shape, t.dtype) for t in meta] == [((2,), X.dtype), ((2, 3), X.dtype)]
    out = torch.empty(0), torch.empty(0)
    assert_close(ops.norms.out(X, out0=out[0], out1=out[1]), (X.sum(1), X * X))


@pytest.mark.parametrize(("x", "given", "said"), [(X, "Float [3]", "Float [2]"),
                                                  (X[:1], "Int [1]", "Float [1]")])  # fmt: skip
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode])
def test_what_the_rule_does_not_say_is_refused(x, given, said, mode, ops) -> None:
    with mode(), pytest.raises(RuntimeError, match="native_functions.yaml:") as error:
        ops.norms(x, False)
    words = f"portedtest::norms: the kernel returned {given} for the result 'sums', the rule in"
    assert words in str(error.value) and str(error.value).endswith(f"says {said}")


def test_the_checks_come_first(ops) -> None:
    with pytest.raises(RuntimeError, match="portedtest::norms: x must have 2 dimensions, got 1"):
        ops.norms(X[0], False)


def test_it_differentiates_and_compiles(ops) -> None:
    x = X.double().requires_grad_()
    assert torch.autograd.gradcheck(ops.norms, x)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: ops.norms(x * 2), fullgraph=True)
    assert_close(compiled(X), ops.norms(X * 2))


@pytest.mark.parametrize("both", [True, False])
def test_a_result_may_be_missing(both, ops) -> None:
    found, meta = ops.maybe_two(X, both), ops.maybe_two(X.to("meta"), both)
    assert (found[1] is not None) == (meta[1] is not None) == both


def test_results_stand_beside_what_is_written(ops) -> None:
    count = torch.zeros(1)
    found = ops.counted_norms(X, count)
    assert_close(found[0], X * X)
    assert found[1] is count and count.item() == 1


# -- rules that only check


def test_a_check_has_the_words_of_the_spec_with_values_in_them(ops) -> None:
    assert ops.only_checked(torch.ones(3, 4), torch.ones(3)) == 6
    with pytest.raises(RuntimeError, match=r"^as many scores as boxes, got \[2\] and \[3, 4\]"):
        ops.only_checked(torch.ones(3, 4), torch.ones(2))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((X, torch.ones(2), -1.0), r"scale > 0 must hold: scale is -1"),
        ((X, torch.ones(2), 1.0, "sum"), r"mode in \('max', 'avg'\) must hold: mode is sum"),
        (
            (X, X),
            r"boxes.dim == 2 and boxes.shape\[1\] >= 1 and .scores.dim == 1. must hold: "
            r"boxes.dim is 2, boxes.shape is \[2, 3\], scores.dim is 2",
        ),
        (
            (X[0], torch.ones(3)),
            r".* must hold: boxes.dim is 1, boxes.shape is \[3\], scores.dim is 1",
        ),
    ],
)
def test_a_check_shows_the_values_of_what_it_names(arguments, words, ops) -> None:
    with pytest.raises(RuntimeError, match=f"portedtest::only_checked: {words}"):
        ops.only_checked(*arguments)


@pytest.mark.parametrize(
    ("scale", "shown"), [(-0.49999999, "-0.49999999"), (-0.5, "-0.5"), (float("nan"), "nan"),
                         (-1e-300, "-1e-300"), (-2.0, "-2"), (float("-inf"), "-inf")]
)  # fmt: skip
def test_a_number_is_shown_as_it_is(scale, shown, ops) -> None:
    with pytest.raises(RuntimeError, match=f"scale > 0 must hold: scale is {shown}$"):
        ops.only_checked(X, X[:, 0], scale)


@pytest.mark.parametrize("number", [2.0, 2])
def test_a_number_that_values_tell_is_checked_when_the_graph_runs(number, ops) -> None:
    torch._dynamo.reset()
    # int tensors of one element are symbols before .item() asks for their value
    words = r"Runtime assertion failed|^0 < z|^Ne\(z|\d must hold: alpha is"
    for backend in ("aot_eager", "inductor"):
        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            f = torch.compile(
                lambda x, s: ops.checked_times(x, s.item()) + 1, fullgraph=True, backend=backend
            )
            assert_close(f(X, torch.tensor(number)), X * 2 + 1)
            for wrong in (-number, number + 1):
                with pytest.raises(RuntimeError, match=words):
                    f(X, torch.tensor(wrong))


def test_numbers_are_negated(ops) -> None:
    assert_close(ops.checked_times(X, 99.5), X * 99.5)
    with pytest.raises(RuntimeError, match=r"-alpha > -100 must hold: alpha is 100.5"):
        ops.checked_times(X, 100.5)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_operators_that_only_write_check_on_every_device(device, ops) -> None:
    x, out = torch.ones(2, 3, device=device), torch.ones(2, 3, device=device)
    assert ops.checked_and_written(x, out, [1, 2]) is None
    with pytest.raises(RuntimeError, match="portedtest::checked_and_written: len.sizes. must be"):
        ops.checked_and_written(x, out, [1])
    with pytest.raises(RuntimeError, match=r"x must have shape \[2, 2\], got \[2, 3\]"):
        ops.checked_and_written(x, out[:, :2], [1, 2])


def test_operators_that_return_lists_check(ops) -> None:
    assert_close(ops.checked_parts(X, 2), [X / 2, X * 2])
    with pytest.raises(RuntimeError, match="portedtest::checked_parts: alpha != 0 must hold"):
        ops.checked_parts(X, 0.0)
    with pytest.raises(RuntimeError, match=r"checked_parts: alpha must be real, got \(2,1\)"):
        ops.checked_parts(X, 2 + 1j)


# -- sizes that values tell


@pytest.fixture
def _dynamic():
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        yield


def rows(x):
    return x[(x != 0).any(1)]


def kept(scores, least, most=-1):
    index = (scores > least).nonzero().squeeze(1)
    return scores[index][: most if most >= 0 else None], index


def test_eager_reads_the_sizes_off_the_result(ops) -> None:
    assert_close(ops.nonzero_rows(ROWS), rows(ROWS))
    assert_close(ops.kept(X[1], 3.5), kept(X[1], 3.5))
    assert_close(ops.kept(X[1], 3.5, 1), kept(X[1], 3.5, 1))


def test_a_size_that_is_known_is_compared(ops) -> None:
    with pytest.raises(
        RuntimeError, match=r"returned Float \[0\] for .* 'values'.* says Float \[1\]"
    ):
        ops.kept(X[1], 30.0, 1)


def test_meta_says_what_it_cannot_know(ops) -> None:
    with pytest.raises(NotImplementedError, match="portedtest::nonzero_rows: the size of 'out'"):
        ops.nonzero_rows(ROWS.to("meta"))


@pytest.mark.usefixtures("_dynamic")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_one_graph_serves_all_sizes(backend, ops) -> None:
    f = torch.compile(lambda x: ops.nonzero_rows(x * 2) + 1, backend=backend, fullgraph=True)
    for x in (ROWS, ROWS * 0, torch.eye(3)[:, :2], ROWS[:1], ROWS[:0]):
        assert_close(f(x), rows(x * 2) + 1)
    g = torch.compile(
        lambda s: [t.sum() for t in ops.kept(s, 0.5)], backend=backend, fullgraph=True
    )
    for s in (torch.arange(3.0), torch.arange(5.0)):
        assert_close(g(s), [t.sum() for t in kept(s, 0.5)])


@pytest.mark.usefixtures("_dynamic")
@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("dynamic", [None, True])
def test_bounds_may_be_small(dynamic, count, ops) -> None:
    x = ROWS[1 : count + 1]
    f = torch.compile(lambda x: ops.nonzero_rows(x) * 2, fullgraph=True, dynamic=dynamic)
    assert_close(f(x), rows(x) * 2)


def test_an_argument_may_be_called_dynamic(ops) -> None:
    """Then it is that argument, and the kernel is given its result."""
    assert ops.repeated_rows(X, 3).equal(X.sum(0).expand(3, 3))
    assert ops.repeated_rows(X.to("meta"), 4).shape == (4, 3)


@pytest.mark.usefixtures("_dynamic")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_two_calls_have_two_sizes(backend, ops) -> None:
    def f(op, x, y):
        a, b = op(x), op(y)
        return a.shape[0] + 10 * b.shape[0], a.sum() + b.sum()

    compiled = torch.compile(f, backend=backend, fullgraph=True)
    x, y = ROWS, torch.eye(3)[:, :2] + 1
    assert_close(compiled(ops.nonzero_rows, x, y), f(rows, x, y))


@pytest.mark.usefixtures("_dynamic")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_gradients(backend, ops) -> None:
    x = ROWS.clone().requires_grad_()
    f = torch.compile(
        lambda x: (ops.nonzero_rows(x * 2) ** 2).sum(), backend=backend, fullgraph=True
    )
    f(x).backward()
    expected = ROWS.clone().requires_grad_()
    (rows(expected * 2) ** 2).sum().backward()
    assert_close(x.grad, expected.grad)


def test_without_the_option_of_dynamo_the_graph_breaks(ops) -> None:
    torch._dynamo.reset()
    assert_close(torch.compile(lambda x: ops.nonzero_rows(x * 2) + 1)(ROWS), rows(ROWS * 2) + 1)


class _Rows(torch.nn.Module):
    def __init__(self, op) -> None:
        super().__init__()
        self.op = op

    def forward(self, x):
        return self.op(x) + 1


def test_export_knows_the_bound(ops) -> None:
    dim = torch.export.Dim("n")
    program = torch.export.export(_Rows(ops.nonzero_rows), (ROWS,), dynamic_shapes={"x": {0: dim}})
    x = torch.eye(7)[:, :2]
    assert_close(program.module()(x), rows(x) + 1)
    fixed = torch.export.export(_Rows(ops.nonzero_rows), (ROWS,))
    assert [(r.lower, r.upper) for r in fixed.range_constraints.values()] == [(0, 3)]


def test_opcheck(ops) -> None:
    torch.library.opcheck(ops.nonzero_rows, (ROWS,))
    torch.library.opcheck(ops.kept, (X[1], 3.5))


def test_vmap_serves_equal_sizes_and_refuses_others(ops) -> None:
    assert_close(
        torch.vmap(ops.nonzero_rows)(torch.stack([ROWS, ROWS + 0])), rows(ROWS).expand(2, 2, 2)
    )
    with pytest.raises(RuntimeError, match="vmap: portedtest::nonzero_rows has a result of shape"):
        torch.vmap(ops.nonzero_rows)(torch.stack([ROWS, ROWS * 0]))


def test_every_check_knows_sizes_that_values_tell(ops):
    from torchext.testing import check

    report = check("portedtest", operators=["nonzero_rows", "repeated_rows", "kept"])
    states = {op: report.cells[op, "compile_dynamic"].state.name for op in report.locations}
    assert states == dict.fromkeys(["nonzero_rows", "repeated_rows", "kept"], "PASSED")
    assert report.cells["kept", "meta"].state.name == "NOTHING"


# -- lists by a rule


def scaled_parts(inputs, scale):
    return [torch.stack([x * scale, x], -1) for x in inputs]


def copies(x, n):
    return [x.repeat(i, 1) for i in range(n)]


def repeated(x, sizes):
    return [x.sum(0, keepdim=True).repeat(size, 1) for size in sizes]


LISTS = {
    "scaled_parts": (scaled_parts, [([X, X[0]], 0.5), ([X[:0]], 2.0)]),
    "copies": (copies, [(X[0], 3), (X[0], 0), (X[0, :0], 2)]),
    "repeated": (repeated, [(X, [2]), (X, [1, 1]), (X, [0, 2, 0])]),
}
CALLS = [(name, i) for name, (_, calls) in LISTS.items() for i in range(len(calls))]


@pytest.mark.parametrize(("name", "index"), CALLS)
def test_each_tensor_of_a_list_is_as_the_rule_says(name, index, ops) -> None:
    composite, calls = LISTS[name]
    ours, arguments = getattr(ops, name), calls[index]
    expected = composite(*arguments)
    assert_close(ours(*arguments), expected)
    on_meta = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.to("meta"), arguments)
    assert [(t.shape, t.dtype) for t in ours(*on_meta)] == [(t.shape, t.dtype) for t in expected]
    torch.library.opcheck(ours.default, arguments)
    for dynamic in (False, True):
        torch._dynamo.reset()
        compiled = torch.compile(lambda *a: ours(*a), fullgraph=True, dynamic=dynamic)  # noqa: B023
        assert_close(compiled(*arguments), expected)


def test_a_list_with_symbolic_sizes_is_exported(ops) -> None:
    class Model(torch.nn.Module):
        def forward(self, x, y):
            return [part.sum(-1) for part in ops.scaled_parts([x, y], 0.5)]

    rows = torch.export.Dim("rows", min=2)
    program = torch.export.export(Model(), (X, X.clone()), dynamic_shapes=({0: rows}, None))
    given = torch.randn(7, 3), X
    assert_close(program.module()(*given), Model()(*given))


def test_a_formula_may_refer_to_a_list_that_it_made(ops) -> None:
    xs = [torch.rand(3, requires_grad=True) for _ in range(2)]
    ops.scaled_pair(xs).backward(torch.arange(3.0))
    assert_close([x.grad for x in xs], [torch.arange(3.0) * 2, torch.arange(3.0) * 3])


def test_the_gradients_of_a_list(ops) -> None:
    inputs = [torch.randn(2, 3, dtype=torch.double), torch.randn(4, dtype=torch.double)]
    for used in ([0], [1], [0, 1]):
        leaves = [x.clone().requires_grad_() for x in inputs]
        for function in (ops.scaled_parts, scaled_parts):
            results = function(leaves, 0.5)
            sum((results[i] * results[i]).sum() for i in used).backward()
            if function is ops.scaled_parts:
                ours = [x.grad for x in leaves]
                leaves = [x.clone().requires_grad_() for x in inputs]
        for index, (grad, leaf) in enumerate(zip(ours, leaves)):
            wanted = leaf.grad if index in used else torch.zeros_like(leaf)
            assert_close(grad, wanted)


@pytest.mark.parametrize(("scale", "said"), [
    (-1, "returned 1 tensors for the result 'out', the rule in native_functions.yaml:"),
    (-2, r"returned Int \[3, 2\] for the result 'out\[1\]', the rule in native_functions.yaml:"),
])  # fmt: skip
def test_a_list_that_is_not_what_the_rule_says_is_refused(scale, said, ops) -> None:
    with pytest.raises(RuntimeError, match=f"portedtest::scaled_parts: the kernel {said}"):
        ops.scaled_parts([X, X[0]], scale)


def test_lists_in_batches(ops) -> None:
    batch = torch.randn(4, 2, 3)
    for ours, composite in (
        (lambda x: ops.scaled_parts([x, x[0]], 0.5), lambda x: scaled_parts([x, x[0]], 0.5)),
        (lambda x: ops.repeated(x, [1, 2]), lambda x: repeated(x, [1, 2])),
    ):
        assert_close(torch.vmap(ours)(batch), torch.vmap(composite)(batch))


@pytest.mark.parametrize("others", [(), (3,), (2, 3), (4, 1, 3)])
def test_lists_in_batches_at_once(others, ops) -> None:
    batch, other = torch.randn(4, 2, 3), torch.randn(others)
    given = lambda x: ([x, other], [other, x], [x, x])  # noqa: E731
    tripled = torch.vmap(lambda x: [t for xs in given(x) for t in ops.tripled(xs)])
    composite = torch.vmap(lambda x: [t * 3 for xs in given(x) for t in xs])
    assert_close(tripled(batch), composite(batch))
    if others == (2, 3):
        pairs = torch.vmap(lambda x: [ops.scaled_pair(xs) for xs in given(x)])
        sums = torch.vmap(lambda x: [xs[0] * 2 + xs[1] * 3 for xs in given(x)])
        assert_close(pairs(batch), sums(batch))


def test_every_check_knows_lists_by_a_rule(ops):
    from torchext.testing import check

    check("portedtest", operators=list(LISTS))
