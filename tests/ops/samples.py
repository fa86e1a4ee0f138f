# SPDX-License-Identifier: BSD-3-Clause
"""One sample for each operator: what it is compared with, what it is called on, what it takes.

A new operator of native_functions.yaml needs an entry in SAMPLES and nothing else: all tests of
this folder run over that table. Reference functions are in references.py.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import references
import torch
from torch.testing import make_tensor

HALVES = (torch.float16, torch.bfloat16)
FLOATS = (*HALVES, torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
NUMBERS = (*INTEGERS, *FLOATS, *COMPLEX)
ALL_DTYPES = (torch.bool, *NUMBERS)

SMALL = (3, 4)
VECTOR = (6,)
# Four dimensions for channels_last; 41 * 1030 elements pass the grain size of parallel loops and
# leave a remainder beside full vectors.
SHAPES = ((), VECTOR, SMALL, (2, 3, 4, 6), (41, 1030))
EMPTY_SHAPES = ((0,), (3, 0), (2, 0, 4))


@dataclass(frozen=True)
class Call:
    """Arguments of one call."""

    args: tuple
    kwargs: dict = field(default_factory=dict)

    def map_tensors(self, function) -> "Call":
        def convert(value):
            return function(value) if isinstance(value, torch.Tensor) else value

        return Call(
            tuple(convert(value) for value in self.args),
            {name: convert(value) for name, value in self.kwargs.items()},
        )

    @property
    def tensors(self) -> list:
        return [value for value in self.args if isinstance(value, torch.Tensor)]

    def with_tensors(self, tensors) -> "Call":
        """The same call on other tensors, given in the order of `self.tensors`."""
        remaining = iter(tensors)
        return self.map_tensors(lambda _: next(remaining))


@dataclass(frozen=True)
class Sample:
    """What the tests know about one operator."""

    name: str  # as in native_functions.yaml
    reference: Callable  # same arguments, made of torch's operators
    calls: Callable[..., Iterator[Call]]  # (shape, dtype): calls on tensors of that shape
    dtypes: tuple = FLOATS  # what it takes; it refuses the rest of ALL_DTYPES
    shapes: tuple = SHAPES
    empty_shapes: tuple = EMPTY_SHAPES
    small_shape: tuple = SMALL  # for tests whose cost is not in the data
    is_pointwise: bool = False  # then broadcasts, promotes, and keeps strides as torch does

    def expected(self, call: Call):
        """The reference's result; for 16-bit dtypes that of float32, rounded once."""
        dtype = call.tensors[0].dtype
        if dtype not in HALVES:
            return self.reference(*call.args, **call.kwargs)
        result = self.reference(*call.map_tensors(torch.Tensor.float).args, **call.kwargs)
        if isinstance(result, torch.Tensor):
            return result.to(dtype)
        return tuple(None if part is None else part.to(dtype) for part in result)

    @property
    def gradient_dtypes(self) -> list:
        return [dtype for dtype in (torch.float64, torch.complex128) if dtype in self.dtypes]


def tensor(shape, dtype, bound=3) -> torch.Tensor:
    """Random values that neither overflow a square nor cancel beyond the default tolerances."""
    if dtype in (torch.bool, torch.uint8):
        return make_tensor(shape, dtype=dtype, device="cpu")
    return make_tensor(shape, dtype=dtype, device="cpu", low=-bound, high=bound)


def _unary(shape, dtype):
    yield Call((tensor(shape, dtype),))


def _binary(shape, dtype):
    yield Call((tensor(shape, dtype), tensor(shape, dtype)))


def _add(shape, dtype):
    yield from _binary(shape, dtype)
    if dtype != torch.bool:
        yield Call((tensor(shape, dtype), tensor(shape, dtype)), {"alpha": 2})
    if dtype.is_floating_point:
        yield Call((tensor(shape, dtype), tensor(shape, dtype)), {"alpha": -0.5})
    if dtype.is_complex:
        yield Call((tensor(shape, dtype), tensor(shape, dtype)), {"alpha": 1.5 - 2j})


def _muladd(shape, dtype):
    constants = (2, -1.5, 1 - 2j) if dtype.is_complex else (2, -1.5)
    for constant in constants if dtype not in INTEGERS else (2,):
        yield Call((tensor(shape, dtype), tensor(shape, dtype), constant))


def _dot(shape, dtype):
    yield Call((tensor(shape, dtype, bound=1), tensor(shape, dtype, bound=1)))


