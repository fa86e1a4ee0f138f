# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/reduction.h against aten's autograd."""

import math

import pytest
import torch
from aten_oracle import (
    REAL_AND_COMPLEX,
    assert_differentiable,
    assert_reverse,
    assert_tangent,
    assert_vmaps,
    needs_formula,
    sample,
)
from torch.testing import assert_close

ops = torch.ops.derivative_helpers
aten = torch.ops.aten
INF = math.inf
NAN = math.nan

# shape, dims, keepdim
REDUCTIONS = [
    ((), None, False),
    ((), [0], False),
    ((), [-1], True),
    ((3,), [0], False),
    ((3, 4), None, False),
    ((3, 4), [], True),
    ((3, 4), [1], False),
    ((3, 4), [-2], True),
    ((2, 3, 4), [0, -1], False),
    ((2, 3, 4), [-1, 0], True),
    ((2, 3, 4), [2, 0, 1], False),
    ((0, 3), [1], False),
    ((3, 0), [1], False),
]
over_reductions = pytest.mark.parametrize(("shape", "dims", "keepdim"), REDUCTIONS)
over_dtypes = pytest.mark.parametrize("dtype", REAL_AND_COMPLEX, ids=str)


@over_reductions
@over_dtypes
def test_sum(shape, dims, keepdim, dtype):
    assert_reverse(
        lambda x: aten.sum.dim_IntList(x, dims, keepdim),
        lambda grad, x, _: ops.sum_backward.default(grad, x.shape, dims, keepdim),
        sample(*shape, dtype=dtype),
    )


def test_sum_takes_a_plain_list_of_dims():
    assert_reverse(
        lambda x: x.sum([0, 2]),
        lambda grad, x, _: ops.sum_backward.dims(grad, x.shape, [0, 2], False),
        sample(2, 3, 4),
    )


@over_reductions
@over_dtypes
def test_mean(shape, dims, keepdim, dtype):
    assert_reverse(
        lambda x: aten.mean.dim(x, dims, keepdim),
        lambda grad, x, _: ops.mean_backward(grad, x.shape, dims, x.numel(), keepdim),
        sample(*shape, dtype=dtype),
    )


@over_reductions
def test_nansum_has_no_gradient_at_nan(shape, dims, keepdim):
    x = sample(*shape)
    x = x.masked_fill(x > 0.5, NAN)
    assert_reverse(
        lambda x: aten.nansum(x, dims, keepdim),
        lambda grad, x, _: ops.nansum_backward(grad, x, dims, keepdim),
        x,
    )


def with_zeros(shape, dtype, count):
    x = sample(*shape, dtype=dtype).flatten()
    x[:count] = 0
    return x.reshape(shape)


@pytest.mark.parametrize("zeros", [0, 1, 2, 4])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 2), (0,), (2, 0)])
@over_dtypes
def test_prod_of_all(shape, zeros, dtype):
    assert_reverse(aten.prod.default, ops.prod_backward.default, with_zeros(shape, dtype, zeros))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("zeros", [0, 1, 2, 4, 5])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((), -1), ((5,), 0), ((3, 2), 0), ((3, 2), -1), ((2, 1), 1), ((0, 3), 0), ((0, 3), 1)],
)
@over_dtypes
def test_prod_along_a_dim(shape, dim, zeros, keepdim, dtype):
    assert_reverse(
        lambda x: aten.prod.dim_int(x, dim, keepdim),
        lambda grad, x, result: ops.prod_backward.dim(grad, x, result, dim, keepdim),
        with_zeros(shape, dtype, zeros),
    )


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_prod_backward_differentiates_at_zeros(zeros):
    x = with_zeros((4,), torch.float64, zeros)
    assert_differentiable(lambda g, x: ops.prod_backward(g, x, x.prod()), sample(), x)
    assert_vmaps(
        lambda g, x: ops.prod_backward(g, x, x), sample(3), torch.stack([x, x.flip(0), x + 1])
    )


# correction may be left out, an integer or a float
CORRECTIONS = [None, 0, 1, 0.7]


