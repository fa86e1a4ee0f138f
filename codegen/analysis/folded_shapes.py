# SPDX-License-Identifier: BSD-3-Clause
"""What a rule asks of the shapes of arguments, where `vmap: leading` folds the batch dimension into
their leading one.

A rule is written of the arguments of one example: `[rows, ...]`, or `[...]`, a row alone. For a
batch it sees `[batch * rows, ...]`, or `[batch, ...]`. What it says of the dimensions behind the
leading one is the same; where they are counted from the front, or from the back so far that the
leading one may be reached, tensors need so many dimensions for that. A tensor that has the leading
one alone, beside others, has nothing behind it. All else is examined: only the arguments of an
example can tell.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..errors import Errors
from ..spec.model import Line, MetaRule
from .rule_vocabulary import parse

_OF_TENSORS = ("cat", "has_dim")  # functions that look at the shapes of tensors
_OF_DIMENSION = ("reduce", "replace")  # of a shape and a place in it


class FoldedShapes:
    """The arguments with rows whose shapes a rule looks at."""

    def __init__(self, rule: MetaRule | None, rows: Iterable[str]) -> None:
        self._rows = {name: name for name in rows}  # and what a loop calls their elements
        self.least_ranks: dict[str, int] = {}  # dimensions from which on the answers are the same
        self.examined: set[str] = set()
        if rule is not None:
            self._read(rule)

    def _read(self, rule: MetaRule) -> None:
        for check in rule.checks:
            self._line(check, self._condition)
        for result in rule.results:
            if result.loop:
                values = self._line(result.loop.values, self._condition)
                if isinstance(values, ast.Name) and values.id in self._rows:
                    self._rows[result.loop.name] = values.id
            for line in (result.when, result.dtype):
                self._line(line, self._condition)
            for line in (result.like, result.size, result.strides):
                self._line(line, self._size)

    def _line(self, line: Line | None, read) -> ast.expr | None:
        node = parse(line, Errors()) if line else None
        if node is not None:
            read(node)
        return node

    def _size(self, node: ast.expr) -> None:
        """The sizes of a result, or the tensor that it is like."""
        if isinstance(node, ast.IfExp):
            self._condition(node.test)
            self._size(node.body)
            self._size(node.orelse)
        elif self._leads(node):
            self._behind(node)
        else:
            self._condition(node)

    def _condition(self, node: ast.AST) -> None:
        """All that an expression looks at."""
        if isinstance(node, ast.Compare) and self._comparison(node):
            return
        if isinstance(node, ast.Subscript) and (name := self._shape(node.value)):
            self._place(name, node.slice)
            return
        if isinstance(node, ast.Attribute) and (name := self._tensor(node.value)):
            if node.attr == "dim":
                self._needs(name, 2)
            elif node.attr != "dtype":
                self.examined.add(name)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _OF_TENSORS:
            names = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
            self.examined.update(self._rows[name] for name in names if name in self._rows)
        for part in ast.iter_child_nodes(node):
            self._condition(part)

    def _comparison(self, node: ast.Compare) -> bool:
        """Whether it is one that a batch answers as an example does, but for what is noted."""
        sides = (node.left, *node.comparators)
        if all(isinstance(op, ast.Eq) for op in node.ops):
            if all(map(self._leads, sides)):
                for side in sides:
                    self._behind(side)
                return True
            counts = [self._row_count(side) for side in sides]
            if all(counts):
                for name in counts:
                    self._needs(name, 2)
                return True
        if not isinstance(node.left, ast.Attribute) or node.left.attr != "dim":
            return False
        least = _integer(sides[1])  # what every tensor with rows has
        op = node.ops[0]
        is_so = least is not None and (
            (isinstance(op, ast.GtE) and least <= 1) or (isinstance(op, ast.Gt) and least <= 0)
        )
        return len(sides) == 2 and is_so and self._tensor(node.left.value) is not None

    def _leads(self, node: ast.expr) -> bool:
        """Whether a shape begins with the leading dimension of an argument that has rows."""
        if isinstance(node, ast.IfExp):
            return self._leads(node.body) and self._leads(node.orelse)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._leads(node.left)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _OF_DIMENSION:
            is_last = len(node.args) > 1 and _integer(node.args[1]) == -1
            return is_last and self._leads(node.args[0])
        if isinstance(node, (ast.List, ast.Tuple)):
            return bool(node.elts) and self._counted(node.elts[0]) is not None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            ends = _integer(node.slice.upper)
            is_front = node.slice.lower is node.slice.step is None and ends is not None and ends < 0
            return is_front and self._shape(node.value) is not None
        return (self._shape(node) or self._tensor(node)) is not None

    def _behind(self, node: ast.expr) -> None:
        """What a shape that leads has behind its leading dimension."""
        if isinstance(node, ast.IfExp):
            self._condition(node.test)
            self._behind(node.body)
            self._behind(node.orelse)
        elif isinstance(node, ast.BinOp):
            self._behind(node.left)
            self._condition(node.right)
        elif isinstance(node, ast.Call):
            self._behind(node.args[0])
            for argument in node.args[2:]:
                self._condition(argument)
        elif isinstance(node, (ast.List, ast.Tuple)):
            name, factors = self._counted(node.elts[0])
            self._needs(name, 2)
            for part in (*factors, *node.elts[1:]):
                self._condition(part)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            self._needs(self._shape(node.value), -_integer(node.slice.upper))

    def _counted(self, node: ast.expr) -> tuple[str, list[ast.expr]] | None:
        """The argument whose rows a size counts, and how often it does."""
        if name := self._row_count(node):
            return name, []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                if found := self._counted(side):
                    return found[0], [*found[1], other]
        return None

    def _row_count(self, node: ast.expr) -> str | None:
        """The argument of `x.shape[0]`."""
        is_first = isinstance(node, ast.Subscript) and _integer(node.slice) == 0
        return self._shape(node.value) if is_first else None

    def _place(self, name: str, place: ast.expr) -> None:
        """A size of an argument, or a part of its shape."""
        if not isinstance(place, ast.Slice):
            self._begins(name, _integer(place))
            self._condition(place)
        elif place.lower is None or place.step is not None:
            self.examined.add(name)
        else:
            self._begins(name, _integer(place.lower))

    def _begins(self, name: str, first: int | None) -> None:
        if first is None or first == 0:
            self.examined.add(name)
        else:
            self._needs(name, 2 if first > 0 else 1 if first == -1 else 1 - first)

    def _needs(self, name: str, rank: int) -> None:
        self.least_ranks[name] = max(rank, self.least_ranks.get(name, 0))

    def _shape(self, node: ast.expr) -> str | None:
        is_shape = isinstance(node, ast.Attribute) and node.attr == "shape"
        return self._tensor(node.value) if is_shape else None

    def _tensor(self, node: ast.expr) -> str | None:
        """The argument with rows that an expression is, or has in its list."""
        node = node.value if isinstance(node, ast.Subscript) else node
        return self._rows.get(node.id) if isinstance(node, ast.Name) else None


def _integer(node: ast.expr | None) -> int | None:
    """The value of an integer that is written out."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _integer(node.operand)
        return None if value is None else -value
    is_one = isinstance(node, ast.Constant) and type(node.value) is int
    return node.value if is_one else None
