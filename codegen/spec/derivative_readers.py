# SPDX-License-Identifier: BSD-3-Clause
"""The entries of derivatives.yaml: of an operator and its formulas, or of headers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .dispatch_keys import DISPATCH_KEYS
from .entry_readers import read_schema
from .model import NON_DIFFERENTIABLE, Derivative, Flag, Formula, Line
from .yaml_nodes import Node, kind
from .yaml_reader import QUOTES, YamlReader

# What `dispatch:` of a derivatives entry may name.
_AUTOGRAD_KEYS = ("Default", *sorted(k for k in DISPATCH_KEYS if k.startswith("Autograd")))
_HEADER = re.compile(r"\w[\w.+-]*(/[\w.+-]+)*", re.ASCII)
# Operators of a backward may stand in an entry without formulas, as two of upstream's do: who
# differentiates them is told that they have none.
_BACKWARD = "backward"


def is_of_headers(node: Node) -> bool:
    """Whether an entry names headers, and is of no operator."""
    names = [key.value for key, _ in node.value] if kind(node) == "a map" else []
    return "headers" in names and "name" not in names


def read_headers(reader: YamlReader, node: Node) -> Iterator[Line]:
    """The headers that an entry names."""
    nodes = reader.mapping(node, ("headers",), "an entry of headers")
    texts = reader.texts(nodes["headers"], "'headers'")
    if not texts:
        reader.errors.add(reader.location(node), "the entry names no header")
    for text, place in texts:
        if _HEADER.fullmatch(text):
            yield Line(text, place)
        else:
            message = f"'{text}' is not the path of a header on the include path"
            reader.errors.add(place, message, "as in NS/formulas.h")


def read_derivative(reader: YamlReader, node: Node) -> Derivative | None:
    """An operator's entry; None (and noted) where its schema cannot be read."""
    before = reader.errors.count
    nodes = reader.located_mapping(node, None, "a derivatives entry")
    if "name" not in nodes:
        if nodes:
            reader.errors.add(reader.location(node), "a derivatives entry needs 'name'")
        return None
    name = read_schema(reader, nodes.pop("name")[1])
    flags_node = nodes.pop("output_differentiability", None)
    flags = None
    if flags_node is not None:
        found = reader.flags_and_texts(flags_node[1], "'output_differentiability'")
        flags = tuple(Flag(text, location) for text, location in found)
    materialize_grads = False
    if "materialize_grads" in nodes:
        value = nodes.pop("materialize_grads")[1]
        materialize_grads = bool(reader.flag(value, "'materialize_grads'"))
    dispatch = nodes.pop("dispatch", None)
    count = len(nodes)
    per_key: dict[str, tuple[Formula, ...]] = {}
    if dispatch is not None:
        for key, block in reader.mapping(dispatch[1], _AUTOGRAD_KEYS, "'dispatch'").items():
            lines = reader.located_mapping(block, None, f"the formulas for '{key}'")
            per_key[key] = _formulas(reader, lines)
            count += len(lines)
    if nodes or not per_key:
        per_key["Default"] = (*per_key.get("Default", ()), *_formulas(reader, nodes))
    if name is None:
        return None
    is_plain = reader.errors.count == before
    if is_plain and not count and flags is None and _BACKWARD not in name.name.base:
        what, hint = f"the entry of '{name.name}' has no formula", "it has lines NAMES: FORMULA"
        reader.errors.add(reader.location(node), what, hint)
    formulas = tuple(per_key.items())
    return Derivative(reader.location(node), name, flags, materialize_grads, formulas)


def _formulas(reader: YamlReader, nodes: dict[str, tuple[Node, Node]]) -> tuple[Formula, ...]:
    found = []
    for names, (key_node, value) in nodes.items():
        parts = reader.split(key_node, names)
        text = reader.text(value, f"the formula for '{names}'", QUOTES)
        if text is None:
            continue
        if not parts:
            reader.errors.add(reader.location(key_node), "a formula for no argument and no result")
            continue
        if not text.strip():
            reader.errors.add(reader.location(key_node), f"the formula for '{names}' is empty")
            continue
        lead = len(text) - len(text.lstrip())
        text = text.strip()
        found.append(
            Formula(
                names=tuple(name for name, _ in parts),
                text=text.lower() if text.lower() == NON_DIFFERENTIABLE else text,
                location=reader.location(value),
                name_locations=tuple(place for _, place in parts),
                column_of=lambda at, value=value, lead=lead: reader.location(value, lead + at),
            )
        )
    return tuple(found)
