# SPDX-License-Identifier: BSD-3-Clause
"""The values of keys that have a form of their own: schemas, `meta:`, `dtypes:` and `samples:`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from ..errors import Location, did_you_mean
from ..schema.parser import SchemaError, parse_schema
from ..schema.schema import Schema
from .dispatch_keys import DISPATCH_KEYS
from .dtypes import GROUPS, SCALAR_TYPES, scalar_types
from .model import Check, DtypeRule, Expression, Line, Loop, MetaRule, ResultRule, Sample, Value
from .values import ITERATOR_RULES
from .yaml_nodes import Node, kind
from .yaml_reader import BRACKETS, DEEPEST, TOO_DEEP, YamlReader

_RESULT_KEYS = ("like", "size", "dtype", "strides", "when")
_LOOP = re.compile(r"for\s+([A-Za-z_]\w*)\s+in\s+(?=\S)", re.ASCII)


def read_meta(reader: YamlReader, node: Node) -> MetaRule | None:
    if kind(node) != "a map" and isinstance(node.value, str) and node.value:
        return _iterator_rule(reader, node)
    loops = _loops(node)
    located = reader.located_mapping(node, ("check", "results", *_RESULT_KEYS, *loops), "'meta'")
    if kind(node) != "a map":
        return None
    nodes = {name: value for name, (_, value) in located.items()}
    checks = nodes.pop("check", None)
    if loops:
        return _list_rule(reader, node, loops[0], located, checks)
    results = nodes.pop("results", None)
    if results is not None and nodes:
        place = reader.location(next(iter(nodes.values())))
        reader.errors.add(place, "'results' has the rules of all results")
    if results is not None:
        found = reader.mapping(results, None, "'results'")
        rules = tuple(
            _result_rule(
                reader, name, item, reader.mapping(item, _RESULT_KEYS, f"the rule of '{name}'")
            )
            for name, item in found.items()
        )
    elif nodes or checks is None:
        rules = (_result_rule(reader, None, node, nodes),)
    else:
        rules = ()  # it only checks
    return MetaRule(reader.location(node), rules, _checks(reader, checks))


def _iterator_rule(reader: YamlReader, node: Node) -> MetaRule | None:
    """The name of a function of TensorIterator in the place of a rule."""
    if node.value in ITERATOR_RULES:
        return MetaRule(reader.location(node), (), (), node.value)
    hint = did_you_mean(node.value, ITERATOR_RULES, "it is a map, or one of")
    reader.errors.add(reader.location(node), f"'{node.value}' is no rule", hint)
    return None


def _loops(node: Node) -> list[str]:
    """The keys of a map that say `for`."""
    pairs = node.value if kind(node) == "a map" else ()
    return [key.value for key, _ in pairs if re.match(r"for\b", str(key.value))]


def _list_rule(
    reader: YamlReader,
    node: Node,
    loop: str,
    located: dict[str, tuple[Node, Node]],
    checks: Node | None,
) -> MetaRule | None:
    """The rule of each tensor of a result that is a list."""
    key, value = located.pop(loop)
    for name, (other, _) in located.items():
        if name != "check":
            reader.errors.add(reader.location(other), f"'{loop}' has the rule of all results")
    match = _LOOP.match(loop)
    if match is None:
        hint = "say 'for x in inputs', with any name"
        reader.errors.add(reader.location(key), f"'{loop}' names no values", hint)
        return None
    rule = _result_rule(
        reader, None, value, reader.mapping(value, _RESULT_KEYS, f"the rule of '{loop}'")
    )
    values = Line(loop[match.end() :], reader.location(key, match.end()))
    rule = replace(rule, loop=Loop(match[1], values))
    return MetaRule(reader.location(node), (rule,), _checks(reader, checks))


def _result_rule(
    reader: YamlReader, name: str | None, node: Node, nodes: dict[str, Node]
) -> ResultRule:
    texts = {key: reader.text(nodes[key], f"'{key}'", BRACKETS) for key in nodes}
    lines = {
        key: Line(text, *_place(reader, nodes[key]))
        for key, text in texts.items()
        if text is not None
    }
    return ResultRule(reader.location(node), name, is_whole=None not in texts.values(), **lines)


def _checks(reader: YamlReader, node: Node | None) -> tuple[Check, ...]:
    if node is None:
        return ()
    items = node.value if kind(node) == "a list" else [node]
    return tuple(check for item in items for check in _check(reader, item))


def _check(reader: YamlReader, item: Node) -> Iterator[Check]:
    """A condition, or conditions with what is said where they do not hold."""
    if kind(item) == "a map":
        for text, (key, value) in reader.located_mapping(item, None, "a check").items():
            message = reader.text(value, f"what is said where '{text}' does not hold")
            if message is not None:
                yield Check(text, *_place(reader, key), message)
    elif (text := reader.text(item, "a check")) is not None:
        yield Check(text, *_place(reader, item))


def read_dtypes(reader: YamlReader, node: Node) -> tuple[DtypeRule, ...]:
    """Dtypes for all tensors, or a map of arguments and dispatch keys to that."""
    return _dtype_rules(reader, node, None)


def _dtype_rules(reader: YamlReader, node: Node, key: str | None) -> tuple[DtypeRule, ...]:
    what = "'dtypes'" if key is None else f"the dtypes for {key}"
    if kind(node) != "a map":
        return (DtypeRule(reader.location(node), _dtypes(reader, node, what), key),)
    found: list[DtypeRule] = []
    for names, (key_node, value) in reader.located_mapping(node, None, what).items():
        for name, place in reader.split(key_node, names):
            if key is None and name in DISPATCH_KEYS:
                found += _dtype_rules(reader, value, name)
            else:
                words = f"the dtypes of '{name}'"
                found.append(DtypeRule(place, _dtypes(reader, value, words), key, name))
    return tuple(found)


def _dtypes(reader: YamlReader, node: Node, what: str) -> tuple[str, ...]:
    """Names of c10, each once."""
    found: dict[str, None] = {}
    words = reader.texts(node, what)
    for word, place in words:
        known = scalar_types(word)
        if not known:
            hint = did_you_mean(word, [*GROUPS, *SCALAR_TYPES, *SCALAR_TYPES.values()])
            reader.errors.add(place, f"'{word}' is no dtype and no group of dtypes", hint)
        found.update(dict.fromkeys(known))
    if not words and kind(node) in ("a list", "nothing"):
        reader.errors.add(reader.location(node), f"expected {what}, got none")
    return tuple(found)


def read_samples(reader: YamlReader, node: Node) -> tuple[Sample, ...]:
    """A list of maps of arguments to values."""
    if kind(node) != "a list":
        reader.errors.add(reader.location(node), f"expected 'samples' as a list, got {kind(node)}")
        return ()
    found = []
    for item in node.value:
        if kind(item) != "a map":
            place = reader.location(item)
            reader.errors.add(place, f"expected a sample as a map, got {kind(item)}")
            continue
        pairs = reader.located_mapping(item, None, "a sample")
        arguments = tuple(
            (Line(name, reader.location(key_node)), _value(reader, value))
            for name, (key_node, value) in pairs.items()
        )
        found.append(Sample(reader.location(item), arguments))
    if not node.value:
        reader.errors.add(reader.location(node), "'samples' is an empty list")
    return tuple(found)


def _value(reader: YamlReader, node: Node, depth: int = 1) -> Value:
    """A node with its place; what it means depends on the argument's type."""
    place = reader.location(node)
    if depth > DEEPEST:  # an alias of what it stands in
        reader.errors.add(place, TOO_DEEP)
        return Value(place, items=())
    if kind(node) == "a list":
        reader.count(node)
        return Value(place, items=tuple(_value(reader, item, depth + 1) for item in node.value))
    if kind(node) == "a map":
        pairs = reader.located_mapping(node, None, "a value")
        entries = ((k, _value(reader, v, depth + 1)) for k, (_, v) in pairs.items())
        return Value(place, entries=tuple(entries))
    return Value(place, text=reader.text(node, "a value"), is_quoted=bool(node.style))


