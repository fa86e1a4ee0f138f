# SPDX-License-Identifier: BSD-3-Clause
"""YAML text to nodes with positions.

Reads a spec file into a tree of nodes and hands out checked pieces of it. What is wrong is noted
in Errors with the place where it stands, and reading goes on with the next piece.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import yaml

from ..errors import Errors, Location, Source, did_you_mean
from .yaml_nodes import Node, kind

_FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FLAGS = {"true": True, "false": False}
# How much aliases (`*name`) may repeat: values of lists and maps, and characters of texts.
_MOST_REPEATED = 1_000_000
# Where another plain word would be C++, all of YAML's spellings are flags.
_SPELLINGS = {**_FLAGS, "yes": True, "no": False, "on": True, "off": False}
DEEPEST = 50  # lists and maps may be nested, also by aliases
TOO_DEEP = "lists and maps are nested too deeply"
_SURROGATE = re.compile("[\ud800-\udfff]")
_KEY_AND_VALUE = re.compile(r"""\s*(?:- +)*[\w., ]+: +(?!#|(["'])[^"']*\1\s*$)\S""")
QUOTES = "a text that holds ': ' or ' #', or begins with one of {[*&!%@|>'\", stands in quotes"
BRACKETS = 'expressions with brackets stand in quotes, as "[x.shape[0], n]"'


class _NoCharacter(yaml.MarkedYAMLError):
    """A number that PyYAML's own loader takes for a character, or fails on; libyaml refuses it."""


def _refuse(problem: str, mark: yaml.Mark) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _events(text: str, loader_type: type) -> Iterator[yaml.Event]:
    """The events of a document, of which no text holds half a character."""
    loader = loader_type(text)
    try:
        while loader.check_event():
            event = loader.get_event()
            if isinstance(event, yaml.ScalarEvent) and _SURROGATE.search(event.value):
                problem = "found invalid Unicode character escape code"
                raise _NoCharacter(problem=problem, problem_mark=event.start_mark)
            yield event
    except (ValueError, OverflowError) as error:  # of chr() and int()
        problem = "found a number that is too large"
        raise _NoCharacter(problem=problem, problem_mark=loader.get_mark()) from error
    finally:
        loader.dispose()


def _node(event: yaml.NodeEvent) -> Node:
    """The node that begins with an event, empty where it is a list or a map."""
    start, end = event.start_mark, event.end_mark
    if isinstance(event, yaml.ScalarEvent):
        return yaml.ScalarNode(event.tag, event.value, start, end, style=event.style)
    is_list = isinstance(event, yaml.SequenceStartEvent)
    type_ = yaml.SequenceNode if is_list else yaml.MappingNode
    return type_(event.tag, [], start, end, flow_style=event.flow_style)


class YamlReader:
    """The entries of one spec file."""

    def __init__(self, path: Path, name: str, errors: Errors) -> None:
        self.errors = errors
        self.source, self._content = self._read(path, name)
        self._lines = self.source.lines
        # What stands in the file is read a few times at most; only aliases make more of it.
        self._left = _MOST_REPEATED + 4 * len(self.source.text)

    def _read(self, path: Path, name: str) -> tuple[Source, str | None]:
        nothing = Source(name, "")
        try:
            mode = path.stat().st_mode
            is_given = stat.S_ISFIFO(mode) and str(path).startswith(("/dev/fd/", "/dev/stdin"))
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or is_given):  # it may never end
                raise OSError("not a regular file")
            content = path.read_bytes()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            self.errors.add(Location(nothing, 1, 1), f"cannot read the file: {reason}")
            return nothing, None
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            before = content[: error.start].decode("utf-8-sig")
            source = Source(name, content.decode("utf-8-sig", errors="replace"))
            byte = content[error.start]
            self.errors.add(source.place(len(before)), f"byte 0x{byte:02x} is not UTF-8")
            return source, None
        text = text.replace("\r\n", "\n")
        return Source(name, text), text

    def entries(self) -> list[Node] | None:
        """The entries of the file's list; None (and noted) where the file is no list."""
        root = None if self._content is None else self._compose(self._content)
        if isinstance(root, yaml.SequenceNode):
            return list(root.value)
        if root is not None:
            self.errors.add(self.location(root), f"expected a list of entries, got {kind(root)}")
        return None

    def _compose(self, text: str) -> Node | None:
        start = Location(self.source, 1, 1)
        try:
            root = self._nodes(text, _FAST_LOADER)
        except yaml.YAMLError as found:
            error = self._shown(text, found)
            if isinstance(error, yaml.MarkedYAMLError):
                mark, why = error.problem_mark or error.context_mark, error.problem or error.context
                place = Location(self.source, mark.line + 1, mark.column + 1) if mark else start
                hint = QUOTES if _KEY_AND_VALUE.match(place.text) else None
                hint = BRACKETS if why.endswith("but got '['") else hint
                self.errors.add(place, f"not YAML: {why}", hint)
            else:  # of its reader: a character that YAML forbids
                place = self.source.place(getattr(error, "position", 0))
                self.errors.add(place, f"not YAML: {str(error).splitlines()[0]}")
            return None
        if root is None:
            self.errors.add(start, "the file is empty; expected a list of entries")
        return root

    def _shown(self, text: str, error: yaml.YAMLError) -> yaml.YAMLError:
        """The error of the Python loader; this one where that loader would read on."""
        try:
            self._nodes(text, yaml.SafeLoader)
        except yaml.YAMLError as shown:
            return error if isinstance(shown, _NoCharacter) else shown
        return error

    def _nodes(self, text: str, loader: type) -> Node | None:
        """The tree of a document. yaml.compose would do, but recursion ends the process where
        lists are nested deeply."""
        root: Node | None = None
        anchors: dict[str, Node] = {}
        parents: list[Node] = []
        keys: list[Node | None] = []  # of each parent that is a map, the key that waits for a value
        for event in _events(text, loader):
            if isinstance(event, yaml.CollectionEndEvent):
                parents.pop().end_mark = event.end_mark
                keys.pop()
                continue
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                _refuse("but found another document", event.start_mark)
            if not isinstance(event, yaml.NodeEvent):
                continue
            if isinstance(event, yaml.AliasEvent):
                if event.anchor not in anchors:
                    _refuse(f"found undefined alias '{event.anchor}'", event.start_mark)
                node = anchors[event.anchor]
            else:
                if event.tag and not event.tag.startswith("tag:yaml.org,"):
                    _refuse(f"found the tag '{event.tag}'", event.start_mark)
                node = _node(event)
                if event.anchor in anchors:
                    _refuse(f"found duplicate anchor '{event.anchor}'", event.start_mark)
                if event.anchor is not None:
                    anchors[event.anchor] = node
            if not parents:
                root = node
            elif isinstance(parents[-1], yaml.SequenceNode):
                parents[-1].value.append(node)
            elif keys[-1] is None:
                keys[-1] = node
            else:
                parents[-1].value.append((keys[-1], node))
                keys[-1] = None
            if isinstance(event, yaml.CollectionStartEvent):
                parents.append(node)
                keys.append(None)
                if len(parents) > DEEPEST:
                    _refuse(TOO_DEEP, event.start_mark)
        return root

    def location(self, node: Node, offset: int | None = None) -> Location:
        """Where a node starts, or where the character with this offset of a scalar stands."""
        line, column = node.start_mark.line, node.start_mark.column
        if offset is None:
            pass
        elif not node.style and node.end_mark.line == line:
            column += offset
        else:
            line, column = self._inside(node, offset)
        return Location(self.source, line + 1, column + 1)

    def _inside(self, node: yaml.ScalarNode, offset: int) -> tuple[int, int]:
        """Line and column of a character of a scalar, whose text may be quoted or folded."""
        lines = self._lines
        line, column = node.start_mark.line, node.start_mark.column
        start = line, column
        if node.style in ("|", ">"):
            line, column = line + 1, 0
        elif node.style:
            column += 1

        def skip_blanks(line: int, column: int) -> tuple[int, int]:
            while line < len(lines) and lines[line][column:].strip() == "":
                line, column = line + 1, 0
            while line < len(lines) and lines[line][column] in " \t":
                column += 1
            return line, column

        for char in node.value[:offset]:
            if char.isspace():
                line, column = skip_blanks(line, column)
                continue
            line, column = skip_blanks(line, column)
            if line >= len(lines) or lines[line][column] != char:
                return start  # an escape in a quoted scalar: the place is not worth the code
            column += 1
        at_char = offset < len(node.value) and not node.value[offset].isspace()
        return skip_blanks(line, column) if at_char else (line, column)

    def count(self, node: Node) -> None:
        """Note that a node is read; stop where aliases never end."""
        self._left -= len(node.value)
        if self._left < 0:
            self.errors.stop(self.location(node), "aliases repeat too much of the file")

    def mapping(self, node: Node, allowed: Iterable[str] | None, what: str) -> dict[str, Node]:
        """A map of text to nodes; unknown and repeated keys are noted and left out."""
        found: dict[str, Node] = {}
        for name, (_, value) in self.located_mapping(node, allowed, what).items():
            found[name] = value
        return found

    def located_mapping(
        self, node: Node, allowed: Iterable[str] | None, what: str
    ) -> dict[str, tuple[Node, Node]]:
        """Like mapping, with the node of each key as well."""
        if not isinstance(node, yaml.MappingNode):
            self.errors.add(self.location(node), f"expected {what} as a map, got {kind(node)}")
            return {}
        self.count(node)
        known = None if allowed is None else list(allowed)
        found: dict[str, tuple[Node, Node]] = {}
        for key_node, value in node.value:
            place = self.location(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                self.errors.add(place, f"a key of {what} must be text, got {kind(key_node)}")
            elif known is not None and key_node.value not in known:
                hint = did_you_mean(key_node.value, known)
                listing = f"the keys are {', '.join(known)}"
                hint = f"{hint} ({listing})" if hint else listing
                self.errors.add(place, f"unknown key '{key_node.value}' in {what}", hint)
            elif key_node.value in found:
                first = self.location(found[key_node.value][0]).line
                self.errors.add(
                    place,
                    f"key '{key_node.value}' stands twice in {what}",
                    f"first on line {first}",
                )
            else:
                found[key_node.value] = (key_node, value)
        return found

    def text(self, node: Node, what: str, hint: str | None = None) -> str | None:
        """A scalar as text; the hint is for what is none."""
        if isinstance(node, yaml.ScalarNode):
            self.count(node)
            return node.value
        self.errors.add(self.location(node), f"expected {what} as text, got {kind(node)}", hint)
        return None

    def flag(self, node: Node, what: str) -> bool | None:
        """True or False."""
        if isinstance(node, yaml.ScalarNode) and not node.style:
            if (value := _FLAGS.get(node.value.lower())) is not None:
                return value
        shown = f"'{node.value}'" if isinstance(node, yaml.ScalarNode) else kind(node)
        self.errors.add(self.location(node), f"expected {what} as True or False, got {shown}")
        return None

    def texts(self, node: Node, what: str) -> list[tuple[str, Location]]:
        """A list of scalars, or one text with commas between the items."""
        if isinstance(node, yaml.SequenceNode):
            self.count(node)
            items = [(self.text(item, f"an item of {what}"), item) for item in node.value]
            return [(text, self.location(item)) for text, item in items if text is not None]
        text = self.text(node, what)
        return self.split(node, text) if text else []

    def flags_and_texts(self, node: Node, what: str) -> list[tuple[str, Location]]:
        """A list of flags, as `True` or `False` however YAML spells them, and of quoted texts."""
        if not isinstance(node, yaml.SequenceNode):
            return self.texts(node, what)
        self.count(node)
        found = []
        for item in node.value:
            text = self.text(item, f"an item of {what}")
            if text is not None:
                text = text if item.style else str(_SPELLINGS.get(text.lower(), text))
                found.append((text, self.location(item)))
        return found

    def split(self, node: Node, text: str) -> list[tuple[str, Location]]:
        """The items of a text with commas, each with its place."""
        found, offset = [], 0
        for part in text.split(","):
            lead = len(part) - len(part.lstrip())
            if part.strip():
                found.append((part.strip(), self.location(node, offset + lead)))
            offset += len(part) + 1
        return found
