# SPDX-License-Identifier: BSD-3-Clause
"""Samples in which one argument has another value: they show what a formula or rule ignores."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from .calls import out_arguments
from .facts import Facts
from .samples import Sample, is_taken, tensors_in

if TYPE_CHECKING:
    from .subject import Subject

# What is added to a float: enough to be seen in a result, and no other value that means something.
_STEP = 0.375
# Types whose values say where results are and how they lie, and not what they are.
_PLACES = ("Device", "Layout", "MemoryFormat", "Generator", "Stream")
_TENSORS = ("Tensor", "List[Tensor]", "List[Optional[Tensor]]")
_INTEGERS = ("int", "SymInt")
_COMPLEX = "complex128"
# What is tried where an argument is missing.
_FIRST: dict[str, Any] = {"int": 1, "SymInt": 1, "float": 0.5, "number": 0.5, "bool": True}


@dataclass(frozen=True)
class Variation:
    """A sample that differs from one of the spec's in one argument."""

    what: str  # differs, for a message
    sample: Sample
    is_to_run: bool = False  # whatever it raises in a check is a mistake


@dataclass
class Variations:
    """Those of a subject."""

    samples: list[Variation] = field(default_factory=list)
    # arguments that have one value in all samples, and for which no other was found
    constant: list[str] = field(default_factory=list)


def variations_of(subject: Subject) -> Variations:
    """For each argument the first other value that the operator takes, by preference one that
    changes the result; and for each tensor alone that it is complex."""
    found = Variations()
    outs = {a.name for a in out_arguments(subject.overload)}
    for argument in subject.overload._schema.arguments:
        name, type_ = argument.name, argument.real_type
        if name in outs or str(type_) in _TENSORS or any(word in str(type_) for word in _PLACES):
            continue
        taken = _first(subject, argument)
        if taken is not None:
            found.samples.append(Variation(f"{name}={_shown(taken[name])}", taken))
        elif len({repr(sample.get(name)) for sample in subject.samples}) < 2:
            found.constant.append(name)
    found.samples += _of_two_kinds(subject)
    return found


def _first(subject: Subject, argument: torch._C.Argument) -> Sample | None:
    """A sample with another value of an argument; None where the operator takes none."""
    same = None
    for sample in subject.samples:
        before = _results(subject, sample)
        value = sample.get(argument.name, argument.default_value)
        for other in _others(subject.facts, sample, value, argument.real_type):
            changed = {**sample, argument.name: other}
            after = _results(subject, changed)
            if before is None or after is None:
                continue
            if _differ(before, after):
                return changed
            same = same or changed
    return same


def _results(subject: Subject, sample: Sample) -> tuple[torch.Tensor, ...] | None:
    """What the operator returns for a sample; None where it or its Meta kernel refuses, or where a
    number of the result is not finite."""
    if not is_taken(subject.facts, sample, subject.wide_dtype):
        return None
    try:
        call = subject.call(sample, subject.wide_dtype)
        results = subject.run(call) if subject.fits(call) else ()
        return results if results and all(torch.isfinite(r).all() for r in results) else None
    except Exception:  # as the operator likes
        return None


def _differ(first: tuple[torch.Tensor, ...], second: tuple[torch.Tensor, ...]) -> bool:
    pairs = itertools.zip_longest(first, second)
    return any(
        a is None or b is None or a.dtype != b.dtype or not torch.equal(a, b) for a, b in pairs
    )


def _others(facts: Facts, sample: Sample, value: Any, type_: torch._C.JitType) -> Iterator[Any]:
    """Other values for an argument of a type. An integer may be an address or a place, and a tensor
    of any size be read beyond its end: they are made up only where a rule checks them."""
    text = str(type_)
    if isinstance(type_, torch.OptionalType):
        element = type_.getElementType()
        if value is not None:
            yield from itertools.chain(_others(facts, sample, value, element), [None])
        elif str(element) == "Tensor":
            yield from _tensors_beside(sample) if facts.shape_rule else ()
        elif str(element) in _FIRST:
            first = _FIRST[str(element)]
            yield from [first] if facts.shape_rule or str(element) not in _INTEGERS else []
            yield from _others(facts, sample, first, element)
    elif isinstance(type_, torch.ListType):
        yield from _other_lists(facts, sample, value, type_.getElementType())
    elif text == "bool":
        yield not value
    elif text in _INTEGERS:
        yield from (value + 1, value - 1) if facts.shape_rule else ()
    elif text == "ScalarType":
        yield from ({"dtype": name} for name in (_COMPLEX, "float64") if value != {"dtype": name})
    elif isinstance(value, dict) and "complex" in value:
        real, imaginary = value["complex"]
        yield from ({"complex": [real + _STEP, imaginary]}, {"complex": [real, imaginary + _STEP]})
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from (value + _STEP, value - _STEP, value / 2, value + 1, value - 1)


def _other_lists(
    facts: Facts, sample: Sample, value: Any, element: torch._C.JitType
) -> Iterator[list]:
    """Lists that differ from one in an element."""
    if not isinstance(value, list) or "Tensor" in str(element):
        return
    for index, item in enumerate(value):
        for other in _others(facts, sample, item, element):
            yield [*value[:index], other, *value[index + 1 :]]


def _tensors_beside(sample: Sample) -> Iterator[dict]:
    """Tensors in place of one that is missing, of the sizes that the others have."""
    sizes = [t["size"] for value in sample.values() for t in tensors_in(value) if "size" in t]
    parts = [part for size in sizes for part in (size, size[-1:], size[:1], size[1:2], [])]
    yield from ({"tensor": {"size": list(size)}} for size in dict.fromkeys(map(tuple, parts)))


def _of_two_kinds(subject: Subject) -> Iterator[Variation]:
    """For each tensor a sample in which it alone is complex."""
    done = set()
    for sample in subject.samples:
        maps = {name: value for name, value in sample.items() if isinstance(value, dict)}
        tensors = {name: value["tensor"] for name, value in maps.items() if "tensor" in value}
        free = {name: tensor for name, tensor in tensors.items() if "dtype" not in tensor}
        for name in [n for n in free if n not in done and len(free) > 1]:
            changed = {**sample, name: {"tensor": {**free[name], "dtype": _COMPLEX}}}
            if _results(subject, changed) is not None:
                done.add(name)
                yield Variation(f"a complex {name} beside real tensors", changed, is_to_run=True)


def _shown(value: Any) -> str:
    """A value of the table, as a message has it."""
    if isinstance(value, dict):
        ((_, value),) = value.items()
        value = value.get("size", value) if isinstance(value, dict) else value
    return str(value)
