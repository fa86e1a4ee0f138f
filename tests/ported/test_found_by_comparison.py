# SPDX-License-Identifier: BSD-3-Clause
"""What side-by-side comparison found: rules under vmap, texts, memory with gaps, lists that the
dispatcher does not look into, writing without a formula."""

from __future__ import annotations

import pytest
import torch
from torch.func import vmap
from torch.testing import assert_close

DOUBLE = torch.double


@pytest.mark.parametrize(
    "text, size", [("", 1), (" ", 2), ("a  b", 3), ('é\t"', 4), ("a b", 5), ("\t", 5), (",", 5)]
)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_text_of_a_rule_is_compared_character_for_character(text, size, device, ops) -> None:
    x = torch.ones(1, device=device)
    assert ops.size_of_text(x, text).shape == (size,)


def of_each(op, dims, *tensors):
    """Calls for each example, stacked."""
    count = next(t.shape[d] for t, d in zip(tensors, dims) if d is not None)
    calls = [
        op(*(t if d is None else t.select(d, i) for t, d in zip(tensors, dims)))
        for i in range(count)
    ]
    if isinstance(calls[0], torch.Tensor):
        return torch.stack(calls)
    return [torch.stack(parts) for parts in zip(*calls)]


BATCHES = [
    ("dtype_by_dim", (0,), [(3,)]),
    ("dtype_by_dim", (0,), [(3, 2)]),
    ("powers", (0,), [(3, 2)]),
    ("powers", (1,), [(3, 2, 4)]),
    ("even_rows", (0,), [(2, 3, 3)]),
    ("even_rows", (0,), [(3, 2, 3)]),
    ("even_rows", (0,), [(3, 2)]),
    ("even_rows", (0,), [(2, 3)]),
    ("few_rows", (0,), [(2, 2, 3)]),
    ("few_rows", (0,), [(2, 5, 3)]),
    ("few_rows", (1,), [(2, 5)]),
    ("vectors_only", (0,), [(4, 3)]),
    ("vectors_only", (0,), [(4, 3, 2)]),
    ("of_second_last", (0,), [(2, 3, 4)]),
    ("of_second_last", (0,), [(3, 2, 4)]),
    ("of_second_last", (0,), [(2, 5, 3, 4)]),
    ("of_second_last", (0,), [(2, 6)]),
    ("as_many_rows", (0, 0), [(2, 3, 1), (2, 3, 2)]),
    ("as_many_rows", (0, None), [(2, 3, 1), (3, 2)]),
    ("as_many_rows", (0, None), [(2, 3, 1), (6, 2)]),
    ("as_many_rows", (0, 0), [(2, 3), (2, 4)]),
    ("as_many_rows", (0, 0), [(2, 3), (2, 3)]),
    ("summed_last", (0,), [(2, 3)]),
    ("summed_last", (1,), [(2, 3, 4)]),
    ("twice_beside", (0, 0), [(5, 3, 2), (5, 3)]),
    ("twice_beside", (0, 0), [(5, 3, 2), (5, 2)]),
    ("last_beside", (0, 0), [(5, 3, 2), (5, 3)]),
    ("last_beside", (0, 0), [(5, 3, 3), (5, 3)]),
    ("last_beside", (0, 0), [(5, 3), (5, 3)]),
    ("promoted_rows", (0, 0), [(2, 3), (2,)]),
    ("promoted_rows", (0, 0), [(2, 3, 4), (2, 3)]),
    ("with_rank", (0, 0), [(2, 3), (2,)]),
    ("with_rank", (0, 0), [(2, 3), (2, 3)]),
    ("chosen_even", (0, 0), [(2, 3, 1), (2, 3, 1)]),
    ("chosen_even", (0, 0), [(2, 2, 3), (2, 2, 3)]),
    ("up_to", (0, 0), [(2, 2, 2, 2, 2), (2, 2, 1)]),
    ("front_of_last", (0,), [(2, 3)]),
    ("front_of_last", (0,), [(2, 3, 4)]),
    ("replaced_last", (0, 0), [(2, 2), (2, 2, 3)]),
    ("replaced_last", (0, 0), [(2, 2, 3), (2, 2, 3)]),
    ("replaced_last", (0, 0), [(2, 3), (2, 3)]),
    ("like_weight", (0, None), [(3, 4), (3,)]),
    ("like_weight", (0, None), [(2, 3, 4), (6,)]),
    ("softmax_each", (0, 0), [(5, 3, 2), (5, 4)]),
    ("softmax_each", (0, 0), [(5, 3), (5, 3)]),
]


