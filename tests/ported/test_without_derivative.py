# SPDX-License-Identifier: BSD-3-Clause
"""What derivatives do not reach: arguments without a gradient, results of integers, old values."""

from __future__ import annotations

import pytest
import torch
from torch.func import grad, jacfwd, jvp, vmap
from torch.testing import assert_close

X, M, N, T = torch.rand(4, 3, dtype=torch.float64).unbind()


def masked_by_all(x, masks, mask):
    found = x * torch.stack(masks).prod(0)
    return found if mask is None else found * mask


CALLS = {
    "one": (lambda ops: ops.masked, lambda x, m, n: x * m),
    "list": (lambda ops: lambda x, m, n: ops.masked_by_all(x, [m, n]),
             lambda x, m, n: masked_by_all(x, [m, n], None)),
    "group": (lambda ops: lambda x, m, n: ops.masked_by_group(x, [m, n]),
              lambda x, m, n: masked_by_all(x, [m, n], None)),
    "more": (lambda ops: lambda x, m, n: ops.masked_by_group(x, [m], [n, n]),
             lambda x, m, n: masked_by_all(x, [m, n], n)),
    "optional": (lambda ops: lambda x, m, n: ops.masked_by_all(x, [m, m], n),
                 lambda x, m, n: masked_by_all(x, [m, m], n)),
}  # fmt: skip


def ours(call, ops):
    op = CALLS[call][0](ops)
    return (lambda x, m, n: op(x, m)) if call == "one" else op


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("tangents", [(True, True), (False, True), (True, False)])
def test_the_tangent_of_an_argument_without_gradient_goes_nowhere(call, tangents, ops) -> None:
    f, expected = ours(call, ops), CALLS[call][1]
    primals = (X, M, N)
    given = [torch.rand_like(t) if has else torch.zeros_like(t)
             for t, has in zip(primals, (tangents[0], tangents[1], tangents[1]))]  # fmt: skip
    value, tangent = jvp(f, primals, tuple(given))
    detached = jvp(lambda x: expected(x, M, N), (X,), (given[0],))
    assert_close((value, tangent), detached)


@pytest.mark.parametrize("call", CALLS)
def test_so_under_transforms(call, ops) -> None:
    f, expected = ours(call, ops), CALLS[call][1]
    for found, zeros in zip(jacfwd(f, (0, 1, 2))(X, M, N)[1:], (M, N)):
        assert_close(found, torch.zeros(3, 3, dtype=zeros.dtype))
    assert_close(jacfwd(f)(X, M, N), jacfwd(expected)(X, M, N))
    rows = torch.rand(2, 3, dtype=torch.float64)
    one = lambda f: lambda x, m: jvp(lambda x, m: f(x, m, m), (x, m), (x, m))  # noqa: E731
    without = lambda x, m: jvp(lambda x: expected(x, m, m), (x,), (x,))  # noqa: E731
    assert_close(vmap(one(f))(rows, rows), vmap(without)(rows, rows))


@pytest.mark.parametrize("call", CALLS)
def test_dual_tensors_of_autograd(call, ops) -> None:
    import torch.autograd.forward_ad as forward

    with forward.dual_level():
        x, m = (forward.make_dual(t.clone(), T) for t in (X, M))
        found = forward.unpack_dual(ours(call, ops)(x, m, m))
        assert_close(found.tangent, CALLS[call][1](T, M, M))
        assert forward.unpack_dual(ours(call, ops)(X, m, m)).tangent is None


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool, torch.float32, torch.complex128])
def test_results_that_an_argument_makes_integers_have_no_tangent(dtype, ops) -> None:
    values, tangents = jvp(lambda x: ops.as_dtype(x, dtype), (X,), (T,))
    assert_close(values, (X.to(dtype), X * 2))
    is_number = dtype.is_floating_point or dtype.is_complex
    assert_close(tangents, ((T if is_number else torch.zeros(3)).to(dtype), T * 2))
    grads = grad(lambda x: ops.as_dtype(x, dtype)[1].sum())(X)
    assert_close(grads, torch.full_like(X, 2))


def test_a_written_argument_without_derivative_must_not_require_grad(ops) -> None:
    count = torch.zeros(1, requires_grad=True) * 1
    with pytest.raises(NotImplementedError, match="counted_sum: 'count' requires grad"):
        ops.counted_sum(X, count)
    x, count = X.clone().requires_grad_(), torch.zeros(1)
    _, total = ops.counted_sum(x, count)
    (found,) = torch.autograd.grad(total, x)
    assert_close(found, torch.ones_like(X))
    assert count.item() == 1 and not count.requires_grad


def test_one_whose_result_is_differentiable_loses_its_history(ops) -> None:
    leaf, x = X.clone().requires_grad_(), M.clone().requires_grad_()
    result = ops.replaced_(leaf * 1, x)
    grads = torch.autograd.grad(result.sum(), (leaf, x), allow_unused=True)
    assert grads[0] is None
    assert_close(grads[1], torch.ones_like(X))


# -- old values and tangents in the formula of an in-place operator, differentiated again


FORMS = {
    "old": "plus_times_",
    "read": "plus_times_read_",
    "written": "plus_times_written_",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("argument", ["self", "x", "both"])
def test_the_gradient_of_a_tangent(form, argument, ops) -> None:
    def second(f):
        def along(x):
            inner = {
                "self": lambda y: f(y * 1, M).pow(2).sum(),
                "x": lambda y: f(M * 1, y).pow(2).sum(),
                "both": lambda y: f(y * 1, y * 2).pow(2).sum(),
            }[argument]
            return jvp(inner, (x,), (T,))[1]

        return grad(along)(X)

    assert_close(second(getattr(ops, FORMS[form])), second(torch.mul))


@pytest.mark.parametrize("form", FORMS)
def test_the_gradient_of_a_dual_tensor(form, ops) -> None:
    import torch.autograd.forward_ad as forward

    def second(f):
        x, m, t = (v.clone().requires_grad_() for v in (X, M, T))
        with forward.dual_level():
            found = f(forward.make_dual(x * 1, t * 1), forward.make_dual(m * 1, t * 2))
            tangent = forward.unpack_dual(found).tangent
            return torch.autograd.grad(tangent.pow(2).sum(), (x, m, t))

    assert_close(second(getattr(ops, FORMS[form])), second(torch.mul))
