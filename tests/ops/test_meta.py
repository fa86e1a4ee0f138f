# SPDX-License-Identifier: BSD-3-Clause
"""Meta and fake tensors: size, strides and dtype are those of the real result, sizes symbolic."""

import itertools

import pytest
import torch
from cases import (
    first_call,
    has_kernels,
    operator_of,
    over_operators,
    over_operators_and,
    parts,
    run,
)
from layouts import LAYOUTS, in_layout
from samples import tensor
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

DTYPES = (torch.float32, torch.bfloat16, torch.complex64, torch.int64)


def on_meta(t):
    return torch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device="meta")


def described(result) -> list:
    """What a fake result tells of the real one; symbolic numbers as the values they stand for."""
    results = result if isinstance(result, tuple) else (result,)
    return [
        None if part is None else (part.dtype, _numbers(part.size()), _numbers(part.stride()))
        for part in results
    ]


def _numbers(sizes) -> list:
    return [size.node.hint if isinstance(size, torch.SymInt) else size for size in sizes]


def calls_of(sample, dtype):
    for shape in (*sample.shapes, *sample.empty_shapes):
        yield from sample.calls(shape, dtype)


@over_operators_and("dtype", lambda sample: [d for d in DTYPES if d in sample.dtypes])
def test_meta_results_have_the_size_strides_and_dtype_of_real_ones(sample, dtype):
    for call in calls_of(sample, dtype):
        actual = run(sample, call.map_tensors(on_meta))
        assert all(part.is_meta for part in parts(actual))
        assert described(actual) == described(run(sample, call))


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
@over_operators()
def test_meta_results_follow_the_layout_as_real_ones_do(sample, layout):
    for shape in sample.shapes:
        for call in sample.calls(shape, torch.float32):
            call = call.map_tensors(lambda t: in_layout(layout, t))
            real = run(sample, call)
            assert described(run(sample, call.map_tensors(on_meta))) == described(real)


@over_operators()
def test_fake_results_are_like_real_ones(sample):
    for call in calls_of(sample, torch.float32):
        mode = FakeTensorMode()
        with mode:
            actual = run(sample, call.map_tensors(mode.from_tensor))
        assert described(actual) == described(run(sample, call))
        assert all(part.device.type == "cpu" for part in parts(actual))


@over_operators()
def test_symbolic_sizes_stay_symbolic(sample):
    for shape in sample.shapes:
        for call in sample.calls(shape, torch.float32):
            mode = FakeTensorMode(shape_env=ShapeEnv())
            with mode:
                actual = run(sample, call.map_tensors(mode.from_tensor))
            assert described(actual) == described(run(sample, call))
            replaced = mode.shape_env.replacements.values()
            assert not any(expression.is_number for expression in replaced)
            sizes = [size for part in parts(actual) for size in part.size() if size != 1]
            assert all(isinstance(size, torch.SymInt) for size in sizes)


@over_operators(lambda sample: sample.is_pointwise and len(first_call(sample).tensors) == 2)
def test_symbolic_sizes_broadcast(sample):
    for shapes in (((3, 1), (4,)), ((2, 3, 4), (3, 1)), ((), (5,))):
        call = first_call(sample, torch.float32)
        call = call.with_tensors([tensor(shape, torch.float32) for shape in shapes])
        mode = FakeTensorMode(shape_env=ShapeEnv())
        with mode:
            actual = run(sample, call.map_tensors(mode.from_tensor))
        assert described(actual) == described(run(sample, call))


@over_operators(lambda sample: sample.is_pointwise and len(first_call(sample).tensors) > 1)
def test_results_lie_alike_wherever_inputs_are_converted(sample):
    """A kernel converts before it looks at strides, of which an expanded tensor has others then."""
    layouts = [
        lambda dtype: torch.arange(4).to(dtype).expand(6, 4),
        lambda dtype: torch.arange(6).to(dtype).expand(4, 6).t(),
        lambda dtype: torch.arange(24).to(dtype).view(4, 6).t(),
        lambda dtype: torch.arange(48).to(dtype).view(4, 12).t()[::2],
    ]
    call = first_call(sample, torch.float32)
    for first, second in itertools.product(layouts, repeat=2):
        for dtypes in itertools.permutations([torch.float64, torch.float32]):
            more = [second(dtypes[1])] * (len(call.tensors) - 1)
            now = call.with_tensors([first(dtypes[0]), *more])
            expected = described(run(sample, now))
            assert described(run(sample, now.map_tensors(on_meta))) == expected
            for mode in (FakeTensorMode(), FakeTensorMode(shape_env=ShapeEnv())):
                with mode:
                    actual = run(sample, now.map_tensors(mode.from_tensor))
                assert described(actual) == expected


@over_operators(has_kernels)
def test_gradients_of_meta_tensors_are_like_their_inputs(sample):
    call = first_call(sample).map_tensors(lambda t: on_meta(t).requires_grad_())
    total = sum(part.sum() for part in parts(run(sample, call)))
    grads = torch.autograd.grad(total, call.tensors, materialize_grads=True)
    assert [grad.size() for grad in grads] == [t.size() for t in call.tensors]


@over_operators(lambda sample: has_kernels(sample) and torch.bool not in sample.dtypes)
def test_a_meta_kernel_refuses_the_dtypes_that_kernels_refuse(sample):
    call = first_call(sample, torch.bool).map_tensors(on_meta)
    with pytest.raises(RuntimeError, match=operator_of(sample).qualified_name):
        run(sample, call)


def test_a_meta_kernel_checks_shapes():
    argument, weight = torch.empty(3, 4, device="meta"), torch.empty(5, device="meta")
    expected = "myns::rms_norm: weight has 5 where the tensors before it have 4"
    with pytest.raises(RuntimeError, match=expected):
        torch.ops.myns.rms_norm(argument, weight)