@pytest.mark.parametrize("name, dims, shapes", BATCHES)
@pytest.mark.parametrize("traced", [False, True])
def test_a_batch_is_what_its_examples_are(name, dims, shapes, traced, ops) -> None:
    torch._dynamo.reset()
    op = getattr(ops, name)
    # of two dtypes, for rules that promote
    tensors = [torch.rand(s, dtype=(torch.float, DOUBLE)[i]) for i, s in enumerate(shapes)]

    def batched(*tensors):
        return vmap(lambda *t: op(*t), dims)(*tensors)

    called = torch.compile(batched, backend="aot_eager", fullgraph=True) if traced else batched
    try:
        expected = of_each(op, dims, *tensors)
    except (RuntimeError, IndexError):
        with pytest.raises((RuntimeError, IndexError)):
            called(*tensors)
        return
    found = called(*tensors)
    found = found if isinstance(found, torch.Tensor) else list(found)
    assert_close(found, expected)


LISTS = [
    ("like_chosen", [(2, 2, 1), (2, 2, 2), (2, 2, 3)], [(2, 2, 1)]),
    ("like_chosen", [(2, 3, 1), (2, 3, 2)], [(2, 3, 1)]),
    ("like_chosen_pointwise", [(3, 2), (3, 2)], [(3, 2)]),
    ("each_chosen", [(2, 2, 3)], [(2, 2, 3), (2, 2, 1)]),
    ("each_chosen", [(2, 5, 3)], [(2, 2, 3)]),
]


@pytest.mark.parametrize("name, shapes, others", LISTS)
def test_a_batch_of_lists_is_what_its_examples_are(name, shapes, others, ops) -> None:
    op, is_list = getattr(ops, name), name == "each_chosen"
    count = len(shapes)
    tensors = [torch.rand(s, dtype=(torch.float, DOUBLE)[i % 2])
               for i, s in enumerate([*shapes, *others])]  # fmt: skip

    def call(*tensors):
        xs, ys = list(tensors[:count]), list(tensors[count:])
        found = op(xs, ys) if is_list else op(xs, ys[0])
        return tuple(found) if is_list else found

    expected = of_each(call, (0,) * len(tensors), *tensors)
    found = vmap(call)(*tensors)
    assert_close(list(found) if is_list else found, expected)


def test_a_number_beside_rows_alone_is_that_of_each_example(ops) -> None:
    for shape in ((3, 3), (3, 4), (3, 2, 4)):
        x, n = torch.zeros(shape), torch.tensor([1.0, 2, 3])
        expected = torch.stack([ops.row_and_number_(a.clone(), b) for a, b in zip(x, n)])
        assert_close(vmap(ops.row_and_number_)(x.clone(), n), expected)


@pytest.mark.parametrize("read", [lambda b: b.t(), lambda b: b[:1].expand(3, 3)])
def test_what_is_read_and_copied_shares_no_memory_with_what_is_written(read, ops) -> None:
    def call(b):
        b = b.clone()
        ops.add_rows(b, read(b))
        return b

    with pytest.raises(RuntimeError, match="portedtest::add_rows: 'y' and 'n' share memory"):
        vmap(call)(torch.arange(18.0).view(2, 3, 3))


def test_results_that_are_no_broadcast_are_refused(ops) -> None:
    """Two rows of one that is not batched are no two examples."""
    x, y, w = torch.rand(2, 2, 3), torch.rand(2, 3), torch.rand(2)
    with pytest.raises(RuntimeError, match="portedtest::twice_both is declared 'pointwise'"):
        vmap(lambda x, y: ops.twice_both([x], [y]), (0, None))(x, y)
    lists = [torch.rand(3), torch.rand(4, 2, 3)]
    expected = [torch.stack([lists[0] + w[i] for i in range(2)]),
                torch.stack([lists[1] + w[i] for i in range(2)])]  # fmt: skip
    assert_close(vmap(ops.sums_of_list.default, (None, 0))(lists, w), expected)


def lazy(kind: str, x: torch.Tensor) -> torch.Tensor:
    """A tensor of the same values, laid out or marked in another way."""
    if kind == "transposed":
        return x.t().contiguous().t()
    if kind == "columns":
        return torch.cat([x, x], 1)[:, : x.shape[1]]
    return torch._neg_view(-x) if kind == "negated" else x


PLACES = ("x", "l", "m", "n")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["transposed", "columns", "negated"])
@pytest.mark.parametrize("backend", [None, "aot_eager", "inductor"])
def test_every_tensor_is_given_as_the_kernel_reads_it(place, kind, backend, ops) -> None:
    if backend == "inductor" and kind == "negated":
        pytest.skip("Inductor of torch takes an input with the negative bit for one without")
    torch._dynamo.reset()
    tensors = {name: torch.rand(2, 3, dtype=DOUBLE) for name in PLACES}
    given = tensors | {place: lazy(kind, tensors[place])}

    def call(t):
        return ops.raw_sums(t["x"], [t["l"]], [None, t["m"]], [t["n"]])

    called = torch.compile(call, backend=backend, fullgraph=True) if backend else call
    assert_close(called(given), call(tensors))


