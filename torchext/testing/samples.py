# SPDX-License-Identifier: BSD-3-Clause
"""Arguments for the checks: those of `samples:`, or some that are made from the schema."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any

import torch

from .calls import Call, out_arguments
from .facts import Facts

Sample = dict[str, Any]  # an argument's name -> its value, as the table of operators has it

# Sizes that are tried for an operator without samples: of the first tensor, and of the others.
_TRIED_SIZES = [
    ([3, 4], [3, 4]), ([3, 4], [4]), ([3, 4], [3]), ([4], [4]), ([2, 3, 4], [2, 3, 4]),
    ([4, 4], [4, 4]), ([2, 4, 4], [2, 4, 4]), ([3, 4], [4, 5]), ([2, 3, 4], [2, 4, 5]),
    ([2, 3, 6, 6], [2, 3, 6, 6]), ([2, 3, 6, 6], [3]), ([], []),
]  # fmt: skip
_TRIED_DTYPES = ("float32", "int64", "bool", "complex64")
_MOST_MADE = 3
# The bounds of random values where a sample says none, as those of torch.testing.make_tensor.
_LOW, _HIGH = -2, 2
_WIDEST = 9  # make_tensor's own bound where a sample gives the other one only


class Origin(Enum):
    """Where the samples of an operator are from."""

    SPEC = "of the spec"
    RECORDED = "recorded from the calls of formulas and other operators"
    MADE = "made from the schema"


def samples_of(facts: Facts, recorded: list[Sample]) -> tuple[list[Sample], Origin]:
    """The operator's samples, and where they are from; there may be none. recorded: what other
    operators call it with."""
    if facts.samples or recorded:
        return facts.samples or recorded, Origin.SPEC if facts.samples else Origin.RECORDED
    made = list(itertools.islice(_made(facts), _MOST_MADE))
    return made, Origin.MADE if made else Origin.SPEC


def takes_nothing(facts: Facts) -> bool:
    """Whether the operator can be called without arguments, which is the sample `{}`."""
    outs = {a.name for a in out_arguments(facts.overload)}
    arguments = [a for a in facts.overload._schema.arguments if a.name not in outs]
    return all(a.has_default_value() for a in arguments)


def call_of(
    facts: Facts,
    sample: Sample,
    dtype: torch.dtype,
    seed: int = 0,
    device: torch.device = torch.device("cpu"),  # noqa: B008  # a value
) -> Call:
    """The call of a sample with tensors of a dtype; the same seed gives the same values on every
    device."""
    without_gradient, fixed, as_they_are = set(), set(), set()
    arguments: dict[str, Any] = {}
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # of the CPU, where the values are made
        for name, value in sample.items():
            arguments[name] = _decoded(value, dtype, device)
            for tensor in tensors_in(value):
                if not tensor.get("requires_grad", True):
                    without_gradient.add(name)
                if "dtype" in tensor:
                    fixed.add(name)
                if tensor.get("fixed", False):
                    as_they_are.add(name)
    sets = map(frozenset, (without_gradient, fixed, as_they_are))
    return Call(facts.overload, arguments, *sets)


def resized(sample: Sample, old: int, new: int) -> Sample:
    """The sample with every size `old` of a tensor being `new`: sizes that are equal belong
    together."""
    return _with_sizes(sample, lambda sizes: [new if n == old else n for n in sizes])


def zero_dim(sample: Sample) -> Sample:
    """The sample with tensors of no dimension."""
    return _with_sizes(sample, lambda sizes: [])


def enlarged(sample: Sample, numel: int) -> Sample:
    """The sample with every size above 1 multiplied by one power of two, the greatest with which no
    tensor has more elements than `numel`; as it is where there is none."""
    sizes: list[list[int]] = []
    _with_sizes(sample, lambda found: sizes.append(found) or found)

    def fits(factor: int) -> bool:
        return all(math.prod(n * factor if n > 1 else n for n in found) <= numel for found in sizes)

    factor = 1
    while any(n > 1 for found in sizes for n in found) and fits(2 * factor):
        factor *= 2
    return _with_sizes(sample, lambda found: [n * factor if n > 1 else n for n in found])


def _with_sizes(sample: Sample, sizes: Callable[[list[int]], list[int]]) -> Sample:
    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "tensor" in value and _has_other_sizes(value["tensor"]):
            return {"tensor": {**value["tensor"], "size": sizes(value["tensor"]["size"])}}
        return {key: change(item) for key, item in value.items()}

    return {name: change(value) for name, value in sample.items()}


def is_integer(dtype: torch.dtype) -> bool:
    """Whether a dtype is one of integers, which bool is not."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)


