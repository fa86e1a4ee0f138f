# SPDX-License-Identifier: BSD-3-Clause
"""YAML text to model records: reads both spec files, writes nothing.

Checks what concerns one entry alone (keys, forms of values, schemas, names of dispatch keys and
tags) and duplicates among the entries of a file; what concerns several entries is for analysis.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import Errors, Location, did_you_mean
from ..schema.parser import LONGEST_NAME, SchemaError, parse_name
from ..schema.schema import OperatorName
from .derivative_readers import is_of_headers, read_derivative, read_headers
from .dispatch_keys import DISPATCH_KEYS
from .entry_readers import READERS, read_schema
from .keys import spec_keys
from .model import (
    OVERRIDABLE,
    Derivative,
    DispatchEntry,
    Line,
    Operator,
)
from .short_forms import SHORT_KEYS, long_form
from .yaml_nodes import Node, kind
from .yaml_reader import YamlReader

# Tags of torch 2.11 to 2.14.
TAGS = (
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated "
    "inplace inplace_view maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides "
    "needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant "
    "pointwise pt2_compliant_tag reduction view_copy"
).split()
_CHOICES = {
    "autocast": ("lower_precision_fp", "fp32", "promote"),
    "device_check": ("ExactSame", "NoCheck"),
    "layout": ("any", "contiguous", "last_dim_contiguous"),
    "variants": ("function", "method"),
    "tags": TAGS,
}


def load_operators(path: Path, name: str, errors: Errors) -> list[Operator]:
    """The entries of a native_functions.yaml; `name` is how messages call the file."""
    reader = YamlReader(path, name, errors)
    found: dict[OperatorName, Operator] = {}
    entries = reader.entries()
    errors.misses_operators = entries is None
    nodes = [node for entry in entries or () for node in long_form(reader, entry)]
    for node in nodes:
        entry_name = _entry_name(node, "func")
        with errors.about(entry_name):
            operator = _OperatorEntry(reader, node).read()
        if operator is None:
            errors.misses_operators |= entry_name is None
            continue
        first = found.setdefault(operator.name, operator)
        if first is not operator:
            errors.add(
                operator.location,
                f"operator '{operator.name}' stands twice",
                f"first on line {first.location.line}",
            )
    return list(found.values())


def load_derivatives(path: Path, name: str, errors: Errors) -> list[Derivative]:
    """The entries of a derivatives.yaml; `name` is how messages call the file."""
    reader = YamlReader(path, name, errors)
    found: dict[OperatorName, Derivative] = {}
    headers: list[Line] = []
    for node in reader.entries() or ():
        if is_of_headers(node):
            headers += read_headers(reader, node)
            continue
        with errors.about(_entry_name(node, "name")):
            derivative = read_derivative(reader, node)
        if derivative is None:
            continue
        first = found.setdefault(derivative.name.name, derivative)
        if first is not derivative:
            errors.add(
                derivative.location,
                f"derivative for '{derivative.name.name}' stands twice",
                f"first on line {first.location.line}",
            )
    return [dataclasses.replace(found_, headers=tuple(headers)) for found_ in found.values()]


def _entry_name(node: Node, key: str) -> str | None:
    """Whose entry it is, as far as that can be told before anything is checked."""
    pairs = node.value if kind(node) == "a map" else []
    texts = [value.value for name, value in pairs if name.value == key]
    if not texts or not isinstance(texts[0], str):
        return None
    name = texts[0].partition("(")[0].strip()
    return name if name.startswith(f"{OVERRIDABLE}::") else name.rpartition("::")[2]


def _operator_name(errors: Errors, text: str, place: Location) -> OperatorName | None:
    try:
        return parse_name(text)
    except SchemaError as error:
        errors.add(place.after(error.offset), error.message, error.hint)
        return None


class _OperatorEntry:
    """Reads one entry: one method for each form that differs from its kind's plain reading."""

    def __init__(self, reader: YamlReader, node: Node) -> None:
        self.reader, self.errors, self.node = reader, reader.errors, node

    def read(self) -> Operator | None:
        keys = spec_keys(Operator)
        allowed = (*keys, *SHORT_KEYS)
        nodes = self.reader.mapping(self.node, allowed, "an operator's entry")
        nodes = {name: node for name, node in nodes.items() if name not in SHORT_KEYS}
        func_node = nodes.pop("func", None)
        if func_node is None:
            if nodes:
                self.errors.add(self.reader.location(self.node), "an operator's entry needs 'func'")
            return None
        func = read_schema(self.reader, func_node)
        values = {
            name: self.value(name, keys[name].metadata["form"], n) for name, n in nodes.items()
        }
        if func is None:
            return None
        given = {name: value for name, value in values.items() if value is not None}
        places = {name: self.reader.location(n) for name, n in nodes.items()}
        location = self.reader.location(self.node)
        return Operator(location=location, func=func, locations=places, **given)

    def value(self, name: str, form: str, node: Node) -> Any:
        special: Callable[[Node], Any] | None = getattr(self, f"read_{name}", None)
        if special:
            return special(node)
        if name in READERS:
            return READERS[name](self.reader, node)
        what = f"'{name}'"
        if form == "flag":
            return self.reader.flag(node, what)
        if form == "text":
            text = self.reader.text(node, what)
            return text if text is None or self.is_choice(name, text, node) else None
        items = self.reader.texts(node, what)
        for text, place in items:
            self.check_choice(name, text, place)
        return tuple(text for text, _ in items)

    def is_choice(self, name: str, text: str, node: Node) -> bool:
        return self.check_choice(name, text, self.reader.location(node))

    def check_choice(self, name: str, text: str, place: Location) -> bool:
        allowed = _CHOICES.get(name)
        if allowed is None or text in allowed:
            return True
        hint = did_you_mean(text, allowed, "it takes")
        self.errors.add(place, f"'{name}' does not take '{text}'", hint)
        return False

    def read_dispatch(self, node: Node) -> tuple[DispatchEntry, ...]:
        found: dict[str, DispatchEntry] = {}
        for keys, (key_node, value) in self.reader.located_mapping(
            node, None, "'dispatch'"
        ).items():
            kernel = self.reader.text(value, f"the kernel for '{keys}'")
            if kernel is not None and not _is_kernel_name(kernel):
                place = self.reader.location(value)
                self.errors.add(place, f"'{kernel}' is not the name of a C++ function")
                kernel = None
            elif kernel is not None and len(kernel) > LONGEST_NAME:
                place = self.reader.location(value)
                self.errors.add(place, f"a kernel's name has at most {LONGEST_NAME} characters")
                kernel = None
            for key, place in self.reader.split(key_node, keys):
                if key not in DISPATCH_KEYS:
                    hint = did_you_mean(key, DISPATCH_KEYS)
                    self.errors.add(place, f"unknown dispatch key '{key}'", hint)
                elif key in found:
                    self.errors.add(place, f"dispatch key '{key}' stands twice")
                elif kernel is not None:
                    found[key] = DispatchEntry(key, kernel, place)
        return tuple(found.values())

    def read_autogen(self, node: Node) -> tuple[OperatorName, ...]:
        names = [
            _operator_name(self.errors, t, at) for t, at in self.reader.texts(node, "'autogen'")
        ]
        return tuple(name for name in names if name is not None)

    def read_ufunc_inner_loop(self, node: Node) -> tuple[tuple[str, Line], ...]:
        loops = {"Generic": node}
        if kind(node) == "a map":
            keys = ("Generic", "ScalarOnly", "CPUScalar")
            loops = self.reader.mapping(node, keys, "'ufunc_inner_loop'")
        texts = {k: (self.reader.text(n, f"the loop for '{k}'"), n) for k, n in loops.items()}
        return tuple(
            (k, Line(text, self.reader.location(n)))
            for k, (text, n) in texts.items()
            if text is not None
        )

    def read_layout(self, node: Node) -> tuple[tuple[str, Line], ...]:
        found = []
        for name, (key_node, value) in self.reader.located_mapping(node, None, "'layout'").items():
            text = self.reader.text(value, f"the layout of '{name}'")
            if text is None or not self.is_choice("layout", text, value):
                text = "any"  # the argument's name is still to be checked
            found.append((text, Line(name, self.reader.location(key_node))))
        return tuple(found)

    def read_precomputed(self, node: Node) -> tuple[Line, ...]:
        if kind(node) != "a list":
            self.errors.add(self.reader.location(node), "expected 'precomputed' as a list")
            return ()
        texts = [(self.reader.text(item, "an item of 'precomputed'"), item) for item in node.value]
        return tuple(Line(t, self.reader.location(n)) for t, n in texts if t is not None)


def _is_kernel_name(text: str) -> bool:
    return all(part.isidentifier() and part.isascii() for part in text.split("::"))
