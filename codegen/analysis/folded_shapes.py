# SPDX-License-Identifier: BSD-3-Clause
"""What a rule asks of the shapes of arguments, where `vmap: leading` folds the batch dimension into
their leading one.

A rule is written of the arguments of one example: `[rows, ...]`, or `[...]`, a row alone. For a
batch it sees `[batch * rows, ...]`, or `[batch, ...]`. A few ways of asking are known to have the
same answer, some of tensors that have so many dimensions; of whatever else looks at a shape only
the arguments of an example can tell.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from ..errors import Errors
from ..spec.model import Line, MetaRule
from .rule_vocabulary import ATTRIBUTES, parse

_OF_SHAPES = tuple(name for name in ATTRIBUTES if name != "dtype")
_OF_TENSORS = ("cat", "has_dim")  # functions that look at the shapes of tensors
_AT_PLACE = ("reduce", "replace")  # functions of a shape and a place in it


class FoldedShapes:
    """The arguments with rows whose shapes a rule looks at."""

    def __init__(self, rule: MetaRule | None, rows: Iterable[str]) -> None:
        self._rows = {name: name for name in rows}  # and what a loop calls their elements
        self.examined: set[str] = set()  # of which an example is asked
        # dimensions from which on the answers are the same; beside tensors of more dimensions, one
        # that has the leading one alone is asked of an example in any case
        self.least_ranks: dict[str, int] = {}
        if rule is not None:
            self._read(rule)

    def _read(self, rule: MetaRule) -> None:
        for check in rule.checks:
            self._line(check, self._any)
        for result in rule.results:
            if result.loop:
                values = self._line(result.loop.values, self._any)
                if isinstance(values, ast.Name) and values.id in self._rows:
                    self._rows[result.loop.name] = values.id
                elif values is not None:
                    self._examine(values)
            for line in (result.when, result.dtype, result.strides):
                self._line(line, self._any)
            for line in (result.like, result.size):
                self._line(line, self._result)

    @staticmethod
    def _line(line: Line | None, read: Callable[[ast.expr], object]) -> ast.expr | None:
        node = parse(line, Errors()) if line else None
        if node is not None:
            read(node)
        return node

    def _result(self, node: ast.expr) -> None:
        """The sizes of a result, or the tensor that it is like, which has the rows of a batch."""
        if isinstance(node, ast.IfExp):
            self._any(node.test)
            self._result(node.body)
            self._result(node.orelse)
        elif self._tensor(node) is None and not self._led(node):
            self.examined.update(self._rows.values())

    def _any(self, node: ast.AST) -> None:
        """All that an expression looks at."""
        if isinstance(node, ast.Compare) and self._compared(node):
            return
        if isinstance(node, ast.Subscript) and (name := self._shape(node.value)):
            self._behind(name, node.slice)
        elif isinstance(node, ast.Attribute) and node.attr in _OF_SHAPES:
            if node.attr == "dim" and (name := self._tensor(node.value)):
                self._needs(name, 2)
            else:
                self._examine(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in _OF_TENSORS:
            self._examine(node)
        else:
            for part in ast.iter_child_nodes(node):
                self._any(part)

    def _compared(self, node: ast.Compare) -> bool:
        """Whether it compares shapes that all lead, numbers of rows, or a rank with one."""
        if len(node.ops) != 1:
            return False
        (operator,), left, (right,) = node.ops, node.left, node.comparators
        if isinstance(operator, ast.Eq):
            names = self._count(left), self._count(right)
            if all(names):
                for name in names:
                    self._needs(name, 2)
                return True
            if self._leads(left) and self._leads(right):
                return self._led(left) and self._led(right)
        is_rank = isinstance(left, ast.Attribute) and left.attr == "dim"
        if not is_rank or self._tensor(left.value) is None:
            return False
        return (type(operator), _integer(right)) in ((ast.GtE, 1), (ast.Gt, 0))

    def _leads(self, node: ast.expr) -> bool:
        """Whether a shape begins with the leading dimension of an argument that has rows."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._leads(node.left)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _AT_PLACE:
            is_last = len(node.args) > 1 and _integer(node.args[1]) == -1
            return is_last and self._shape(node.args[0]) is not None
        if isinstance(node, (ast.List, ast.Tuple)):
            return bool(node.elts) and self._counted(node.elts[0]) is not None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            part = node.slice
            is_front = part.lower is part.step is None and _integer(part.upper) == -1
            return is_front and self._shape(node.value) is not None
        return self._shape(node) is not None

    def _led(self, node: ast.expr) -> bool:
        """The same, where what it asks beside the leading dimension is noted."""
        if not self._leads(node):
            return False
        if isinstance(node, ast.BinOp):
            self._any(node.right)
            return self._led(node.left)
        if isinstance(node, ast.Call):
            self._needs(self._shape(node.args[0]), 2)
            for argument in node.args[2:]:
                self._any(argument)
        elif isinstance(node, (ast.List, ast.Tuple)):
            name, factors = self._counted(node.elts[0])
            self._needs(name, 2)
            for part in (*factors, *node.elts[1:]):
                self._any(part)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            self._needs(self._shape(node.value), 1)
        return True

    def _counted(self, node: ast.expr) -> tuple[str, list[ast.expr]] | None:
        """The argument whose rows a size counts, and how often it does."""
        if name := self._count(node):
            return name, []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                if found := self._counted(side):
                    return found[0], [*found[1], other]
        return None

    def _count(self, node: ast.expr) -> str | None:
        """The argument of `x.shape[0]`."""
        is_first = isinstance(node, ast.Subscript) and _integer(node.slice) == 0
        return self._shape(node.value) if is_first else None

    def _behind(self, name: str, place: ast.expr) -> None:
        """A size of an argument, or a part of its shape up to the end."""
        first = place
        if isinstance(place, ast.Slice):
            first = place.lower if place.upper is place.step is None else None
        index = _integer(first)
        if index is None or index == 0:
            self.examined.add(name)
            self._any(place)
        else:
            self._needs(name, 2 if index > 0 else 1 if index == -1 else 1 - index)

    def _needs(self, name: str, rank: int) -> None:
        self.least_ranks[name] = max(rank, self.least_ranks.get(name, 0))

    def _examine(self, node: ast.AST) -> None:
        names = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
        self.examined.update(self._rows[name] for name in names if name in self._rows)

    def _shape(self, node: ast.expr) -> str | None:
        is_shape = isinstance(node, ast.Attribute) and node.attr == "shape"
        return self._tensor(node.value) if is_shape else None

    def _tensor(self, node: ast.expr) -> str | None:
        """The argument with rows that an expression is, or has at a place that is written out."""
        if isinstance(node, ast.Subscript):
            return self._tensor(node.value) if _integer(node.slice) is not None else None
        return self._rows.get(node.id) if isinstance(node, ast.Name) else None


def _integer(node: ast.AST | None) -> int | None:
    """The value of an integer that is written out."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _integer(node.operand)
        return None if value is None else -value
    is_one = isinstance(node, ast.Constant) and type(node.value) is int
    return node.value if is_one else None
