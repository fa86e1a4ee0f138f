# SPDX-License-Identifier: BSD-3-Clause
"""Operators on a GPU, or on the host in its place, each under each feature, beside torch's own on
the CPU."""

import pytest
import torch
from torch.nn import functional

ops = torch.ops.myns
SHAPE = (6, 8)


def silu_and_mul(x):
    gate, up = x.chunk(2, -1)
    return functional.silu(gate) * up


def zero_out(x):
    mask = torch.zeros(x.numel(), dtype=torch.bool, device=x.device)
    if x.numel():
        mask[0] = True
    return torch.where(mask.view(x.shape), x, torch.zeros_like(x))


# Ours, torch's, and how many tensors both take.
FUNCTIONS = {
    "add": (lambda x, y: ops.add(x, y, alpha=2), lambda x, y: torch.add(x, y, alpha=2), 2),
    "mul": (ops.mul, torch.mul, 2),
    "neg": (ops.neg, torch.neg, 1),
    "sin": (ops.sin, torch.sin, 1),
    "cos": (ops.cos, torch.cos, 1),
    "sigmoid": (ops.sigmoid, torch.sigmoid, 1),
    "muladd": (lambda x, y: ops.muladd(x, y, 1.5), lambda x, y: x * y + 1.5, 2),
    "cumsum": (lambda x: ops.cumsum(x, -1), lambda x: torch.cumsum(x, -1), 1),
    "softmax": (lambda x: ops.softmax(x, -1), lambda x: torch.softmax(x, -1), 1),
    "rms_norm": (
        lambda x, y: ops.rms_norm(x, y.mean(0), 1e-6),
        lambda x, y: functional.rms_norm(x, x.shape[-1:], y.mean(0), 1e-6),
        2,
    ),
    "silu_and_mul": (ops.silu_and_mul, silu_and_mul, 1),
    "dot": (
        lambda x, y: ops.dot(x.flatten(), y.flatten()),
        lambda x, y: torch.dot(x.flatten(), y.flatten()),
        2,
    ),
    "zero_out": (ops.zero_out, zero_out, 1),
}


def gradients(f, tensors, create_graph=False):
    leaves = [t.detach().requires_grad_() for t in tensors]
    loss = f(*leaves).pow(3).sum()
    return leaves, torch.autograd.grad(loss, leaves, create_graph=create_graph)


def second_derivatives(f, tensors):
    leaves, first = gradients(f, tensors, create_graph=True)
    loss = sum(grad.sin().sum() for grad in first)
    return torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)


def compiled(f, **options):
    torch._dynamo.reset()
    # Inductor has no code for the device that stands for a GPU
    backend = "inductor" if torch.cuda.is_available() else "aot_eager"
    return torch.compile(f, backend=backend, **options)


def replayed(f, tensors):
    """By the third call torch.compile replays what it captured."""
    torch._dynamo.reset()
    g = torch.compile(f, mode="reduce-overhead")
    return [g(*tensors).clone() for _ in range(3)][-1]


def exported(f, tensors):
    class Module(torch.nn.Module):
        def forward(self, *given):
            return f(*given)

    return torch.export.export(Module(), tuple(tensors)).module()(*tensors)


def on_another_stream(f, tensors):
    device = tensors[0].device
    if device.type == "cpu":
        return f(*tensors)
    stream = torch.Stream(device=device)
    stream.wait_stream(torch.accelerator.current_stream())
    with stream:
        result = f(*tensors)
    torch.accelerator.current_stream().wait_stream(stream)
    return result


def inferred(f, tensors):
    with torch.inference_mode():
        return f(*tensors).clone()


def stacked(tensors):
    return [torch.stack([t, t + 1, t * 2]) for t in tensors]


# A function and its tensors to a result.
FEATURES = {
    "eager": lambda f, ts: f(*ts),
    "gradients": lambda f, ts: gradients(f, ts)[1],
    "second derivatives": second_derivatives,
    "jvp": lambda f, ts: torch.func.jvp(f, tuple(ts), tuple(t * 2 for t in ts)),
    "vmap": lambda f, ts: torch.func.vmap(f)(*stacked(ts)),
    "vmap of grad": lambda f, ts: torch.func.vmap(torch.func.grad(lambda *a: f(*a).sum()))(
        *stacked(ts)
    ),
    "hessian": lambda f, ts: torch.func.hessian(lambda a: f(a, *ts[1:]).sum())(ts[0]),
    "functionalize": lambda f, ts: torch.func.functionalize(f)(*ts),
    "strided": lambda f, ts: f(*(torch.stack([t, t], -1)[..., 0] for t in ts)),
    "transposed": lambda f, ts: f(*(t.t().contiguous().t() for t in ts)),
    "expanded": lambda f, ts: f(*(t[:1].expand(SHAPE) for t in ts)),
    "no rows": lambda f, ts: f(*(t[:0] for t in ts)),
    "inference mode": inferred,
    "another stream": on_another_stream,
    "large": lambda f, ts: f(*(t.repeat(64, 128) for t in ts)),
    "compile": lambda f, ts: compiled(f, fullgraph=True)(*ts),
    "compile, dynamic": lambda f, ts: compiled(f, fullgraph=True, dynamic=True)(*ts),
    "compile, gradients": lambda f, ts: gradients(compiled(f), ts)[1],
    "reduce-overhead": replayed,
    "export": exported,
}
# What torch's own is run under for those in which its compiler would rewrite it.
RUN_BY_TORCH_AS_IT_IS = {
    "compile": "eager", "compile, dynamic": "eager", "compile, gradients": "gradients",
    "reduce-overhead": "eager", "export": "eager",
}  # fmt: skip


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_operator_under_a_feature_is_torchs(request, gpu, name, feature):
    if feature == "reduce-overhead":
        request.getfixturevalue("real_gpu")
    ours, torchs, count = FUNCTIONS[name]
    generator = torch.Generator().manual_seed(1)
    tensors = [torch.randn(SHAPE, generator=generator, dtype=torch.float64) for _ in range(count)]
    of_torch = FEATURES[RUN_BY_TORCH_AS_IT_IS.get(feature, feature)]
    expected = of_torch(torchs, tensors)
    found = FEATURES[feature](ours, [t.to(gpu) for t in tensors])
    found = torch.utils._pytree.tree_map(lambda t: t.cpu(), found)
    torch.testing.assert_close(found, expected)


def test_every_operator_on_the_gpu_is_under_every_feature():
    from operators import OPERATORS

    names = {name.partition(".")[0] for name in OPERATORS}
    helpers = {name for name in names if name.endswith(("_backward", "_jvp"))}
    assert names - helpers == set(FUNCTIONS)