def read_schema(reader: YamlReader, node: Node) -> Schema | None:
    """A schema; None (and noted) where it cannot be read."""
    text = reader.text(node, "the schema")
    if text is None:
        return None
    try:
        return parse_schema(text)
    except SchemaError as error:
        reader.errors.add(reader.location(node, error.offset), error.message, error.hint)
        return None


def read_expressions(reader: YamlReader, node: Node) -> tuple[Expression, ...]:
    """An expression, or a list of them."""
    items = node.value if kind(node) == "a list" else [node]
    if kind(node) == "a list" and not items:
        reader.errors.add(reader.location(node), "an empty list, where expressions are needed")
    found = (_expression(reader, item, "an expression") for item in items)
    return tuple(expression for expression in found if expression is not None)


def read_let(reader: YamlReader, node: Node) -> tuple[tuple[Line, Expression], ...]:
    """Names, each with an expression."""
    found = []
    for name, (key_node, value) in reader.located_mapping(node, None, "'let'").items():
        expression = _expression(reader, value, f"the expression of '{name}'")
        if expression is not None:
            found.append((Line(name, reader.location(key_node)), expression))
    return tuple(found)


def _expression(reader: YamlReader, node: Node, what: str) -> Expression | None:
    text = reader.text(node, what, BRACKETS)
    if text is None:
        return None
    return Expression(text, *_place(reader, node))


def _place(reader: YamlReader, node: Node) -> tuple[Location, Callable[[int], Location]]:
    """Where a text starts, and where each character of it stands."""
    return reader.location(node), lambda at: reader.location(node, at)


READERS = {
    "meta": read_meta, "dtypes": read_dtypes, "samples": read_samples,
    "pointwise": read_expressions, "rows": read_expressions, "let": read_let,
}  # fmt: skip