# without the empty list of dims, whose elements aten's gradient does not count, and without a
# single element that has no degree of freedom
VARIANCES = [
    (*reduction, correction)
    for reduction in REDUCTIONS
    for correction in CORRECTIONS
    if reduction[1] != [] and not (reduction[0] == () and correction in (None, 1))
]


@pytest.mark.parametrize(("shape", "dims", "keepdim", "correction"), VARIANCES)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@over_dtypes
def test_var_and_std(shape, dims, keepdim, correction, dtype):
    args = (dims, correction, keepdim)
    x = sample(*shape, dtype=dtype)
    twice = x.numel() > 1  # aten's second derivatives are NaN without a deviation
    assert_reverse(
        lambda x: torch.var(x, dims, correction=correction, keepdim=keepdim),
        lambda grad, x, _: ops.var_backward(grad, x, *args),
        x,
        twice=twice,
    )
    assert_reverse(
        lambda x: torch.std(x, dims, correction=correction, keepdim=keepdim),
        lambda grad, x, result: ops.std_backward(result, grad, x, *args),
        x,
        twice=twice,
    )


def test_var_over_an_empty_list_of_dims_counts_all_elements():
    x, grad = sample(2, 3), sample()
    assert_close(
        ops.var_backward(grad, x, [], None, False), ops.var_backward(grad, x, [0, 1], None, False)
    )


def gradient_of(results, grads, x):
    """The gradient of `x` from those results whose gradient is not None."""
    some = [(r, g) for r, g in zip(results, grads, strict=True) if g is not None]
    outputs, grad_outputs = zip(*some, strict=True)
    return torch.autograd.grad(outputs, x, grad_outputs, retain_graph=True)[0]


@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
@over_dtypes
def test_var_mean_and_std_mean_take_undefined_gradients(name, wanted, dtype):
    x = sample(3, 4, dtype=dtype).requires_grad_()
    results = getattr(torch, name)(x, dim=1, correction=2)
    grads = [r.detach() * 2 if w else None for r, w in zip(results, wanted, strict=True)]
    state = (results[0],) if name == "std_mean" else ()
    actual = getattr(ops, name + "_backward")(*grads, x, *state, [1], 2, False)
    if not any(wanted):
        assert actual is None
    else:
        assert_close(actual, gradient_of(results, grads, x))


def test_var_formula_for_tangents():
    # how derivatives.yaml makes the tangent: the tangent takes the place of the gradient
    x, t = sample(3, 4, dtype=torch.complex128), sample(3, 4, dtype=torch.complex128, seed=1)
    _, expected = torch.func.jvp(lambda x: x.var(1), (x,), (t,))
    assert_close(ops.var_backward(t.conj(), x, [1], None, True).sum(1).real, expected)


@pytest.mark.parametrize(("dims", "correction"), [(None, 3), (None, 5), ([0], 3), ([0], 5)])
@pytest.mark.filterwarnings("ignore:var")
def test_var_without_degrees_of_freedom_is_as_atens(dims, correction):
    x = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64, requires_grad=True)
    grad = torch.ones((), dtype=x.dtype)
    (expected,) = torch.autograd.grad(x.var(dims, correction=correction), x, grad)
    actual = ops.var_backward(grad, x.detach(), dims, correction, False)
    assert_close(actual, expected, equal_nan=True)


def test_std_of_equal_elements_has_no_gradient_and_no_nan_in_its_second():
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    grad = torch.ones((), dtype=x.dtype, requires_grad=True)
    actual = ops.std_backward(x.std(), grad, x, None, None, False)
    assert_close(actual, torch.zeros_like(x))
    (second,) = torch.autograd.grad(actual.sum(), grad)
    assert_close(second, torch.zeros_like(grad))


