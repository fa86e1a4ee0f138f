# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/rearrangement.h against aten's derivatives."""

import pytest
import torch
from aten_oracle import (
    REAL_AND_COMPLEX,
    assert_reverse,
    assert_vmaps,
    directional_gradients,
    sample,
    sample_like,
)
from torch.testing import assert_close

ops = torch.ops.derivative_helpers
forward_ad = torch.autograd.forward_ad

# The layout of the input, (size, stride, offset), and that of the view. No input holds more than 24
# elements.
STRIDED = {
    "part": (((3, 4), (4, 1), 0), ((2, 2), (4, 2), 1)),
    "default offset": (((3, 4), (4, 1), 5), ((2, 2), (4, 1), None)),
    "view begins first": (((2, 2), (3, 1), 6), ((3,), (4,), 2)),
    "view ends last": (((2, 2), (3, 1), 1), ((3,), (4,), 2)),
    "transposed input": (((3, 4), (1, 3), 0), ((4, 2), (3, 1), 1)),
    "transposed view": (((3, 4), (4, 1), 0), ((4, 3), (1, 4), 0)),
    "overlapping view": (((12,), (1,), 0), ((4, 3), (2, 1), 1)),
    "diagonal view": (((12,), (1,), 0), ((3, 3, 2), (1, 1, 4), 0)),
    "expanded view": (((3, 2), (2, 1), 0), ((4, 3, 5), (0, 2, 0), 1)),
    "expanded overlapping view": (((9,), (1,), 0), ((2, 3, 3), (0, 1, 1), 0)),
    "expanded input": (((4, 3), (0, 1), 0), ((3,), (1,), 0)),
    "expanded both": (((4, 3), (0, 1), 2), ((3, 2), (1, 0), 2)),
    "overlapping input": (((3, 3), (1, 1), 0), ((5,), (1,), 0)),
    "overlapping both": (((3, 3), (2, 1), 1), ((3, 4), (1, 1), 1)),
    "overlapping input beside the view": (((2, 3), (2, 1), 0), ((7,), (1,), 0)),
    "odd stride of one element": (((1, 3), (0, 1), 0), ((3, 1), (1, 7), 0)),
    "scalar view": (((2, 3), (3, 1), 0), ((), (), 4)),
    "scalar input": (((), (), 3), ((2,), (0,), 3)),
    "empty view": (((2, 3), (3, 1), 0), ((0, 2), (1, 1), 1)),
    "empty expanded view": (((2, 3), (3, 1), 0), ((2, 0), (0, 1), 0)),
    "empty input": (((0, 3), (3, 1), 0), ((0,), (1,), 0)),
}


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize("case", STRIDED)
def test_as_strided_backward(case, dtype):
    layout, view = STRIDED[case]
    assert_reverse(
        lambda x: x.as_strided(*view),
        lambda grad, x, result: ops.as_strided_backward(grad, x, *view),
        sample(24, dtype=dtype).as_strided(*layout),
        # aten's second derivative is NaN at locations that an overlapping input does not reach.
        twice=case != "overlapping input beside the view",
    )


@pytest.mark.parametrize("case", STRIDED)
def test_as_strided_backward_is_differentiable(case):
    layout, view = STRIDED[case]
    x = sample(24).as_strided(*layout)
    grad = sample(*view[0]).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda grad: ops.as_strided_backward(grad, x, *view), grad, check_forward_ad=True
    )


@pytest.mark.parametrize("case", STRIDED)
def test_as_strided_backward_has_the_layout_of_the_input(case):
    layout, view = STRIDED[case]
    x = sample(24).as_strided(*layout)
    gradient = ops.as_strided_backward(sample(*view[0]), x, *view)
    assert (gradient.shape, gradient.stride()) == (x.shape, x.stride())


@pytest.mark.parametrize("case", STRIDED)
def test_vmap_of_as_strided_backward(case):
    layout, view = STRIDED[case]
    x = sample(24).as_strided(*layout)
    assert_vmaps(lambda grad: ops.as_strided_backward(grad, x, *view), sample(2, *view[0]))


SCATTERED = {
    "part": ((2, 2), (4, 2), 1),
    "default offset": ((2, 2), (4, 1), None),
    "all": ((4, 3), (1, 4), 0),
    "empty": ((0, 2), (1, 1), 1),
    "scalar": ((), (), 5),
}


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize("case", SCATTERED)
def test_as_strided_scatter_backward(case, dtype):
    view = SCATTERED[case]
    src = sample(*view[0], dtype=dtype, seed=1)

    def operator(x):
        # In place of as_strided_scatter, whose derivative by x is wrong in aten: it is gradcheck's
        # expected failure there.
        result = x.clone()
        result.as_strided(*view).copy_(src)
        return result

    assert_reverse(
        operator,
        lambda grad, x, result: ops.as_strided_scatter_backward(grad, x, src, *view),
        sample(3, 4, dtype=dtype),
    )


