# SPDX-License-Identifier: BSD-3-Clause
"""References that are more than one operator of torch. Written for reading: formulas, no tricks."""

import torch
from torch.nn import functional


def muladd(a, b, c):
    return a * b + c


def cumsum(input, dim, *, dtype=None):
    return torch.cumsum(input, dim, dtype=dtype)


def zero_out(input):
    keeps_first = torch.zeros(input.numel(), dtype=torch.bool)
    keeps_first[:1] = True
    return torch.where(keeps_first.view(input.shape), input, torch.zeros_like(input)).contiguous()


def rms_norm(input, weight=None, eps=1e-6):
    return functional.rms_norm(input, input.shape[-1:], weight, eps)


def _normalize(input, eps):
    scale = torch.rsqrt(input.square().mean(-1, keepdim=True) + eps)
    return input * scale, scale


def rms_norm_backward(grad_output, input, weight, eps, output_mask):
    normalized, scale = _normalize(input, eps)
    weighted = grad_output if weight is None else grad_output * weight
    projection = (weighted * normalized).mean(-1, keepdim=True)
    grad_input = scale * (weighted - normalized * projection)
    grad_weight = (grad_output * normalized).sum_to_size(input.shape[-1:])
    return (
        grad_input if output_mask[0] else None,
        grad_weight if output_mask[1] else None,
    )


def _gradient_of_results(backward, grads, inputs):
    """What autograd gives for a backward function, in a way that every transform sees through."""
    present = [i for i, t in enumerate(inputs) if t is not None]

    def weighted(*tensors):
        given = list(inputs)
        for i, t in zip(present, tensors):
            given[i] = t
        pairs = zip(backward(*given), grads)
        return sum((result * grad).sum() for result, grad in pairs if grad is not None)

    found = torch.func.grad(weighted, tuple(range(len(present))))(*[inputs[i] for i in present])
    return [dict(zip(present, found)).get(i) for i in range(len(inputs))]


def rms_norm_double_backward(
    grad_grad_input, grad_grad_weight, grad_output, input, weight, eps, output_mask
):
    """The gradient of the two results of rms_norm_backward, by autograd."""

    def backward(*inputs):
        return rms_norm_backward(*inputs, eps, [True, True])

    grads, inputs = (grad_grad_input, grad_grad_weight), (grad_output, input, weight)
    found = _gradient_of_results(backward, grads, inputs)
    return tuple(grad if wanted else None for grad, wanted in zip(found, output_mask))


def rms_norm_jvp(input_t, weight_t, input, weight, eps):
    normalized, scale = _normalize(input, eps)
    normalized_t = scale * (input_t - normalized * (normalized * input_t).mean(-1, keepdim=True))
    if weight is None:
        return normalized_t
    return normalized_t * weight + normalized * weight_t


def silu_and_mul(input):
    gate, up = input.chunk(2, -1)
    return functional.silu(gate) * up


def _silu_derivative(gate):
    sigmoid = torch.sigmoid(gate)
    return sigmoid * (1 + gate * (1 - sigmoid))


def silu_and_mul_backward(grad_output, input):
    gate, up = input.chunk(2, -1)
    grad_gate = grad_output * up * _silu_derivative(gate)
    return torch.cat((grad_gate, grad_output * functional.silu(gate)), -1)


def silu_and_mul_double_backward(grad_grad_input, grad_output, input, output_mask):
    """The gradients of silu_and_mul_backward, by autograd."""

    def backward(*inputs):
        return (silu_and_mul_backward(*inputs),)

    found = _gradient_of_results(backward, (grad_grad_input,), (grad_output, input))
    return tuple(grad if wanted else None for grad, wanted in zip(found, output_mask))


def silu_and_mul_jvp(input_t, input):
    (gate, up), (gate_t, up_t) = input.chunk(2, -1), input_t.chunk(2, -1)
    return _silu_derivative(gate) * gate_t * up + functional.silu(gate) * up_t
