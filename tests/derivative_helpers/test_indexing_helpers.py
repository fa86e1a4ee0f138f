# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/indexing.h against the derivatives of aten's operators."""

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
REDUCTIONS = ("sum", "mean", "prod", "amax", "amin")


def index(*values):
    return torch.tensor(values, dtype=torch.long)


# Shape of self, dim, index, shape of the source.
SCATTERS = {
    "repeated": ((3, 4), 1, torch.tensor([[0, 0, 1], [3, 3, 3], [2, 1, 2]]), (3, 3)),
    "dim-0": ((3, 2), -2, torch.tensor([[2, 0], [2, 2], [0, 0], [2, 1]]), (4, 2)),
    "scalar": ((), 0, torch.tensor(0), ()),
    "none": ((3,), 0, index(), (0,)),
}
INDEX_REDUCES = {
    "repeated": ((3, 4), 1, index(0, 3, 0), (3, 3)),
    "dim-0": ((3, 2), -2, index(2, 0, 2, 2), (4, 2)),
    "none": ((3, 2), 0, index(), (0, 2)),
}


def scatter_reduce(x, dim, where, source, reduce, include_self):
    return x.scatter_reduce(dim, where, source, reduce, include_self=include_self)


def index_reduce(x, dim, where, source, reduce, include_self):
    return x.index_reduce(dim, where, source, reduce, include_self=include_self)


def assert_reduce_backward(operator, helper, x, dim, where, source, reduce, include_self):
    """First and second derivatives by self and the source."""
    x, source = x.requires_grad_(), source.requires_grad_()
    result = operator(x, dim, where, source, reduce, include_self)
    grad = sample_like(result, seed=3).requires_grad_()
    expected = torch.autograd.grad(result, (x, source), grad, create_graph=True)
    actual = helper(grad, x, dim, where, source, reduce, include_self, result)
    assert_close(actual, expected)
    inputs = (x, source, grad)
    assert_close(directional_gradients(actual, inputs), directional_gradients(expected, inputs))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("case", SCATTERS)
def test_scatter_reduce_backward(case, reduce, include_self):
    shape, dim, where, source_shape = SCATTERS[case]
    assert_reduce_backward(
        scatter_reduce,
        ops.scatter_reduce_backward,
        sample(*shape),
        dim,
        where,
        sample(*source_shape, seed=1),
        reduce,
        include_self,
    )


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", [name for name in REDUCTIONS if name != "sum"])
@pytest.mark.parametrize("case", INDEX_REDUCES)
def test_index_reduce_backward(case, reduce, include_self):
    shape, dim, where, source_shape = INDEX_REDUCES[case]
    assert_reduce_backward(
        index_reduce,
        ops.index_reduce_backward,
        sample(*shape),
        dim,
        where,
        sample(*source_shape, seed=1),
        reduce,
        include_self,
    )


@pytest.mark.parametrize(
    ("operator", "helper"),
    [
        (scatter_reduce, "scatter_reduce_backward"),
        (index_reduce, "index_reduce_backward"),
    ],
)
@pytest.mark.parametrize("include_self", [True, False])
def test_product_with_zeros(operator, helper, include_self):
    """Products of none to three zeros, of self or the source, have both derivatives."""
    where = index(0, 0, 1, 1, 1, 2, 2, 3)
    x = torch.tensor([2.0, 0.0, 0.0, 0.0, 0.0], dtype=torch.float64, requires_grad=True)
    source = torch.tensor([0.0, 3.0, 0.0, 0.0, 4.0, 0.0, 5.0, 6.0]).double().requires_grad_()
    grad = sample(5, seed=2).requires_grad_()

    def backward(grad, x, source):
        result = operator(x, 0, where, source, "prod", include_self)
        helper_op = getattr(ops, helper)
        return helper_op(grad, x, 0, where, source, "prod", include_self, result)

    result = operator(x, 0, where, source, "prod", include_self)
    expected = torch.autograd.grad(result, (x, source), grad)
    assert_close(backward(grad, x, source), expected)
    assert torch.autograd.gradcheck(backward, (grad, x, source))


@pytest.mark.parametrize("helper", ["scatter_reduce_backward", "index_reduce_backward"])
def test_equal_extremes_share_the_gradient(helper):
    x = torch.tensor([5.0, 1.0])
    source = torch.tensor([5.0, 5.0, 3.0])
    result = torch.tensor([5.0, 3.0])
    arguments = (x, 0, index(0, 0, 1), source, "amax")
    with_self, without_self = (
        getattr(ops, helper)(torch.ones(2), *arguments, include_self, result)
        for include_self in (True, False)
    )
    third = 1 / 3
    assert_close(with_self, (torch.tensor([third, 0]), torch.tensor([third, third, 1])))
    assert_close(without_self, (torch.tensor([0.0, 0]), torch.tensor([0.5, 0.5, 1])))


@pytest.mark.parametrize("helper", ["scatter_reduce_backward", "index_reduce_backward"])
def test_reduce_without_gradient_or_with_unknown_reduction(helper):
    backward = getattr(ops, helper)
    x = torch.ones(2)
    assert backward(None, x, 0, index(0), x[:1], "amax", True, x) == (None, None)
    with pytest.raises(RuntimeError, match=r"reduce must be .* got median"):
        backward(x, x, 0, index(0), x[:1], "median", True, x)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
