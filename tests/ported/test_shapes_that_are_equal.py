# SPDX-License-Identifier: BSD-3-Clause
"""`vmap: pointwise` of an operator whose rule wants arguments of one shape."""

from __future__ import annotations

import pytest
import torch
from torch.func import vmap
from torch.testing import assert_close

CALLS = {
    "first": ((0, None), (4, 3), (3,)),
    "second": ((None, 0), (3,), (4, 3)),
    "last_dim": ((1, None), (3, 4), (3,)),
    "both": ((0, 1), (4, 3), (3, 4)),
    "matrices": ((0, None), (4, 2, 3), (2, 3)),
    "scalars": ((0, None), (4,), ()),
    "no_example": ((0, None), (0, 3), (3,)),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("traced", [False, True])
def test_an_argument_that_is_not_batched(call, traced, ops) -> None:
    torch._dynamo.reset()
    dims, *shapes = CALLS[call]
    x, y = (torch.rand(shape) for shape in shapes)
    f = vmap(lambda x, y: ops.times_equal(x, y), dims)
    f = torch.compile(f, backend="aot_eager", fullgraph=True) if traced else f
    assert_close(f(x, y), vmap(torch.mul, dims)(x, y))


FLOAT, DOUBLE = torch.float32, torch.float64
# the operator, the batch dimensions, shapes, and dtypes of what is no float32
EXAMPLES = [
    ("times_equal", (0, None), [(4,), ()], {1: DOUBLE}),
    ("times_equal", (0, None), [(4, 3), (1, 3)], {}),
    ("times_equal", (0, None), [(3, 3), (3, 3)], {}),
    ("scaled_equal", (0, None, None), [(4, 3), (3,), ()], {2: DOUBLE}),
    ("scaled_equal", (0, None, None), [(4, 3), (3,), (1,)], {2: DOUBLE}),
    ("scaled_equal", (0, 0, 0), [(4, 3), (4, 3), (4,)], {}),
    ("scaled_equal", (0, 0, 0), [(4, 3), (4, 3), (4, 1)], {2: DOUBLE}),
    ("scaled_equal", (0, 0, 0), [(4, 3), (4, 3), (4, 2)], {}),
    ("scaled_equal", (None, 1, None), [(3,), (3, 4), (1, 1)], {}),
    ("equal_or_scalar", (0, None), [(4, 3), ()], {}),
    ("equal_or_scalar", (0, 0), [(4, 3), (4,)], {}),
    ("equal_or_scalar", (0, None), [(4, 3), (3,)], {}),
    ("equal_or_scalar", (0, None), [(4, 3), (4, 3)], {}),
    ("equal_or_scalar", (None, 0), [(3,), (4, 3)], {}),
    ("times_chosen", (0, None), [(4, 3), (3,)], {}),
    ("times_chosen", (0, None), [(4, 3), (1, 3)], {}),
    ("times_chosen", (0, None, None), [(4, 3), (1,), (3,)], {}),
    ("times_chosen", (0, None, 0), [(4, 3), (3,), (4, 1)], {}),
    ("times_chosen", (None, None, 1), [(3,), (1,), (3, 2)], {}),
    ("as_many", (0, None), [(4, 6), (6,)], {}),
    ("as_many", (0, None), [(4, 6), (2, 3)], {}),
    ("as_many", (None, 0), [(6,), (4, 2, 3)], {}),
    ("as_many", (0, None), [(4, 6), (4, 6)], {}),
]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("name", "dims", "sizes", "dtypes"),
    EXAMPLES,
    ids=[f"{e[0]}{i}" for i, e in enumerate(EXAMPLES)],
)
def test_a_batch_is_its_examples(name, dims, sizes, dtypes, traced, ops) -> None:
    torch._dynamo.reset()
    op = getattr(ops, name)
    arguments = [
        torch.rand(size, dtype=dtypes.get(i, FLOAT), generator=torch.Generator().manual_seed(i))
        for i, size in enumerate(sizes)
    ]
    count = next(a.size(d) for a, d in zip(arguments, dims) if d is not None)
    f = vmap(lambda *a: op(*a), dims)
    f = torch.compile(f, backend="aot_eager", fullgraph=True) if traced else f
    try:
        expected = torch.stack(
            [
                op(*(a if d is None else a.select(d, i) for a, d in zip(arguments, dims)))
                for i in range(count)
            ]
        )
    except RuntimeError as error:
        words = str(error).split(":")[0]
        with pytest.raises(Exception, match=words):
            f(*arguments)
        return
    assert_close(f(*arguments), expected)


def test_two_levels(ops) -> None:
    x, y = torch.rand(2, 3), torch.rand(4, 3)
    table = lambda f: vmap(vmap(f, (None, 0)), (0, None))  # noqa: E731
    assert_close(table(ops.times_equal)(x, y), table(torch.mul)(x, y))


def test_other_shapes_are_refused_still(ops) -> None:
    with pytest.raises(RuntimeError, match="times_equal: x must have shape"):
        vmap(ops.times_equal, (0, None))(torch.rand(4, 3), torch.rand(2))