def _cumsum(shape, dtype):
    for dim in range(-max(len(shape), 1), max(len(shape), 1)):
        yield Call((tensor(shape, dtype, bound=1), dim))
    if dtype in (torch.float32, torch.float64):
        yield Call((tensor(shape, dtype, bound=1), 0), {"dtype": torch.float64})


def _softmax(shape, dtype):
    for dim in range(-max(len(shape), 1), max(len(shape), 1)):
        yield Call((tensor(shape, dtype), dim))


def _rms_norm(shape, dtype):
    weight = tensor(shape[-1:], dtype)
    yield Call((tensor(shape, dtype), weight))
    yield Call((tensor(shape, dtype), weight, 0.25))
    yield Call((tensor(shape, dtype),))
    yield Call((tensor(shape, dtype), None, 0.25))


def _rms_norm_backward(shape, dtype):
    x, grad = tensor(shape, dtype), tensor(shape, dtype)
    weight = tensor(shape[-1:], dtype)
    for mask in ([True, True], [True, False], [False, True]):
        yield Call((grad, x, weight, 1e-6, mask))
    yield Call((grad, x, None, 0.25, [True, False]))


def _rms_norm_double_backward(shape, dtype):
    grads = tensor(shape, dtype), tensor(shape[-1:], dtype)
    saved = tensor(shape, dtype), tensor(shape, dtype), tensor(shape[-1:], dtype), 0.25
    everything = [True, True, True]
    yield Call((*grads, *saved, everything))
    yield Call((grads[0], None, *saved, everything))
    yield Call((None, grads[1], *saved, everything))
    yield Call((*grads, *saved, [False, True, False]))
    yield Call((grads[0], None, *saved[:2], None, 0.25, [True, True, False]))


def _rms_norm_jvp(shape, dtype):
    x, x_t = tensor(shape, dtype), tensor(shape, dtype)
    weight, weight_t = tensor(shape[-1:], dtype), tensor(shape[-1:], dtype)
    yield Call((x_t, weight_t, x, weight, 0.25))
    yield Call((x_t, None, x, None, 0.25))


def _halved(shape):
    return (*shape[:-1], shape[-1] // 2)


def _silu_and_mul_backward(shape, dtype):
    yield Call((tensor(_halved(shape), dtype), tensor(shape, dtype)))


def _silu_and_mul_double_backward(shape, dtype):
    given = tensor(shape, dtype), tensor(_halved(shape), dtype), tensor(shape, dtype)
    for mask in ([True, True], [True, False], [False, True]):
        yield Call((*given, mask))


def _pointwise(name, reference, calls=_unary, dtypes=ALL_DTYPES):
    return Sample(name, reference, calls, dtypes, is_pointwise=True)


def _over_last_dimension(name, calls):
    return Sample(name, getattr(references, name), calls, shapes=SHAPES[1:])


_SAMPLES = (
    _pointwise("add.Tensor", torch.add, _add),
    _pointwise("mul.Tensor", torch.mul, _binary),
    _pointwise("neg", torch.neg, dtypes=NUMBERS),
    _pointwise("sin", torch.sin),
    _pointwise("cos", torch.cos),
    _pointwise("sigmoid", torch.sigmoid),
    _pointwise("muladd", references.muladd, _muladd),
    Sample(
        "dot",
        torch.dot,
        _dot,
        NUMBERS,
        shapes=((1,), VECTOR, (301,)),
        empty_shapes=((0,),),
        small_shape=VECTOR,
    ),
    Sample("cumsum", references.cumsum, _cumsum, ALL_DTYPES),
    Sample("softmax", torch.softmax, _softmax),
    _over_last_dimension("rms_norm", _rms_norm),
    _over_last_dimension("rms_norm_backward", _rms_norm_backward),
    _over_last_dimension("rms_norm_double_backward", _rms_norm_double_backward),
    _over_last_dimension("rms_norm_jvp", _rms_norm_jvp),
    _over_last_dimension("silu_and_mul", _unary),
    _over_last_dimension("silu_and_mul_backward", _silu_and_mul_backward),
    _over_last_dimension("silu_and_mul_double_backward", _silu_and_mul_double_backward),
    _over_last_dimension("silu_and_mul_jvp", _binary),
    Sample("zero_out", references.zero_out, _unary, ALL_DTYPES),
)

SAMPLES = {sample.name: sample for sample in _SAMPLES}
