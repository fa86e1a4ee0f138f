# SPDX-License-Identifier: BSD-3-Clause
"""`vmap:` on schemas that myns does not have, against a call for each example."""

import pytest
import torch
from torch import vmap
from torch.utils._python_dispatch import TorchDispatchMode


class Calls(TorchDispatchMode):
    """How often an operator is called."""

    def __init__(self, op) -> None:
        super().__init__()
        self.op, self.count = op.default, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is self.op
        return func(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def only_own_rules():
    """torch's own loop raises, so that what passes is a rule of ours."""
    torch._C._functorch._set_vmap_fallback_enabled(False)
    yield
    torch._C._functorch._set_vmap_fallback_enabled(True)


@pytest.mark.parametrize("dims", [(0, None), (1, None), (None, 0), (0, 0), (2, 1)])
def test_lists_and_missing_tensors_broadcast(argtest, dims) -> None:
    x, y, weight = torch.randn(4, 4, 4), torch.randn(4), torch.randn(4, 4)

    def call(x, weight):
        return argtest.weighted([x, y], weight)

    total, scaled = vmap(call, dims)(x, weight)
    for index in range(4):
        own = [t if d is None else t.select(d, index) for t, d in zip((x, weight), dims)]
        expected = call(*own)
        torch.testing.assert_close((total[index], [s[index] for s in scaled]), expected)


def test_no_weight(argtest) -> None:
    x = torch.randn(4, 3)
    total, scaled = vmap(lambda x: argtest.weighted([x, x], None))(x)
    torch.testing.assert_close((total, scaled), (2 * x + 1, [4 * x + 2, 6 * x + 3]))


@pytest.mark.parametrize(
    "dims", [(0, 0, None), (1, 0, None), (0, None, None), (None, 0, None), (None, None, 0)]
)
@pytest.mark.parametrize("rank", [2, 1])
def test_rows_fold_and_what_belongs_to_all_rows_does_not(argtest, dims, rank) -> None:
    shapes = [(4, 5), (4,), (5,)] if rank == 2 else [(5,), (), (5,)]
    values = [torch.randn(shape) for shape in shapes]
    batch = [v if d is None else torch.stack([v, 2 * v, v - 1], d) for v, d in zip(values, dims)]
    result = vmap(argtest.rows, dims)(*batch)
    for index in range(3):
        own = [b if d is None else b.select(d, index) for b, d in zip(batch, dims)]
        torch.testing.assert_close(result[index], argtest.rows(*own))


def test_one_call_or_one_for_each_example(argtest) -> None:
    x, y, weight = torch.randn(7, 4, 5), torch.randn(7, 4), torch.randn(7, 5)
    for dims, expected in (((0, 0, None), 1), ((0, 0, 0), 7)):
        with Calls(argtest.rows) as calls:
            vmap(argtest.rows, dims)(x, y, weight if dims[2] == 0 else weight[0])
        assert calls.count == expected


def turned(x, weight, turns):
    """The composite of ATen's operators that argtest::turned is."""
    rows = x if x.dim() > 1 else x.unsqueeze(0)
    found = torch.stack([rows.roll(turn, -1) for turn in turns], 1).flatten(0, 1)
    return found if weight is None else found * weight


@pytest.mark.parametrize("dims", [(0, None), (1, None), (-1, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("turns", [[1], [0, 2, -1], []])
@pytest.mark.parametrize("shape", [(5,), (4, 5), (0, 5), (2, 4, 5)])
def test_a_row_becomes_several(argtest, shape, turns, dims) -> None:
    if not turns:
        assert_both_refuse(lambda x: argtest.turned(x, None, turns),
                           lambda x: turned(x, None, turns), torch.randn(3, *shape))  # fmt: skip
        return
    x, weight = torch.randn(shape), torch.randn(5)
    values = [v if d is None else torch.stack([v, 2 * v, v - 1], d)
              for v, d in zip((x, weight), dims)]  # fmt: skip
    actual = vmap(lambda x, w: argtest.turned(x, w, turns), dims)(*values)
    torch.testing.assert_close(actual, vmap(lambda x, w: turned(x, w, turns), dims)(*values))


def assert_both_refuse(ours, theirs, x) -> None:
    for call in (ours, theirs):
        with pytest.raises(RuntimeError, match="non-empty"):
            vmap(call)(x)


def test_a_row_becomes_several_in_nested_batches(argtest) -> None:
    x = torch.randn(3, 2, 4, 5)
    for inner in range(3):
        actual = vmap(vmap(lambda x: argtest.turned(x, None, [1, 2]), inner), 1)(x)
        expected = vmap(vmap(lambda x: turned(x, None, [1, 2]), inner), 1)(x)
        torch.testing.assert_close(actual, expected)


def test_a_row_becomes_several_in_one_call(argtest) -> None:
    for shape, expected in (((7, 4, 5), 1), ((7, 5), 1), ((7, 2, 4, 5), 7)):
        with Calls(argtest.turned) as calls:
            vmap(lambda x: argtest.turned(x, None, [1, 2]))(torch.randn(shape))
        assert calls.count == expected


def spread(x, weight=None, times=1):
    """The composite of ATen's operators that argtest::spread is."""
    centred = x - x.mean(-1, True) if x.dim() > 1 else x / x.sum()
    repeated = centred * x.sum() if times > 1 else centred
    return repeated if weight is None else repeated * weight


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("shape", [(6, 5), (6, 4, 5), (6, 4, 3, 5)])
def test_a_condition_is_of_one_example(argtest, shape, times, weighted) -> None:
    x = torch.rand(shape) + 1
    weight = torch.rand(5) if weighted else None
    for dim in range(len(shape)):
        if weighted and dim == len(shape) - 1:
            continue  # the weight's size is that of the dimension
        expected = vmap(lambda x: spread(x, weight, times), dim)(x)
        actual = vmap(lambda x: argtest.spread(x, weight, times), dim)(x)
        torch.testing.assert_close(actual, expected)
        written = x.clone()
        vmap(argtest.spread_, dim, dim)(written)
        torch.testing.assert_close(written, vmap(spread, dim, dim)(x))


def test_a_condition_in_nested_batches(argtest) -> None:
    x = torch.rand(3, 2, 4, 5) + 1
    for inner in range(3):
        actual = vmap(vmap(argtest.spread, inner), 1)(x)
        torch.testing.assert_close(actual, vmap(vmap(spread, inner), 1)(x))


def test_a_condition_that_does_not_hold_makes_a_call_for_each_example(argtest) -> None:
    for shape, times, expected in (((7, 4, 5), 1, 1), ((7, 4, 5), 2, 7), ((7, 5), 1, 7)):
        with Calls(argtest.spread) as calls:
            vmap(lambda x, times=times: argtest.spread(x, None, times))(torch.rand(shape) + 1)
        assert calls.count == expected


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_written_rows(argtest, dim) -> None:
    x = torch.randn(3, 3, 3)
    y = torch.randn(3, 3)
    written = x.clone()
    result = vmap(argtest.rows_, (dim, None), out_dims=dim)(written, y)
    expected = x.movedim(dim, 0) * y
    torch.testing.assert_close(written.movedim(dim, 0), expected)
    torch.testing.assert_close(result, written)


def test_numbers_of_rows_that_differ(argtest) -> None:
    x, y = torch.randn(3, 4, 5), torch.randn(5)
    written = x.clone()
    vmap(argtest.rows_, (0, None))(written, y)  # y has five elements, and no rows
    torch.testing.assert_close(written, x * y)


def test_nested_batches_are_written(argtest) -> None:
    x, y = torch.randn(2, 3, 4, 5), torch.randn(3, 4, 5)
    written = x.clone()
    vmap(vmap(argtest.rows_), (0, None))(written, y)
    torch.testing.assert_close(written, x * y)


def test_a_batch_of_nothing(argtest) -> None:
    result = vmap(argtest.rows, (0, 0, None))(torch.ones(0, 4, 5), torch.ones(0, 4), torch.ones(5))
    assert result.shape == (0, 4, 5)
    result = vmap(argtest.rows, (None, None, 0))(torch.ones(4, 5), torch.ones(4), torch.ones(0, 5))
    assert result.shape == (0, 4, 5)


def test_an_operator_that_does_not_keep_its_rule(argtest) -> None:
    with pytest.raises(RuntimeError, match="total is declared 'pointwise', and has a result"):
        vmap(argtest.total)(torch.ones(3, 4))
    with pytest.raises(RuntimeError, match="first_row is declared 'leading', and has a result"):
        vmap(argtest.first_row)(torch.ones(3, 4, 5))


def test_an_unbatched_tensor_cannot_be_written(argtest) -> None:
    x = torch.ones(4, 5)
    with pytest.raises(RuntimeError, match="rows_ writes to 'x', which is not batched"):
        vmap(argtest.rows_, (None, 0))(x, torch.randn(3, 4, 5))
    torch.testing.assert_close(x, torch.ones(4, 5))


def test_one_graph_for_all_batch_sizes(argtest) -> None:
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph

    compiled = torch.compile(
        vmap(argtest.rows, (0, 0, None)), fullgraph=True, dynamic=True, backend=backend
    )
    for size in (3, 5, 8):
        x, y, weight = torch.randn(size, 4, 5), torch.randn(size, 4), torch.randn(5)
        torch.testing.assert_close(compiled(x, y, weight), x * weight + y[..., None])
    assert len(graphs) == 1
