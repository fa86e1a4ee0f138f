# SPDX-License-Identifier: BSD-3-Clause
"""Operators of myns on the test device: CPU fallback per operator, and the same-device check."""

import pytest
import torch


@pytest.fixture(scope="module")
def myns(device):
    import torchext.ops  # noqa: F401

    return torch.ops.myns


@pytest.fixture(params=[0, 1], ids=["first", "second"])
def any_device(request, device):
    return torch.device(device.type, request.param)


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.t(), lambda x: x[:, 1:]])
def test_zero_out_runs_on_the_cpu_and_returns_to_the_device(view, myns, any_device):
    values = torch.arange(1.0, 13.0).reshape(3, 4)
    result = myns.zero_out(view(values.to(any_device)))
    assert result.device == any_device
    assert torch.equal(result.cpu(), myns.zero_out(view(values)))
    assert result.flatten().tolist() == [view(values).flatten()[0]] + [0] * (result.numel() - 1)


def test_zero_out_has_its_gradient_on_the_device(myns, any_device):
    x = torch.arange(1.0, 7.0, device=any_device).reshape(2, 3).requires_grad_()
    result = myns.zero_out(x)
    assert result.requires_grad and result.device == any_device
    (result * 4).sum().backward()
    assert x.grad.device == any_device
    assert x.grad.tolist() == [[4, 0, 0], [0, 0, 0]]


def test_a_fallback_leaves_the_current_device_alone(myns, any_device):
    myns.zero_out(torch.ones(2, device=any_device))
    assert torch.torchext.current_device() == 0


@pytest.mark.parametrize("requires_grad", [False, True])
def test_mul_of_two_devices_names_operator_and_argument(requires_grad, myns, device, second_device):
    x = torch.ones(2, device=device, requires_grad=requires_grad)
    for elsewhere in (second_device, "cpu"):
        other = torch.ones(2, device=elsewhere)
        with pytest.raises(RuntimeError, match=r"\bother is on .*\bmul\b"):
            myns.mul(x, other)