@pytest.mark.parametrize("kind", ["negated", "plain"])
def test_a_list_that_may_be_missing_is_read_as_it_is(kind, ops) -> None:
    x = torch.rand(2, 3, dtype=DOUBLE)
    y = lazy(kind, x.clone())
    assert_close(ops.raw_sums_any(x, [y, x]), ops.raw_sums_any(x, [x, x]))
    assert_close(ops.raw_sums_any(x), ops.raw_sums_any(x, []))


SHARED = {
    "the same": lambda c: [c.t(), c.t()],
    "one object": lambda c: [c.t()] * 2,
    "in part": lambda c: [c[:, :3], c[:, 1:]],
    "one is no copy": lambda c: [c, c.t()],
}


@pytest.mark.parametrize("name", ["add_to_all", "add_to_all_"])
@pytest.mark.parametrize("place", SHARED)
def test_copies_of_a_list_that_is_written_to_share_no_memory(name, place, ops) -> None:
    c = torch.zeros(4, 4)
    with pytest.raises(RuntimeError, match=f"portedtest::{name}: two tensors of '.*' share memory"):
        getattr(ops, name)(SHARED[place](c), torch.ones(()))
    assert_close(c, torch.zeros(4, 4))
    getattr(ops, name)([c[:, :2], c[:, 2:], c[:0].t()], torch.ones(()))
    assert_close(c, torch.ones(4, 4))
    getattr(ops, name)([c, c], torch.ones(()))  # laid out so: no copies
    assert_close(c, torch.full((4, 4), 3.0))


def test_strides_of_one_element_say_nothing(ops) -> None:
    b = torch.arange(20.0).view(4, 5)
    x, out = b[0:1, ::2], b[0, ::2].unsqueeze(0)
    assert x.stride() != out.stride()
    expected = 2 * x
    ops.copied_strided(x, out=out)
    assert_close(x, expected)


# what is written to and what is read, of a matrix of 4 x 4
APART = {
    "rows": (lambda b: b[:2], lambda b: b[2:]),
    "columns": (lambda b: b[:, :2], lambda b: b[:, 2:]),
    "every second": (lambda b: b[:, ::2], lambda b: b[:, 1::2]),
}
MEET = {
    "columns": (lambda b: b[:, :2], lambda b: b[:, 1:3]),
    "a row of the transposed": (lambda b: b.t(), lambda b: b.t()[1:2]),
    "a column": (lambda b: b, lambda b: b[:, 1:2]),
}


@pytest.mark.parametrize("name", ["add_copied", "add_to_copied"])
@pytest.mark.parametrize("place", APART)
def test_parts_of_one_memory_are_copied(name, place, ops) -> None:
    written, read = APART[place]
    b, c = torch.arange(16.0).view(4, 4), torch.arange(16.0).view(4, 4)
    getattr(ops, name)(written(b), read(b))
    written(c).add_(1).add_(read(c).clone())
    assert_close(b, c)


# The copy of which argument would not see the other one; of the others none is made.
COPIED = {("add_copied", place): "n" for place in MEET} | {
    ("add_to_copied", "columns"): "y",
    ("add_to_copied", "a row of the transposed"): "y",
}


@pytest.mark.parametrize("name", ["add_copied", "add_to_copied"])
@pytest.mark.parametrize("place", MEET)
def test_a_copy_of_what_is_written_to_is_refused(name, place, ops) -> None:
    written, read = MEET[place]
    b, c = torch.arange(16.0).view(4, 4), torch.arange(16.0).view(4, 4)
    if copied := COPIED.get((name, place)):
        with pytest.raises(RuntimeError, match=f"portedtest::{name}: '{copied}' shares memory"):
            getattr(ops, name)(written(b), read(b))
        assert_close(b, c)
        return
    getattr(ops, name)(written(b), read(b))
    y = written(c)
    y.add_(1)
    y.add_(read(c).clone())
    assert_close(b, c)


@pytest.mark.parametrize("place", MEET)
def test_results_that_overlap_an_input_in_part_are_refused(place, ops) -> None:
    written, read = MEET[place]
    b = torch.arange(16.0).view(4, 4)
    with pytest.raises(RuntimeError, match="portedtest::zero_and_add.*overlap"):
        ops.zero_and_add(read(b).expand_as(written(b)), out=written(b))
    assert_close(b, torch.arange(16.0).view(4, 4))


@pytest.mark.parametrize(
    "view", [lambda b: b[:, :2], lambda b: b.t()[1:, :2], lambda b: b[::2], lambda b: b]
)
def test_a_result_that_is_the_input_is_computed_aside(view, ops) -> None:
    b, c = torch.arange(16.0).view(4, 4), torch.arange(16.0).view(4, 4)
    ops.zero_and_add(view(b), out=view(b))
    assert_close(b, c)


