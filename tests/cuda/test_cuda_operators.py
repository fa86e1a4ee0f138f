# SPDX-License-Identifier: BSD-3-Clause
"""The CUDA kernels against the CPU ones and torch's own operators, on a GPU or on the host."""

import pytest
import torch
from cases import (
    is_differentiable,
    over_operators,
    over_operators_and,
    parts,
    requiring_grad,
    run,
)
from operators import FORMS, OPERATORS
from samples import SAMPLES

FORM_LIST = list(FORMS.values())
# Of which threads keep nothing, or all in registers, or too much for them by a little or a lot.
LONG_ROWS = (1, 7, 1024, 4096, 12288, 30000)


@over_operators_and("dtype", lambda sample: sample.dtypes)
def test_result_is_that_of_torch_on_the_gpu(gpu, sample, dtype):
    for shape in (*sample.shapes, *sample.empty_shapes):
        for call in sample.calls(shape, dtype):
            results = parts(run(sample, call.map_tensors(lambda t: t.to(gpu))))
            expected = parts(sample.expected(call))
            for result, reference in zip(results, expected, strict=True):
                assert result.device.type == gpu.type
                torch.testing.assert_close(result.cpu(), reference)


@over_operators(is_differentiable)
def test_gradients_on_the_gpu_are_those_of_the_cpu(gpu, sample):
    for call in sample.calls(sample.small_shape, torch.float64):
        gradients = []
        for device in ("cpu", gpu):
            moved = requiring_grad(call.map_tensors(lambda t: t.to(device)))
            loss = sum(part.square().sum() for part in parts(run(sample, moved)))
            gradients.append(torch.autograd.grad(loss, moved.tensors, materialize_grads=True))
        for cpu, cuda in zip(*gradients, strict=True):
            torch.testing.assert_close(cuda.cpu(), cpu)


@over_operators()
def test_non_contiguous_arguments_give_the_same_result(gpu, sample):
    for call in sample.calls(sample.small_shape, torch.float32):
        moved = call.map_tensors(lambda t: t.to(gpu))
        strided = moved.map_tensors(lambda t: torch.stack([t, t], dim=-1)[..., 0])
        torch.testing.assert_close(parts(run(sample, strided)), parts(run(sample, moved)))