@pytest.mark.parametrize(
    "layout",
    [
        ((3, 4), (4, 1), 5),
        ((4, 3), (1, 4), 0),
        ((2, 3), (6, 2), 2),
        ((3, 3), (1, 1), 0),
    ],
)
def test_as_strided_scatter_backward_of_other_layouts(layout):
    """Here aten has no derivative, or ignores the offset: what `src` hides has no gradient."""
    view = ((2, 2), (4, 1), 6)
    x = torch.zeros(24).as_strided(*layout)
    hidden = x.as_strided_scatter(torch.ones(2, 2), *view)
    gradient = ops.as_strided_scatter_backward(torch.ones_like(hidden), x, torch.ones(2, 2), *view)
    assert_close(gradient, 1 - hidden)


REPEATS = {
    "some": ((2, 1, 3), (2, 3)),
    "same rank": ((3, 2), (2, 3)),
    "ones": ((1, 1), (2, 3)),
    "new dims": ((2, 1, 1, 1), (3,)),
    "scalar": ((3, 2), ()),
    "scalar once": ((), ()),
    "never": ((0, 2), (2, 3)),
    "empty": ((2, 2), (0, 3)),
}


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize("case", REPEATS)
def test_repeat_backward(case, dtype):
    repeats, shape = REPEATS[case]
    assert_reverse(
        lambda x: x.repeat(repeats),
        lambda grad, x, result: ops.repeat_backward(grad, repeats, x.shape),
        sample(*shape, dtype=dtype),
    )


@pytest.mark.parametrize(
    "bounds", [(None, None, 1), (1, None, 2), (None, -1, 1), (-3, 4, 3), (2, 2, 1), (1, 99, 1)]
)
@pytest.mark.parametrize("dim", [0, -1])
def test_slice_backward_wrapper(dim, bounds):
    assert_reverse(
        lambda x: torch.ops.aten.slice(x, dim, *bounds),
        lambda grad, x, result: ops.slice_backward_wrapper(grad, x.shape, dim, *bounds),
        sample(5, 4),
    )


@pytest.mark.parametrize("pad", [(1, 2), (1, 0, 0, 2), (-1, 2), (-1, -1, 3, -2), ()])
@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
def test_constant_pad_nd_backward(pad, dtype):
    assert_reverse(
        lambda x: torch.constant_pad_nd(x, pad, 2),
        lambda grad, x, result: ops.constant_pad_nd_backward(grad, pad),
        sample(3, 4, dtype=dtype),
    )


def assert_split_backward(operator, backward, x, missing):
    """The gradient of the pieces, `missing` of which are not used, and its derivative."""
    x = x.requires_grad_()
    used = [None if i in missing else piece for i, piece in enumerate(operator(x))]
    grads = [None if p is None else sample_like(p, seed=1).requires_grad_() for p in used]
    defined = [grad for grad in grads if grad is not None]
    pieces = [piece for piece in used if piece is not None]
    (expected,) = torch.autograd.grad(pieces, x, defined, create_graph=True)
    actual = backward(grads, x)
    assert_close(actual, expected)
    assert_close(
        directional_gradients([actual], defined), directional_gradients([expected], defined)
    )


@pytest.mark.parametrize("missing", [(), (0,), (1,)])
@pytest.mark.parametrize("split_size", [2, 3, 5, 9])
@pytest.mark.parametrize("dim", [0, -1])
def test_split_backward(dim, split_size, missing):
    x = sample(5, 6)
    if len(missing) == len(x.split(split_size, dim)):
        missing = ()
    assert_split_backward(
        lambda x: x.split(split_size, dim),
        lambda grads, x: ops.split_backward(grads, split_size, dim, x),
        x,
        missing,
    )


def test_split_backward_of_an_empty_dimension():
    x = sample(0, 3)
    assert_close(ops.split_backward([x], 0, 0, x), x)


@pytest.mark.parametrize("missing", [(), (0,), (1, 2)])
@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
def test_split_with_sizes_backward(missing, dtype):
    sizes = [1, 0, 4]
    assert_split_backward(
        lambda x: x.split_with_sizes(sizes, -2),
        lambda grads, x: ops.split_with_sizes_backward(grads, sizes, -2, x),
        sample(5, 3, dtype=dtype),
        missing,
    )