LOGSUMEXP_DIMS = [((), [0]), ((4,), [0]), ((3, 4), [-1]), ((3, 4), [0, 1]), ((2, 0, 3), [2])]


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(("shape", "dims"), LOGSUMEXP_DIMS)
@over_dtypes
def test_logsumexp(shape, dims, keepdim, dtype):
    def logsumexp(x):
        return torch.logsumexp(x, dims, keepdim)

    x = sample(*shape, dtype=dtype) * 3
    assert_reverse(
        logsumexp, lambda g, x, result: ops.logsumexp_backward(g, x, result, dims, keepdim), x
    )
    for jvp in (ops.logsumexp_jvp, ops.safe_logsumexp_jvp):
        assert_tangent(logsumexp, lambda x, t, _, jvp=jvp: jvp(x, t, dims, keepdim), x)


def test_logsumexp_stays_finite_for_large_and_for_absent_elements():
    x = torch.tensor([[1000.0, 999.0], [-INF, -1000.0]], dtype=torch.float64)
    assert_tangent(lambda x: x.logsumexp(1), lambda x, t, _: ops.logsumexp_jvp(x, t, [1], False), x)


def test_safe_logsumexp_of_nothing_has_no_tangent():
    x = torch.tensor([[-INF, -INF], [0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    t = torch.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=torch.float64)
    safe = ops.safe_logsumexp_jvp(x, t, [1], True)
    assert_close(safe, torch.tensor([[0.0], [4.0]], dtype=torch.float64))
    assert ops.logsumexp_jvp(x, t, [1], True)[0].isnan().item()


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(("shape", "dim"), [((), 0), ((4,), -1), ((3, 4), 0), ((3, 0), 0)])
@pytest.mark.parametrize("operator", [torch.max, torch.median, torch.mode])
def test_gather_with_keepdimed_indices(shape, dim, keepdim, operator):
    x, t = sample(*shape), sample(*shape, seed=1)
    (_, indices), (expected, _) = torch.func.jvp(
        lambda x: tuple(operator(x, dim, keepdim)), (x,), (t,), strict=False
    )
    assert_close(ops.gather_with_keepdimed_indices(t, dim, indices, keepdim), expected)


# two equal maxima, all equal, none equal
TIES = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [-1.0, 0.0, 4.0]], dtype=torch.float64)
EXTREMA = [
    (TIES, [1], False),
    (TIES, [0], True),
    (TIES, [-1, 0], False),
    (TIES, [], False),
    (TIES, [], True),
    (TIES[0, 0], [0], False),
    (torch.zeros(0, 3, dtype=torch.float64), [1], False),
]


@pytest.mark.parametrize(("x", "dims", "keepdim"), EXTREMA)
@pytest.mark.parametrize("operator", [torch.amax, torch.amin])
def test_amax_and_amin(x, dims, keepdim, operator):
    def backward(grad, x, result):
        grad = ops.restore_reduced_dims(grad, dims, keepdim)
        mask = ops.restore_reduced_dims(result, dims, keepdim) == x
        return ops.scale_grad_by_count(grad, mask, dims).reshape(x.shape)

    def reduce(x):
        return operator(x, dims, keepdim)

    assert_reverse(reduce, backward, x)
    assert_tangent(reduce, lambda x, t, r: ops.amaxamin_jvp(x, t, r, dims, keepdim), x)


@needs_formula("aminmax")
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [None, 0, -1])
@pytest.mark.parametrize("x", [TIES, TIES[0], TIES[0, 0]], ids=["matrix", "vector", "scalar"])
def test_aminmax(x, dim, keepdim):
    x = x.clone().requires_grad_()
    results = torch.aminmax(x, dim=dim, keepdim=keepdim)
    low, high = torch.full_like(results[0], 2), torch.full_like(results[1], 3)

    def actual(*grads):
        return ops.aminmax_backward(x, dim, keepdim, *grads, *results)

    for grads in ((low, high), (low, None), (None, high)):
        assert_close(actual(*grads), gradient_of(results, grads, x))
    assert actual(None, None) is None
    for i in range(2):
        assert_tangent(
            lambda x, i=i: torch.aminmax(x, dim=dim, keepdim=keepdim)[i],
            lambda x, t, r: ops.aminmax_jvp(x, t, r, dim, keepdim),
            x,
        )