@pytest.mark.parametrize("form", FORM_LIST, ids=[form.name for form in FORM_LIST])
def test_forms_that_write_give_the_result_of_the_functional_one(gpu, form):
    sample = SAMPLES[form.functional]
    for call in sample.calls(sample.small_shape, torch.float32):
        call = call.map_tensors(lambda t: t.to(gpu))
        results = OPERATORS[form.functional].call(*call.args, **call.kwargs)
        results = results if isinstance(results, tuple) else (results,)
        if form.is_inplace and results[0].dtype != call.args[0].dtype:
            continue
        outputs = {
            name: torch.empty(0, device=gpu, dtype=r.dtype)
            for name, r in zip(form.outputs, results)
        }
        own = call.map_tensors(torch.clone)
        returned = form.call(*own.args, **own.kwargs, **outputs)
        returned = returned if isinstance(returned, tuple) else (returned,)
        torch.testing.assert_close(returned, results)
        written = tuple(outputs.values()) or (own.args[0],)
        assert all(a is b for a, b in zip(returned, written, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("columns", LONG_ROWS)
def test_rows_of_every_length_are_normalized_as_torch_does(gpu, columns, dtype):
    x = torch.randn(3, columns, device=gpu, dtype=dtype)
    weight = torch.randn(columns, device=gpu, dtype=dtype)
    expected = torch.nn.functional.rms_norm(x.double(), (columns,), weight.double(), 1e-6)
    torch.testing.assert_close(torch.ops.myns.rms_norm(x, weight), expected.to(dtype))
    expected = torch.softmax(x.double(), -1)
    torch.testing.assert_close(torch.ops.myns.softmax(x, -1), expected.to(dtype))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("offset", [-300, 300])
@pytest.mark.parametrize("columns", [33, 900])  # of one warp, and of several
def test_softmax_is_that_of_the_differences_to_the_greatest(gpu, columns, offset, dim):
    x = torch.randn(70, columns, generator=torch.Generator().manual_seed(6)) + offset
    found = torch.ops.myns.softmax(x.to(gpu), dim).cpu()
    torch.testing.assert_close(found, torch.softmax(x, dim))


@pytest.mark.parametrize("begin", [1, 2, 3])
def test_rows_may_begin_where_no_wide_load_does(gpu, begin):
    def on_the_gpu(t):
        memory = torch.empty(begin + t.numel(), device=gpu)
        return memory[begin:].view(t.shape).copy_(t)

    def results(move):
        a, b = move(x).requires_grad_(), move(x).requires_grad_()
        ys = [torch.ops.myns.softmax(a, -1), torch.ops.myns.rms_norm(a, None)]
        ys += [torch.ops.myns.silu_and_mul(b)]
        given = [move(incoming), move(incoming), move(incoming[:, :32].contiguous())]
        return [t.cpu() for t in (*ys, *torch.autograd.grad(ys, [a, b], given))]

    x, incoming = torch.randn(3, 64), torch.randn(3, 64)
    torch.testing.assert_close(results(on_the_gpu), results(torch.clone))


def rms_norm(x, weight):
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * weight


def weights(columns, dtype, device):
    """Of the row's dtype, in single precision, and where no wide load may begin."""
    weight = torch.randn(columns + 1, device=device)
    return weight[1:].to(dtype), weight[1:].clone(), weight.to(dtype)[1:], weight[1:]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("columns", LONG_ROWS)
def test_gradients_of_rows_of_every_length_are_those_of_the_formula(gpu, columns, dtype):
    x = torch.randn(5, columns, device=gpu, dtype=dtype)
    incoming = torch.randn(5, columns, device=gpu, dtype=dtype)
    for weight in weights(columns, dtype, gpu):
        found, exact = [], []
        for dtypes, results in (((dtype, weight.dtype), found), ((torch.float64,) * 2, exact)):
            a = x.to(dtypes[0]).requires_grad_()
            w = weight.detach().to(dtypes[1]).requires_grad_()
            y = (torch.ops.myns.rms_norm if results is found else rms_norm)(a, w)
            results += [y, *torch.autograd.grad(y, [a, w], incoming.to(y.dtype))]
        for ours, expected in zip(found, exact, strict=True):
            tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {}
            torch.testing.assert_close(ours, expected.to(ours.dtype), **tolerance)


def test_the_weight_gradient_of_rms_norm_is_the_same_in_every_run(gpu):
    x = torch.randn(4096, 512, device=gpu)
    weight = torch.randn(512, device=gpu, requires_grad=True)
    incoming = torch.randn(4096, 512, device=gpu)

    def gradient():
        return torch.autograd.grad(torch.ops.myns.rms_norm(x, weight), weight, incoming)[0]

    first = gradient()
    assert all(torch.equal(gradient(), first) for _ in range(5))


@over_operators()
def test_operators_replay_in_a_cuda_graph(real_gpu, sample):
    if sample.name == "zero_out":
        pytest.skip("cpu_fallback copies to the CPU, which a CUDA graph cannot capture")
    call = next(iter(sample.calls(sample.small_shape, torch.float32)))
    call = call.map_tensors(lambda t: t.to(real_gpu))
    expected = [part.clone() for part in parts(run(sample, call))]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run(sample, call)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = parts(run(sample, call))
    graph.replay()
    torch.testing.assert_close(results, expected)


def test_cpu_scalars_mix_with_tensors_on_the_gpu(gpu):
    x = torch.randn(5, device=gpu)
    torch.testing.assert_close(torch.ops.myns.mul(x, torch.tensor(2.0)), x * 2)
    torch.testing.assert_close(torch.ops.myns.add(torch.tensor(2.0), x, alpha=3), 2 + 3 * x)


def test_kernels_run_on_the_current_stream(gpu):
    stream = torch.Stream(device=gpu)
    with stream:
        x = torch.full((1 << 16,), 2.0, device=gpu)
        y = torch.ops.myns.rms_norm(torch.ops.myns.mul(x, x), None, 0.0)
    stream.synchronize()
    assert y.eq(1).all()