def refuses_backward(results, inputs) -> None:
    with pytest.raises(RuntimeError, match="portedtest::add_.*without_formula.*not implemented"):
        torch.autograd.grad(results, inputs, allow_unused=True)


@pytest.mark.parametrize("base_requires_grad", [False, True])
@pytest.mark.parametrize("view", [lambda y: y[2:], lambda y: y, lambda y: y.view(2, 2)[1]])
def test_the_gradient_of_what_was_written_to_a_view_is_refused(
    view, base_requires_grad, ops
) -> None:
    c = torch.ones(2, requires_grad=True)
    y = torch.ones(4, requires_grad=base_requires_grad) * 1
    target = view(y)
    ops.add_without_formula_(target, c if target.shape == c.shape else torch.cat([c, c]))
    refuses_backward(y.sum(), [c])


@pytest.mark.parametrize("base_requires_grad", [False, True])
def test_the_same_where_other_arguments_come_first(base_requires_grad, ops) -> None:
    p, q = (torch.ones(2, requires_grad=True) for _ in range(2))
    y = torch.ones(4, requires_grad=base_requires_grad) * 1
    z = torch.ones(4, requires_grad=base_requires_grad) * 1
    ops.add_second_without_formula(p, y[2:], [z[:2], torch.ones(2)], q.sum())
    for result in (y, z):
        for asked in ([p], [q], [p, q]):
            refuses_backward(result.sum(), asked)


@pytest.mark.parametrize("shape, n", [((2,), 3), ((2, 4), 4), ((2, 4), 3)])
def test_the_second_of_two_conditions_is_not_asked_for_what_is_not_there(shape, n, ops) -> None:
    torch._dynamo.reset()
    called = torch.compile(
        lambda x, n: ops.three_or_as_long(x, n), backend="aot_eager", dynamic=True, fullgraph=True
    )
    x = torch.rand(shape)
    assert_close(called(x, n), ops.three_or_as_long(x, n))


INF, NAN, LARGE = float("inf"), float("nan"), 2**53
NUMBERS = [
    (3, 3, 0.5), (0, 0, -0.0), (1, 1.5, 1.0), (-1, -1.5, -0.5), (LARGE + 1, LARGE, float(LARGE)),
    (LARGE, LARGE + 1, float(LARGE)), (2**63 - 1, 2.0**63, 2.0**63), (-(2**63), -INF, INF),
    (5, NAN, NAN), (1, True, -INF), (0, False, 1e300),
]  # fmt: skip


@pytest.mark.parametrize("n, q, f", NUMBERS)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_numbers_are_compared_as_in_python(n, q, f, device, ops) -> None:
    holds = [n == q, n < q, n >= q, q <= n, n == f, n < f, f < n, q != f, -q < f, q in (0, 1.5)]
    x = torch.ones(1, device=device)
    assert list(ops.compared(x, n, q, f).shape) == [1 if held else 2 for held in holds]


def test_numbers_that_are_symbols_are_compared(ops) -> None:
    torch._dynamo.reset()
    call = torch.compile(
        lambda x, y: ops.compared(y, x.shape[0], x.shape[1]), backend="aot_eager", dynamic=True
    )
    for sizes in ((2, 3), (3, 3), (4, 3)):
        x, y = torch.ones(sizes), torch.ones(1)
        assert call(x, y).shape == ops.compared(y, *sizes).shape


@pytest.mark.parametrize("k, size", [(None, 4), (0, 4), (3, 3)])
def test_or_is_pythons(k, size, ops) -> None:
    torch._dynamo.reset()
    called = torch.compile(ops.sized_or, backend="aot_eager", dynamic=True, fullgraph=True)
    for op in (ops.sized_or, called):
        assert op(torch.ones(2), k).shape == (k or 4,) == (size,)


REFUSED = [
    ("words_of_rows", (torch.ones(2),), "want rows, got None"),
    ("words_of_rows", (torch.ones(2, 2), 0), "want parts, got 0 of None"),
    ("broadcast_of", (torch.ones(4), torch.ones(3)), "in the rule of portedtest::broadcast_of"),
    ("reduced_at", (torch.ones(4), 2), "in the rule of portedtest::reduced_at"),
    ("joined", ([torch.ones(2, 3), torch.ones(2)],), "in the rule of portedtest::joined"),
]


@pytest.mark.parametrize("name, given, words", REFUSED)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_an_error_of_a_rule_says_whose_it_is(name, given, words, device, ops) -> None:
    given = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.to(device), given)
    with pytest.raises((RuntimeError, IndexError), match=words):
        getattr(ops, name)(*given)