@pytest.mark.parametrize("x", [TIES, TIES[0, 0], sample(5)], ids=["ties", "scalar", "distinct"])
@pytest.mark.parametrize("operator", [torch.max, torch.min, torch.median, torch.nanmedian])
def test_one_value_of_all(x, operator):
    assert_reverse(operator, ops.evenly_distribute_backward, x)
    assert_tangent(operator, lambda x, t, r: ops.evenly_read_jvp(t, x, r), x)


def test_a_nan_value_belongs_to_the_nans():
    x = torch.tensor([2.0, NAN, NAN], dtype=torch.float64)
    t = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    assert_reverse(torch.max, ops.evenly_distribute_backward, x)
    assert_close(ops.evenly_read_jvp(t, x, x.max()), torch.tensor(3.0, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(1, 3, 1, 2), (1,), (), (2, 3)])
def test_unsqueeze_to_undoes_squeeze(shape):
    x = sample(*shape)
    dims = range(-len(shape), len(shape)) if shape else [0, -1]
    assert_close(ops.unsqueeze_to(x.squeeze(), shape), x)
    for dim in dims:
        assert_close(ops.unsqueeze_to.dim(x.squeeze(dim), dim, shape), x)
    for some in ([0], [-1], [0, -2], [2, 0], []):
        if len(shape) == 4 or some in ([0], [-1], []):
            assert_close(ops.unsqueeze_to.dims(x.squeeze(some), some, shape), x)


@pytest.mark.parametrize(
    "helper",
    [
        lambda x, t: ops.sum_backward.default(t.sum(1), x.shape, [1], False),
        lambda x, t: ops.mean_backward(t.sum(1), x.shape, [1], x.numel(), False),
        lambda x, t: ops.nansum_backward(t.sum(1), x, [1], False),
        lambda x, t: ops.prod_backward.dim(t.sum(1), x, x.prod(1), 1, False),
        lambda x, t: ops.var_backward(t.sum(1), x, [1], None, False),
        lambda x, t: ops.std_backward(x.std(1), t.sum(1), x, [1], None, False),
        lambda x, t: ops.std_mean_backward(t.sum(1), t.sum(1), x, x.std(1), [1], None, False),
        lambda x, t: ops.logsumexp_backward(t.sum(1), x, x.logsumexp(1), [1], False),
        lambda x, t: ops.logsumexp_jvp(x, t, [1], False),
        lambda x, t: ops.safe_logsumexp_jvp(x, t, [1], True),
        lambda x, t: ops.amaxamin_jvp(x, t, x.amax(1), [1], False),
        lambda x, t: ops.aminmax_backward(x, 1, False, t.sum(1), None, x.amin(1), x.amax(1)),
        lambda x, t: ops.evenly_distribute_backward(t.sum(), x, x.amax()),
        lambda x, t: ops.evenly_read_jvp(t, x, x.amax()),
        lambda x, t: ops.gather_with_keepdimed_indices(t, 1, x.argmax(1), False),
    ],
)
def test_helpers_differentiate_and_vmap(helper):
    x, t = sample(3, 4), sample(3, 4, seed=1)
    assert_differentiable(helper, x, t)
    assert_vmaps(helper, sample(2, 3, 4), sample(2, 3, 4, seed=1))


@pytest.mark.parametrize("dtype", [torch.half, torch.float32], ids=str)
def test_helpers_keep_the_dtype(dtype):
    x, t = sample(3, 4).to(dtype), sample(3, 4, seed=1).to(dtype)
    results = [
        ops.mean_backward(t.sum(1), x.shape, [1], x.numel(), False),
        ops.prod_backward.dim(t.sum(1), x, x.prod(1), 1, False),
        ops.std_backward(x.std(1), t.sum(1), x, [1], None, False),
        ops.logsumexp_jvp(x, t, [1], False),
        ops.scale_grad_by_count(t, x == x.amax(1, True), [1]),
        ops.amaxamin_jvp(x, t, x.amax(1), [1], False),
        ops.evenly_distribute_backward(t.sum(), x, x.max()),
        ops.evenly_read_jvp(t, x, x.max()),
    ]
    assert {r.dtype for r in results} == {dtype}
