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
def test_mul_of_two_devices_is_refused_as_by_torch(requires_grad, myns, device, second_device):
    x = torch.ones(2, device=device, requires_grad=requires_grad)
    for elsewhere in (second_device, "cpu"):
        other = torch.ones(2, device=elsewhere)
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            myns.mul(x, other)


@pytest.mark.parametrize("name", ["mul", "add", "cumsum"])
def test_a_structured_operator_without_a_kernel_fills_its_result_through_the_out_form(
    name, myns, any_device
):
    call, inplace = getattr(myns, name), getattr(myns, f"{name}_")
    x = torch.arange(1.0, 7.0).reshape(2, 3)
    other = 1 if name == "cumsum" else torch.tensor([2.0, 3.0, 4.0])
    expected = call(x, other)

    own = other if name == "cumsum" else other.to(any_device)
    result = call(x.to(any_device), own)
    written, out = x.to(any_device), torch.empty(0, device=any_device)
    assert inplace(written, own) is written
    assert call(x.to(any_device), own, out=out) is out
    for tensor in (result, written, out):
        assert tensor.device == any_device
        assert torch.equal(tensor.cpu(), expected)
    assert torch.torchext.current_device() == 0


def test_an_inplace_form_that_has_no_kernel_is_checked_all_the_same(myns, any_device):
    with pytest.raises(RuntimeError, match="must have dtype"):
        myns.cumsum_(torch.ones(3, device=any_device), 0, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        myns.mul_(torch.ones(3, device=any_device), torch.ones(2, 3, device=any_device))
