# SPDX-License-Identifier: BSD-3-Clause
"""Forward mode where a formula gives no tangent, one of another dtype, or writes to one that it
reads through another argument, beside the same of torch's operators."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.testing import assert_close


def crossed_(x, y):
    old = x.clone()
    x.copy_(y * 2)
    y.copy_(old * 3)
    return x, y


def scaled_add_(x, y, alpha=1):
    return x.copy_(x * alpha + y)


def swapped_(x, y):
    old = x.clone()
    x.copy_(y)
    y.copy_(old)
    return x, y


def tripled_(x, y):
    y.copy_(x * 2)
    x.mul_(3)
    return x, y


TORCHS = {
    "crossed_": crossed_,
    "joint_crossed_": swapped_,
    "raw_tripled_": tripled_,
    "scaled_add_": scaled_add_,
    "raw_scaled_add_": scaled_add_,
    "assigned_": torch.Tensor.copy_,
    "own_assigned_": torch.Tensor.copy_,
}
GIVEN = [(True, True), (True, False), (False, True)]
GRAD_MODE = pytest.mark.parametrize("grad_mode", [True, False])


def arguments(given):
    primals = torch.tensor([1.0, 2, 3]), torch.tensor([4.0, 5, 6])
    return [
        forward_ad.make_dual(x, x.cos()) if has else x
        for x, has in zip(primals, given, strict=True)
    ]


def unpacked(*tensors):
    """Values and tangents, zeros for none."""
    found = [forward_ad.unpack_dual(tensor) for tensor in tensors]
    return [
        (f.primal, torch.zeros_like(f.primal) if f.tangent is None else f.tangent) for f in found
    ]


@GRAD_MODE
@pytest.mark.parametrize("given", GIVEN, ids=str)
@pytest.mark.parametrize("name", TORCHS)
def test_what_is_written_to_keeps_no_old_tangent(agtest, name, given, grad_mode):
    found = []
    for write in (getattr(agtest, name), TORCHS[name]):
        with forward_ad.dual_level(), torch.set_grad_enabled(grad_mode):
            x, y = arguments(given)
            write(x, y)
            found.append(unpacked(x, y))
    assert_close(*found)


@GRAD_MODE
@pytest.mark.parametrize("name", ["scaled_add_", "raw_scaled_add_"])
def test_a_tangent_is_read_as_it_was_through_what_shares_its_memory(agtest, name, grad_mode):
    for other in (lambda x: x, lambda x: x.view(3, 1).view(-1)):
        with forward_ad.dual_level(), torch.set_grad_enabled(grad_mode):
            x, _ = arguments((True, False))
            getattr(agtest, name)(x, other(x), alpha=3)
            ((value, tangent),) = unpacked(x)
            assert_close(value, torch.tensor([4.0, 8, 12]))
            assert_close(tangent, 4 * torch.tensor([1.0, 2, 3]).cos())


def test_no_tangent_comes_of_a_result_without_one(agtest):
    with forward_ad.dual_level():
        x, y = arguments((True, False))
        assert forward_ad.unpack_dual(agtest.assigned(x, y)).tangent is None


def test_a_tangent_has_the_dtype_of_its_result(agtest):
    x = torch.rand(3, dtype=torch.complex64)
    for given in (torch.rand(3), x):
        value, tangent = torch.func.jvp(agtest.widened, (given,), (torch.ones_like(given),))
        assert tangent.dtype == value.dtype == torch.double
        assert_close(tangent, torch.ones(3, dtype=torch.double))
