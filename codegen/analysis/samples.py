# SPDX-License-Identifier: BSD-3-Clause
"""`samples:`, the arguments on which the generated tests call an operator.

A sample's values become what JSON can hold: numbers, texts, lists, None, and maps of one key for
the rest: {"tensor": {...}}, {"dtype": ...}, {"complex": [re, im]}, {"dict": [[k, v], ...]}.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ..errors import Errors, did_you_mean
from ..schema.schema import Argument, OperatorName, Type
from ..spec.dtypes import scalar_types, torch_name
from ..spec.model import Operator, Sample, Value
from .functional_forms import FunctionalForms

_INTEGER = re.compile(r"[+-]?\d{1,19}")
_FLOAT = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|\.?(inf|nan))", re.IGNORECASE)
_COMPLEX = re.compile(r"(?P<re>[+-]?(\d+\.?\d*|\.\d+)(?=[+-]))?(?P<im>[+-]?(\d+\.?\d*|\.\d+))j")
_FLAGS = {"true": True, "false": False}
_NOTHING = ("", "null", "none", "~")
_TENSOR_FLAGS = ("exclude_zero", "requires_grad", "fixed")
_TENSOR_KEYS = ("size", "values", "dtype", "low", "high", *_TENSOR_FLAGS)
_ENUMS = {
    "MemoryFormat": ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d"),
    "Layout": ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"),
}
_MOST_ELEMENTS = 1 << 24

Plain = Any  # what JSON can hold


class SampleAnalysis:
    """The samples of every operator: its own, or those of another form of it."""

    def __init__(
        self, operators: Iterable[Operator], forms: FunctionalForms, errors: Errors
    ) -> None:
        self.forms, self.errors = forms, errors
        self._own: dict[OperatorName, tuple[dict[str, Plain], ...]] = {}
        self._of_family: dict[OperatorName, tuple[dict[str, Plain], ...]] = {}
        for operator in operators:
            if operator.samples:
                with errors.about(str(operator.name)):
                    read = tuple(self._sample(operator, s) for s in operator.samples)
                self._own[operator.name] = read
                self._of_family.setdefault(self._family(operator), read)

    def samples(self, operator: Operator) -> tuple[dict[str, Plain], ...]:
        """Values by argument, a sample each."""
        own = self._own.get(operator.name)
        return own or self._of_family.get(self._family(operator), ())

    def _family(self, operator: Operator) -> OperatorName:
        """What stands for all forms of an operator: the functional one, where there is one."""
        functional, origin = self.forms.of(operator), operator.origin
        if functional is None and origin is not None:
            if operator.func.mutated or origin.func.is_view:
                return self._family(origin)
        return (functional or operator).name

    def _sample(self, operator: Operator, sample: Sample) -> dict[str, Plain]:
        taken: dict[str, Argument] = {
            a.name: a
            for a in operator.func.arguments
            if not a.is_out  # out= tensors are made by the tests
        }
        found = {}
        for line, value in sample.arguments:
            if line.text not in taken:
                hint = did_you_mean(line.text, taken, "it takes")
                message = f"the operator takes no argument '{line.text}' in a sample"
                self.errors.add(line.location, message, hint)
                continue
            found[line.text] = self._value(taken[line.text].type, value)
        for argument in taken.values():
            if argument.default is not None or argument.name in found:
                continue
            if argument.type.name == "Optional":
                found[argument.name] = None
                continue
            message = f"the sample has no value for '{argument.name}'"
            self.errors.add(sample.location, message)
        return {name: found[name] for name in taken if name in found}

    def _value(self, type_: Type, value: Value) -> Plain:
        """The value as an argument of a type; mistakes are noted."""
        is_nothing = value.text is not None and not value.is_quoted
        if type_.name == "Optional":
            is_nothing = is_nothing and value.text.lower() in _NOTHING
            return None if is_nothing else self._value(type_.args[0], value)
        if type_.name in _READERS:
            read = _READERS[type_.name](self, value)
            if read is not None:
                return read[0]
        elif type_.name == "List":
            return self._list(type_, value)
        elif type_.name == "Tuple" and value.items is not None:
            if len(value.items) == len(type_.args):
                return [self._value(t, v) for t, v in zip(type_.args, value.items)]
        elif type_.name == "Dict" and value.entries is not None:
            keys = [Value(value.location, text=k) for k, _ in value.entries]
            pairs = zip(keys, (v for _, v in value.entries))
            return {"dict": [[self._value(t, v) for t, v in zip(type_.args, p)] for p in pairs]}
        elif type_.name not in ("Tuple", "Dict"):
            message = f"a sample cannot give a value of type '{type_.bare()}'"
            self.errors.add(value.location, message)
            return None
        self.errors.add(value.location, *_not_of_type(type_, value))
        return None

    def _list(self, type_: Type, value: Value) -> Plain:
        if value.items is None and type_.size is not None:
            return [self._value(type_.args[0], value)] * type_.size
        if value.items is None or type_.size not in (None, len(value.items)):
            self.errors.add(value.location, *_not_of_type(type_, value))
            return []
        return [self._value(type_.args[0], item) for item in value.items]

    def read_tensor(self, value: Value) -> tuple[Plain] | None:
        """`[2, 3]`, a size; or a map, whose keys are arguments of torch.testing.make_tensor."""
        if value.items is not None:
            sizes = [_read_int(item) for item in value.items]
            sizes_ok = [s[0] for s in sizes if s is not None and s[0] >= 0]
            if len(sizes_ok) < len(sizes):
                return None
            return ({"tensor": {"size": self._checked(value, sizes_ok)}},)
        if value.entries is None:
            return None
        found: dict[str, Plain] = {}
        for name, item in value.entries:
            if name not in _TENSOR_KEYS:
                hint = did_you_mean(name, _TENSOR_KEYS, "it can say")
                self.errors.add(item.location, f"a tensor of a sample has no '{name}'", hint)
                continue
            read = self._tensor_key(name, item)
            if read is None:
                message = f"'{_shown(item)}' is not a value for '{name}'"
                self.errors.add(item.location, message)
            else:
                found[name] = read[0]
        if ("size" in found) == ("values" in found) and all(n in found for n, _ in value.entries):
            self.errors.add(value.location, "a tensor of a sample has either 'size' or 'values'")
        return ({"tensor": found},)

    def _tensor_key(self, name: str, value: Value) -> tuple[Plain] | None:
        if name == "size":
            read = self.read_tensor(value) if value.items is not None else None
            return (read[0]["tensor"]["size"],) if read else None
        if name == "values":
            nested = _nested(value)
            return None if value.items is None or not _is_regular(nested) else (nested,)
        if name == "dtype":
            return _name_of_dtype(value)
        return _read_bool(value) if name in _TENSOR_FLAGS else _number(value)

    def _checked(self, value: Value, sizes: list[int]) -> list[int]:
        elements = 1
        for size in sizes:
            elements *= size
        if elements > _MOST_ELEMENTS:
            message = f"a tensor of a sample has at most {_MOST_ELEMENTS} elements"
            self.errors.add(value.location, message)
        return sizes


def _shown(value: Value) -> str:
    if value.text is not None:
        return value.text
    return "a list" if value.items is not None else "a map"


def _not_of_type(type_: Type, value: Value) -> tuple[str, str | None]:
    hint = "a tensor is its size, as in [2, 3]" if type_.name == "Tensor" else None
    shown = f"'{value.text}'" if value.text is not None else _shown(value)
    return f"{shown} is not a value of type '{type_.bare()}'", hint


def _is_regular(nested: Plain) -> bool:
    """Whether it is the elements of a tensor: lists of one length at each depth."""
    if not isinstance(nested, list):
        return nested is not None
    shapes = {_shape(item) for item in nested}
    return len(shapes) < 2 and all(map(_is_regular, nested))


def _shape(nested: Plain) -> tuple[int, ...]:
    return (len(nested), *_shape(nested[0])) if isinstance(nested, list) and nested else ()


def _nested(value: Value) -> Plain:
    """A list of lists of numbers or flags; None where it is none."""
    if value.items is None:
        read = _number(value) or _read_bool(value)
        return read[0] if read else None
    items = [_nested(item) for item in value.items]
    return None if any(item is None for item in items) else items


def _read_int(value: Value) -> tuple[Plain] | None:
    text = value.text
    return (int(text),) if text is not None and _INTEGER.fullmatch(text) else None


def _number(value: Value) -> tuple[Plain] | None:
    """An integer, or a float as a text where JSON has none."""
    if (read := _read_int(value)) is not None:
        return read
    if value.text is None or not _FLOAT.fullmatch(value.text):
        return None
    number = float(value.text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return (number,) if abs(number) < float("inf") else ({"float": str(number)},)


def _read_float(value: Value) -> tuple[Plain] | None:
    read = _number(value)
    return (float(read[0]),) if read and isinstance(read[0], int) else read


def _read_bool(value: Value) -> tuple[Plain] | None:
    flag = _FLAGS.get((value.text or "").lower())
    return None if flag is None or value.is_quoted else (flag,)


def _read_complex(value: Value) -> tuple[Plain] | None:
    match = _COMPLEX.fullmatch((value.text or "").replace(" ", ""))
    if match is None:
        return None
    return ({"complex": [float(match["re"] or 0), float(match["im"])]},)


def _read_scalar(value: Value) -> tuple[Plain] | None:
    return _number(value) or _read_bool(value) or _read_complex(value)


def _read_str(value: Value) -> tuple[Plain] | None:
    return None if value.text is None else (value.text,)


def _name_of_dtype(value: Value) -> tuple[Plain] | None:
    found = scalar_types(value.text or "")
    return (torch_name(found[0]),) if len(found) == 1 else None


def _read_dtype(value: Value) -> tuple[Plain] | None:
    name = _name_of_dtype(value)
    return ({"dtype": name[0]},) if name else None


def _read_device(value: Value) -> tuple[Plain] | None:
    return None if not value.text else ({"device": value.text},)


def _read_generator(value: Value) -> tuple[Plain] | None:
    """The seed of a new one."""
    seed = _read_int(value)
    return ({"generator": seed[0]},) if seed else None


def _enum_reader(names: tuple[str, ...]) -> Any:
    def read(_: SampleAnalysis, value: Value) -> tuple[Plain] | None:
        return ({"enum": value.text},) if value.text in names else None

    return read


def _plain(reader: Any) -> Any:
    return lambda _, value: reader(value)


_READERS = {
    "Tensor": SampleAnalysis.read_tensor,
    "int": _plain(_read_int),
    "SymInt": _plain(_read_int),
    "DeviceIndex": _plain(_read_int),
    "float": _plain(_read_float),
    "bool": _plain(_read_bool),
    "SymBool": _plain(_read_bool),
    "complex": _plain(lambda value: _read_complex(value) or _read_float(value)),
    "Scalar": _plain(_read_scalar),
    "str": _plain(_read_str),
    "ScalarType": _plain(_read_dtype),
    "Device": _plain(_read_device),
    "Generator": _plain(_read_generator),
    **{name: _enum_reader(names) for name, names in _ENUMS.items()},
}
