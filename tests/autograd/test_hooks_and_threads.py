# SPDX-License-Identifier: BSD-3-Clause
"""What user code hangs onto nodes and tensors, and backward from several threads."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch


def tensor():
    return torch.arange(1.0, 4.0, dtype=torch.float64).requires_grad_()


def test_a_hook_on_a_tensor_changes_its_gradient(agtest):
    x = tensor()
    middle = agtest.expo(x)
    middle.register_hook(lambda grad: grad * 2)
    middle.retain_grad()
    agtest.product.Scalar(middle, 3).sum().backward()
    assert middle.grad.eq(6).all()
    assert torch.allclose(x.grad, 6 * x.exp().detach())


def test_hooks_on_a_node_see_both_sides(agtest):
    x, y = tensor(), tensor()
    result = agtest.product(x, y)
    seen = {}
    result.grad_fn.register_hook(lambda inputs, outputs: seen.update(after=(inputs, outputs)))
    result.grad_fn.register_prehook(lambda grads: seen.update(before=grads))
    result.sum().backward()
    (grad,) = seen["before"]
    assert grad.eq(1).all()
    inputs, outputs = seen["after"]
    assert torch.equal(inputs[0], y.detach())
    assert torch.equal(inputs[1], x.detach())
    assert outputs[0].eq(1).all()


def test_a_hook_on_a_node_replaces_gradients(agtest):
    x = tensor()
    result = agtest.expo(x)
    result.grad_fn.register_hook(lambda inputs, outputs: tuple(grad * 10 for grad in inputs))
    result.sum().backward()
    assert torch.allclose(x.grad, 10 * x.exp().detach())


def test_post_accumulate_hooks_run(agtest):
    x, seen = tensor(), []
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.clone()))
    agtest.expo(x).sum().backward()
    assert len(seen) == 1


def test_metadata_and_anomaly_mode(agtest):
    x = tensor()
    result = agtest.product(x, x)
    result.grad_fn.metadata["note"] = 1
    assert result.grad_fn.metadata["note"] == 1
    with pytest.warns(UserWarning, match="Anomaly"), torch.autograd.detect_anomaly(check_nan=True):
        agtest.expo(x).sum().backward()


def test_retain_graph_and_several_passes(agtest):
    x = tensor()
    result = agtest.product(agtest.expo(x), x).sum()
    gradients = [torch.autograd.grad(result, x, retain_graph=True)[0] for _ in range(3)]
    assert all(torch.equal(gradient, gradients[0]) for gradient in gradients)


def test_backward_inside_backward(agtest):
    x = tensor()

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value * 1

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                y = tensor()
                agtest.product(y, y).sum().backward()
            return grad * y.grad

    agtest.expo(Inner.apply(x)).sum().backward()
    assert torch.allclose(x.grad, (x.exp() * 2 * tensor()).detach())


def test_threads_share_a_part_of_the_graph(agtest):
    x = tensor()
    shared = agtest.product(agtest.expo(x), x)

    def gradient(factor):
        loss = agtest.product.Scalar(shared, factor).sum()
        return torch.autograd.grad(loss, x, retain_graph=True)[0]

    expected = ((1 + x) * x.exp()).detach()
    with ThreadPoolExecutor(4) as pool:
        for factor, found in zip(range(1, 41), pool.map(gradient, range(1, 41))):
            assert torch.allclose(found, factor * expected)


def test_threads_record_at_once(agtest):
    x = tensor()

    def loss_of(factor):
        total = agtest.squares([agtest.product.Scalar(x, factor), x], 0.5).sum()
        return torch.autograd.grad(total, x)[0]

    with ThreadPoolExecutor(4) as pool:
        for factor, found in zip(range(40), pool.map(loss_of, range(40))):
            assert torch.allclose(found, (factor * factor + 1) * x.detach())
