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


def test_two_levels(ops) -> None:
    x, y = torch.rand(2, 3), torch.rand(4, 3)
    table = lambda f: vmap(vmap(f, (None, 0)), (0, None))  # noqa: E731
    assert_close(table(ops.times_equal)(x, y), table(torch.mul)(x, y))


def test_other_shapes_are_refused_still(ops) -> None:
    with pytest.raises(RuntimeError, match="times_equal: x must have shape"):
        vmap(ops.times_equal, (0, None))(torch.rand(4, 3), torch.rand(2))
