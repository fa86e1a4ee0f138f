# SPDX-License-Identifier: BSD-3-Clause
"""torchext.override on a device that has a thread of its own in autograd."""

import threading

import torch

import torchext


def test_the_thread_of_the_device_inherits_the_override(device):
    x = torch.rand(4, device=device, requires_grad=True)
    ran_on = []

    def cos(self):
        ran_on.append(threading.get_ident())
        return torch.cos(self) * 3

    y = x.sin().sum()
    with torchext.override("aten::cos", cos, dispatch_key="PrivateUse1"):
        y.backward(retain_graph=True)
    assert len(ran_on) == 1 and ran_on[0] != threading.get_ident()
    torch.testing.assert_close(x.grad.cpu(), x.detach().cpu().cos() * 3)

    x.grad = None
    y.backward()  # the same thread, which keeps nothing
    assert len(ran_on) == 1
    torch.testing.assert_close(x.grad.cpu(), x.detach().cpu().cos())


def test_an_error_of_a_kernel_comes_back_from_the_thread(device):
    class Mine(Exception):
        pass

    def cos(self):
        raise Mine("on the device's thread")

    x = torch.rand(4, device=device, requires_grad=True)
    y = x.sin().sum()
    raised = None
    with torchext.override("aten::cos", cos, dispatch_key="PrivateUse1"):
        try:
            y.backward()
        except Mine as error:
            raised = error
    assert str(raised) == "on the device's thread"
