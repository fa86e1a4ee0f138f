# SPDX-License-Identifier: BSD-3-Clause
"""What a rule asks of the shapes of arguments, where `vmap: pointwise` gives them one more
dimension.

A rule is written of the arguments of one example. It means the same of a batch at once where it
compares whole shapes with one another, or passes them on; of all else that it looks at, only the
arguments themselves can tell.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..errors import Errors
from ..spec.model import MetaRule
from .rule_vocabulary import ATTRIBUTES, parse

_OF_SHAPES = tuple(name for name in ATTRIBUTES if name != "dtype")
_OF_TENSORS = ("cat", "has_dim")  # functions that look at the shapes of tensors
_BROADCASTING = "broadcast"


class BatchedShapes:
    """The arguments whose shapes a rule looks at, by what a batch may do to them."""

    def __init__(self, rule: MetaRule | None, tensors: Iterable[str]) -> None:
        self._tensors = frozenset(tensors)  # arguments that are or hold tensors
        self._whole: set[str] = set()
        self._examined: set[str] = set()
        if rule is not None:
            self._read(rule)

    @property
    def one_shape(self) -> list[str]:
        """Those of which the rule says that they have one shape, or that of a result."""
        return sorted(self._whole & self._tensors)

    @property
    def examined(self) -> list[str]:
        """Those of which it asks something that is not so of a batch of them."""
        return sorted(self._examined & self._tensors)

    def _read(self, rule: MetaRule) -> None:
        for check in rule.checks:
            if (node := parse(check, Errors())) is not None:
                self._condition(node)
        for result in rule.results:
            for line in filter(None, (result.like, result.size, result.strides)):
                if (node := parse(line, Errors())) is not None:
                    self._size(node)
            for line in filter(None, (result.when, result.dtype)):
                if (node := parse(line, Errors())) is not None:
                    self._condition(node)
            if result.loop and (node := parse(result.loop.values, Errors())) is not None:
                self._condition(node)
                for found in (self._whole, self._examined):
                    if result.loop.name in found:  # an element of these
                        found.remove(result.loop.name)
                        found.update(_names(node))

    def _size(self, node: ast.expr) -> None:
        """The sizes of a result, or the tensor that it is like."""
        if isinstance(node, ast.IfExp):
            self._condition(node.test)
            self._size(node.body)
            self._size(node.orelse)
        elif _is_tensor(node) or (isinstance(node, ast.Attribute) and _is_tensor(node.value)):
            self._tensor(node.value if isinstance(node, ast.Attribute) else node)
        elif not (isinstance(node, ast.Call) and ast.unparse(node.func) == _BROADCASTING):
            self._condition(node)
        elif not all(_attribute(part) == "shape" for part in node.args):
            self._condition(node)

    def _condition(self, node: ast.AST) -> None:
        """All that a condition looks at."""
        if isinstance(node, ast.Compare) and all(isinstance(op, ast.Eq) for op in node.ops):
            sides = (node.left, *node.comparators)
            attributes = {_attribute(side) for side in sides}
            if len(attributes) == 1 and not attributes & {None, "dtype"}:
                for side in sides:
                    self._side(side)
                return
        if isinstance(node, ast.Attribute) and node.attr in _OF_SHAPES:
            self._examined |= set(_names(node))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _OF_TENSORS:
            self._examined |= set(_names(node))
        for part in ast.iter_child_nodes(node):
            self._condition(part)

    def _side(self, node: ast.expr) -> None:
        """What is compared with the same of other tensors."""
        if isinstance(node, ast.IfExp):
            self._condition(node.test)
            self._side(node.body)
            self._side(node.orelse)
        elif isinstance(node, ast.Attribute) and _is_tensor(node.value):
            self._tensor(node.value)
        else:
            self._condition(node)

    def _tensor(self, node: ast.expr) -> None:
        """An argument, or an element of a list, whose place is asked for."""
        if isinstance(node, ast.Subscript):
            self._condition(node.slice)
            node = node.value
        self._whole |= set(_names(node))


def _attribute(node: ast.expr) -> str | None:
    """What an expression takes of a tensor; None where it is something else."""
    if isinstance(node, ast.IfExp):
        body = _attribute(node.body)
        return body if body == _attribute(node.orelse) else None
    return node.attr if isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES else None


def _is_tensor(node: ast.expr) -> bool:
    """Whether an expression is an argument, or an element of a list."""
    return isinstance(node.value if isinstance(node, ast.Subscript) else node, ast.Name)


def _names(node: ast.expr) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