def could_index(sample: Sample, dtype: torch.dtype) -> bool:
    """Whether a tensor of integers has elements, which may be places in another tensor; `dtype` is
    that of tensors whose samples say none."""
    for value in sample.values():
        for tensor in tensors_in(value):
            own = getattr(torch, tensor["dtype"]) if "dtype" in tensor else dtype
            if is_integer(own) and ("values" in tensor or 0 not in tensor["size"]):
                return True
    return False


def sizes_in(sample: Sample) -> list[int]:
    """Every size of a dimension of a tensor, each once, that no tensor with `values` and none that
    is `fixed` has."""
    tensors = [tensor for value in sample.values() for tensor in tensors_in(value)]
    fixed = {n for t in tensors if not _has_other_sizes(t) for n in _shape(t)}
    sizes = dict.fromkeys(n for tensor in tensors for n in tensor.get("size", ()))
    return [n for n in sizes if n not in fixed]


def _has_other_sizes(tensor: dict[str, Any]) -> bool:
    """Whether a tensor of the table stands for those of other sizes."""
    return "size" in tensor and not tensor.get("fixed", False)


def _shape(tensor: dict[str, Any]) -> Sequence[int]:
    return tensor["size"] if "size" in tensor else torch.tensor(_numbers(tensor["values"])).shape


def tensors_in(value: Any) -> Iterator[dict[str, Any]]:
    """What a value of the table says of each of its tensors."""
    if isinstance(value, dict) and "tensor" in value:
        yield value["tensor"]
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
    elif isinstance(value, list):
        for item in value:
            yield from tensors_in(item)


def _decoded(value: Any, dtype: torch.dtype, device: torch.device) -> Any:
    """The Python value of one of the table."""
    if isinstance(value, list):
        return [_decoded(item, dtype, device) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return _tensor(content, dtype).to(device)
    if kind == "dict":
        return {_decoded(k, dtype, device): _decoded(v, dtype, device) for k, v in content}
    if kind == "generator":
        return torch.Generator(device).manual_seed(content)
    if kind == "device":
        return device if content == "cpu" else torch.device(content)
    return _CONSTRUCTORS[kind](content)


_CONSTRUCTORS = {
    "dtype": lambda name: getattr(torch, name),
    "enum": lambda name: getattr(torch, name),
    "complex": lambda parts: complex(*parts),
    "float": float,
}


def _tensor(content: dict[str, Any], dtype: torch.dtype) -> torch.Tensor:
    if content.get("fixed", False):
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)  # whatever the seed of the call
            return _tensor({**content, "fixed": False}, dtype)
    own = getattr(torch, content["dtype"]) if "dtype" in content else dtype
    if "values" in content:
        numbers = _numbers(content["values"])
        if is_integer(own) and torch.tensor(numbers, device="cpu").is_floating_point():
            return torch.tensor(numbers, device="cpu").to(own)  # which torch.tensor does not round
        return torch.tensor(numbers, dtype=own, device="cpu")
    bounds = _bounds(content, own)
    # make_tensor knows the common dtypes; the others take values of one that it knows
    known = own if own in _MAKEABLE else torch.int64 if own in _UNSIGNED else torch.float32
    made = torch.testing.make_tensor(
        content["size"], dtype=known, device="cpu",
        exclude_zero=content.get("exclude_zero", False), **bounds,
    )  # fmt: skip
    return made.to(own)