# Shapes and dtypes of the tensors, and the dimension they are joined in.
CATS = {
    "rows": (((2, 3), (1, 3), (0, 3)), 0),
    "columns": (((2, 3), (2, 1)), -1),
    "vectors": (((2,), (0,), (3,)), -1),
    "skipped": (((2, 3), (0,), (2, 1)), 1),
    "only skipped": (((0,), (0,)), 0),
}
STACKS = {
    "first": (((2, 3), (2, 3)), 0),
    "last": (((2, 3), (2, 3), (2, 3)), -1),
    "scalars": (((), ()), 0),
    "empty": (((0, 2), (0, 2)), 1),
}
BLOCKS = {
    "matrices": ((2, 3), (1, 2)),
    "vector and scalar": ((3,), (), (2, 2)),
    "empty": ((0, 2), (2, 0), (1, 1)),
}
JOINED = {
    **{
        f"cat {name}": (
            shapes,
            lambda tensors, dim=dim: torch.cat(tensors, dim),
            lambda grad, tensors, dim=dim: ops.cat_tensors_backward(grad, tensors, dim),
            lambda tensors, dim=dim: ops.cat_jvp(tensors, dim),
        )
        for name, (shapes, dim) in CATS.items()
    },
    **{
        f"stack {name}": (
            shapes,
            lambda tensors, dim=dim: torch.stack(tensors, dim),
            lambda grad, tensors, dim=dim: ops.stack_tensors_backward(grad, dim, tensors),
            lambda tensors, dim=dim: ops.stack_jvp(tensors, dim),
        )
        for name, (shapes, dim) in STACKS.items()
    },
    **{
        f"block_diag {name}": (
            shapes,
            lambda tensors: torch.block_diag(*tensors),
            lambda grad, tensors: ops.block_diag_backward(grad, tensors),
            lambda tensors: ops.block_diag_jvp(tensors),
        )
        for name, shapes in BLOCKS.items()
    },
}


def tensors_to_join(shapes, mixed):
    """Tensors of the shapes; if `mixed`, every second one is complex."""
    dtypes = (torch.float64, torch.complex128 if mixed else torch.float64)
    return [sample(*shape, dtype=dtypes[i % 2], seed=i) for i, shape in enumerate(shapes)]


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("case", JOINED)
def test_gradients_of_joined_tensors(case, mixed):
    shapes, operator, backward, _ = JOINED[case]
    tensors = [t.requires_grad_() for t in tensors_to_join(shapes, mixed)]
    result = operator(tensors)
    grad = sample_like(result, seed=9).requires_grad_()
    expected = torch.autograd.grad(result, tensors, grad, create_graph=True)
    actual = backward(grad, tensors)
    assert_close(tuple(actual), expected)
    if expected[-1].requires_grad:
        assert_close(directional_gradients(actual, [grad]), directional_gradients(expected, [grad]))
    assert backward(None, tensors) == [None] * len(tensors)


def test_an_empty_vector_is_a_row_of_block_diag():
    """aten's derivative takes it for no row at all, and reads the next block one row too high."""
    grad = sample(2, 1)
    gradients = ops.block_diag_backward(grad, [torch.empty(0), torch.empty(1, 1)])
    assert_close(gradients, [grad[:0, 0], grad[1:]])


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("case", JOINED)
def test_tangents_of_joined_tensors(case, mixed):
    shapes, operator, _, jvp = JOINED[case]
    tensors = tensors_to_join(shapes, mixed)
    assert jvp(tensors) is None
    with forward_ad.dual_level():
        # Only the last one moves.
        moving = forward_ad.make_dual(tensors[-1], sample_like(tensors[-1], seed=5))
        duals = [*tensors[:-1], moving]
        expected = forward_ad.unpack_dual(operator(duals)).tangent
        assert_close(jvp(duals), expected)


def test_vmap_of_joined_and_split_tensors():
    grads = sample(2, 5, 3)
    tensors = [sample(2, 3), sample(3, 3)]
    whole = sample(10, 3)
    for part in range(2):
        assert_vmaps(lambda g, part=part: ops.cat_tensors_backward(g, tensors, 0)[part], grads)
    assert_vmaps(lambda g: ops.split_backward([None, g], 5, 0, whole), grads)
    assert_vmaps(lambda g: ops.repeat_backward(g, [5, 1], [1, 3]), grads)


@pytest.mark.parametrize("values", [[], [4], [1, 2, 3]])
def test_reversed_lists(values):
    assert ops.reverse_list(values) == values[::-1]
    assert ops.reverse_list_symint(values) == values[::-1]