@pytest.mark.parametrize("case", SCATTERS)
def test_scatter_reduce_jvp(case, reduce, include_self):
    shape, dim, where, source_shape = SCATTERS[case]
    x, source = sample(*shape), sample(*source_shape, seed=1)
    if shape and source.numel() > 0:
        source.view(-1)[0] = x.view(-1)[0]  # a tie in some of the cases
    tangents = (sample_like(x, seed=2), sample_like(source, seed=3))

    def operator(x, source):
        return scatter_reduce(x, dim, where, source, reduce, include_self)

    for x_t, source_t in (tangents, (tangents[0], None), (None, tangents[1])):
        dense = [
            torch.zeros_like(primal) if t is None else t
            for primal, t in ((x, x_t), (source, source_t))
        ]
        result, expected = torch.func.jvp(operator, (x, source), tuple(dense))
        actual = ops.scatter_reduce_jvp(
            x, x_t, dim, where, source, source_t, reduce, include_self, result
        )
        assert_close(actual, expected)


def test_scatter_reduce_jvp_without_tangents_or_of_a_product():
    x = torch.ones(2)
    arguments = (0, index(0, 0), x, None)
    assert ops.scatter_reduce_jvp(x, None, *arguments, "sum", True, x) is None
    with pytest.raises(NotImplementedError, match="prod"):
        ops.scatter_reduce_jvp(x, x, *arguments, "prod", True, x)


INDICES = {
    "one": [index(2, 0, 2)],
    "second": [None, index(1, 3, 3)],
    "pairs": [index(0, 1, 1), index(2, 3, 3)],
    "broadcast": [torch.tensor([[0], [2]]), index(2, -1, 3)],
    "apart": [index(0, 1), None, index(1, 0)],
    "mask": [torch.tensor([True, False, True])],
    "none": [index()],
}


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize("case", INDICES)
def test_index_backward(case, dtype):
    indices = INDICES[case]

    def backward(grad, x, result):
        return ops.index_backward(grad.new_zeros(x.shape), indices, grad)

    assert_reverse(
        lambda x: torch.ops.aten.index(x, indices), backward, sample(3, 4, 2, dtype=dtype)
    )


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize(
    "where", [index(0, 5, 5, -1), torch.tensor([[3, 3]]), torch.tensor(4), index()]
)
def test_take_backward(where, dtype):
    for x in (sample(3, 4, dtype=dtype), sample(4, 3, dtype=dtype).t()):
        assert_reverse(
            lambda x: x.take(where), lambda grad, x, result: ops.take_backward(grad, x, where), x
        )


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize("mask_shape", [(2, 3), (3,), (), (4, 1, 1)])
def test_masked_fill_backward(mask_shape, dtype):
    mask = sample(*mask_shape, seed=5) > 0
    x = sample(2, 3, dtype=dtype)
    assert_reverse(
        lambda value: x.masked_fill(mask, value),
        lambda grad, value, result: ops.masked_fill_backward(grad, mask),
        sample(dtype=dtype),
    )


def test_masked_fill_in_place_where_nothing_sees_it():
    mask = torch.tensor([True, False])
    x = torch.ones(2)
    expected = torch.tensor([3.0, 1.0])
    kept = ops.masked_fill_inplace_if_safe(x, mask, 3)
    assert_close(kept, expected)
    assert_close(x, torch.ones(2))
    with torch.no_grad():
        assert ops.masked_fill_inplace_if_safe(x, mask, 3).data_ptr() == x.data_ptr()
    assert_close(x, expected)


@torch.no_grad()
def test_masked_fill_out_of_place_under_transforms():
    mask = torch.tensor([[True, False], [False, True]])
    x = torch.ones(2)
    filled = torch.func.vmap(lambda m: ops.masked_fill_inplace_if_safe(x, m, 3))(mask)
    assert_close(filled, x.masked_fill(mask, 3))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))
        result = ops.masked_fill_inplace_if_safe(dual, mask[0], 3)
        assert_close(torch.autograd.forward_ad.unpack_dual(dual).primal, torch.ones(2))
        assert_close(
            torch.autograd.forward_ad.unpack_dual(result).tangent, torch.tensor([0.0, 1.0])
        )


@pytest.mark.parametrize("where", [index(1, 0, 1, 3), torch.tensor([[2, 2]]), torch.tensor(1)])
@pytest.mark.parametrize("padding_idx", [-1, 1])
def test_embedding_dense_double_backward(where, padding_idx):
    def operator(grad_output):
        return torch.ops.aten.embedding_dense_backward(grad_output, where, 4, padding_idx, False)

    def backward(grad, grad_output, result):
        return ops.embedding_dense_double_backward_symint(grad, where, padding_idx)

    assert_reverse(operator, backward, sample(*where.shape, 3))


def test_vmap_over_gradients_and_over_indices():
    x = sample(3, 4)
    where = index(0, 5, 5)
    grads = sample(2, 3, seed=1)
    stacked_where = torch.stack([where, where + 1])
    assert_vmaps(lambda grad: ops.take_backward(grad, x, where), grads)
    assert_vmaps(lambda where: ops.take_backward(grads[0], x, where), stacked_where)
    assert_vmaps(lambda grad: ops.index_backward(grad.new_zeros(9), [where], grad), grads)
    assert_vmaps(
        lambda where: ops.index_backward(grads.new_zeros(9), [where], grads[0]), stacked_where
    )
    mask = index(1, 0, 1).bool()
    assert_vmaps(lambda grad: ops.masked_fill_backward(grad, mask), grads)
    assert_vmaps(
        lambda grad: ops.embedding_dense_double_backward_symint(grad, where, 5), sample(2, 6, 3)
    )


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_vmap_of_scattered_reductions(reduce):
    x, source, grads = sample(3), sample(4, seed=1), sample(2, 3, seed=2)
    where = index(0, 0, 2, 2)
    result = scatter_reduce(x, 0, where, source, reduce, True)
    for part in range(2):
        assert_vmaps(
            lambda grad, part=part: ops.scatter_reduce_backward(
                grad, x, 0, where, source, reduce, True, result
            )[part],
            grads,
        )
