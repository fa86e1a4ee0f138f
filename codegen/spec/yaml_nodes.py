# SPDX-License-Identifier: BSD-3-Clause
"""The nodes of a YAML file, and nodes that stand in none, for what stands at a place of it."""

from __future__ import annotations

try:
    import yaml
except ModuleNotFoundError:
    message = "the code generator reads its files with pyyaml: python -m pip install pyyaml"
    raise ModuleNotFoundError(message, name="yaml") from None

from ..errors import Location

Node = yaml.Node


def kind(node: Node) -> str:
    """What a node is, in the words of a message."""
    if isinstance(node, yaml.ScalarNode):
        return f"'{node.value}'" if node.value else "nothing"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a map"


def made_text(text: str, place: Location | Node) -> Node:
    """A text that stands in no file, for what stands at this place."""
    mark = place.start_mark if isinstance(place, yaml.Node) else _mark(place)
    return yaml.ScalarNode("", text, mark, mark)


def made_list(items: list[Node], place: Node) -> Node:
    """A list that stands in no file."""
    return yaml.SequenceNode("", items, place.start_mark, place.start_mark, flow_style=True)


def made_map(pairs: list[tuple[Node, Node]], place: Node) -> Node:
    """A map that stands in no file, of keys and values that may."""
    return yaml.MappingNode("", pairs, place.start_mark, place.start_mark)


def _mark(place: Location) -> yaml.Mark:
    return yaml.Mark(place.source.name, 0, place.line - 1, place.column - 1, None, None)