def _bounds(content: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """`low` and `high` for a dtype: whole numbers for integers, none for bool."""
    bounds = {name: _numbers(content[name]) for name in ("low", "high") if name in content}
    if bounds:
        bounds = _both(**bounds)
    if dtype.is_floating_point or dtype.is_complex:
        return bounds or {"low": _LOW, "high": _HIGH}
    if dtype == torch.bool:
        return {}
    if not bounds:
        return {"low": 0, "high": _HIGH + 1} if dtype in _UNSIGNED else {}
    least, most = torch.iinfo(dtype).min, min(torch.iinfo(dtype).max, torch.iinfo(torch.int64).max)
    low, high = (math.ceil(min(max(value, least), most)) for value in bounds.values())
    return {"low": low, "high": max(high, low + 1)}


def _both(low: float | None = None, high: float | None = None) -> dict[str, float]:
    """Where one is missing, make_tensor's own, or twice the other where that lies beyond it."""
    if low is None:
        low = -_WIDEST if high > -_WIDEST else 2 * high
    if high is None:
        high = _WIDEST if low < _WIDEST else 2 * low
    return {"low": low, "high": high}


def _numbers(value: Any) -> Any:
    """Numbers of the table, in lists or alone: infinities are maps in it."""
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return float(value["float"]) if isinstance(value, dict) else value


_UNSIGNED = {torch.uint16, torch.uint32, torch.uint64}  # those that make_tensor does not know
_MAKEABLE = {
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
}  # fmt: skip


def _made(facts: Facts) -> Iterator[Sample]:
    """Samples that the operator's Meta kernel takes; integers only where a rule checks them."""
    if not torch._C._dispatch_has_computed_kernel_for_dispatch_key(facts.overload.name(), "Meta"):
        return
    outs = {a.name for a in out_arguments(facts.overload)}
    arguments = [a for a in facts.overload._schema.arguments if a.name not in outs]
    asked = [a for a in arguments if not a.has_default_value()]
    if any(_guess(a.type, [1], None, a.N) is _UNKNOWN for a in asked):
        return  # only its author knows such values
    tensors = [a for a in asked if _holds_tensors(a.type)]
    if not tensors or not (facts.shape_rule or all(_is_harmless(a.type) for a in asked)):
        return  # an integer may be an address, and without tensors a call does we know not what
    for first, others in _TRIED_SIZES:
        for dtypes in itertools.product((None, *_TRIED_DTYPES[1:]), repeat=min(len(tensors), 2)):
            sample = {}
            for a in asked:
                index = tensors.index(a) if a in tensors else 0
                size = first if index == 0 else others
                dtype = dtypes[min(index, 1)] if a in tensors else None
                sample[a.name] = _guess(a.type, size, dtype, a.N)
            if is_taken(facts, sample):
                yield sample
                break


_UNKNOWN = object()


def _is_harmless(type_: torch._C.JitType) -> bool:
    return not any(word in str(type_) for word in ("int", "SymInt"))


def _holds_tensors(type_: torch._C.JitType) -> bool:
    return "Tensor" in str(type_)


def _guess(type_: torch._C.JitType, size: list[int], dtype: str | None, length: int | None) -> Any:
    """A value for a type of a schema, as the table has values; a list has a length or two items."""
    text = str(type_)
    if text == "Tensor":
        tensor = {"size": size, **({"dtype": dtype} if dtype else {})}
        if dtype == "int64":
            tensor |= {"low": 0, "high": 1}  # zeros: an index of anything that has elements
        return {"tensor": tensor}
    if isinstance(type_, torch.OptionalType):
        is_tensor = _holds_tensors(type_)
        return _guess(type_.getElementType(), size, dtype, length) if is_tensor else None
    if isinstance(type_, torch.ListType):
        element = _guess(type_.getElementType(), size, dtype, None)
        return _UNKNOWN if element is _UNKNOWN else [element] * (length or 2)
    values = {"int": 1, "SymInt": 1, "float": 0.5, "bool": True, "number": 1, "Scalar": 1}
    return values.get(text, _UNKNOWN)


def is_taken(facts: Facts, sample: Sample, dtype: torch.dtype = torch.float32) -> bool:
    """Whether the operator's Meta kernel takes the sample: it computes sizes and reads nothing."""
    call = call_of(facts, sample, dtype)
    outs = {a.name: torch.empty(0, device="cpu") for a in out_arguments(facts.overload)}
    call = call.with_arguments({**call.arguments, **outs})
    try:
        call.map_tensors(lambda tensor: tensor.to("meta")).run()
    except Exception:  # whatever it raises: these arguments are not for it
        return False
    return True
