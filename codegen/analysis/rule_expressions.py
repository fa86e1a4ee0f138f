# SPDX-License-Identifier: BSD-3-Clause
"""The expressions of `meta:`: Python's syntax, a few types, and what computes them.

Everything is computed with SymInt, so that one rule serves eager calls and traced ones.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import replace

from ..cpp import names as cpp_names
from ..errors import did_you_mean
from ..plan import expressions as tree
from ..plan.expressions import Needs
from ..schema.schema import Argument
from ..spec.dtypes import SCALAR_TYPES
from .rule_vocabulary import (
    ATTRIBUTES,
    COMPARISONS,
    DYNAMIC,
    FUNCTIONS,
    KINDS,
    LISTS,
    OPERATORS,
    Mistake,
    Value,
    article,
)  # fmt: skip

# What makes a value of its own of one of a kind.
_OWN = {"shape": "sizes", "int": "integer", "size": "integer"}


class Translator:
    """Reads the expressions of one operator."""

    def __init__(self, arguments: tuple[Argument, ...]) -> None:
        self.arguments = {a.name: a for a in arguments}
        self.dynamic: tree.DynamicSize | None = None  # what `dynamic` is, in the sizes of a result
        self.local: dict[str, Value] = {}  # the value that a loop is at, by its name

    def established(self, condition: ast.expr) -> frozenset[str]:
        """The optional values that are there where a condition holds."""
        return self._established(condition)[0]

    def value(self, node: ast.expr, *kinds: str) -> Value:
        """An expression of one of these kinds; raises Mistake."""
        method: Callable[[ast.expr], Value] | None = getattr(self, type(node).__name__, None)
        if method is None:
            raise Mistake(node, f"'{ast.unparse(node)}' means nothing in a rule")
        found = method(node)
        if kinds and found.kind not in kinds:
            wanted = "a list" if kinds == LISTS else " or ".join(map(article, kinds))
            raise Mistake(node, f"expected {wanted}, got {article(found.kind)}")
        return found

    def Name(self, node: ast.Name) -> Value:
        name = node.id
        if name in self.local:
            return self.local[name]
        if name in self.arguments:
            type_ = self.arguments[name].type
            kind = KINDS.get(type_.bare().plain)
            if kind is None:
                raise Mistake(node, f"a rule cannot use '{name}', which is a '{type_}'")
            found: tree.Expression = tree.Named(cpp_names.parameter_name(name))
            if type_.bare().plain == "Scalar":
                found = tree.Call("real", (found,), name)
            return Value(kind, tree.Call("sizes", (found,)) if kind == "shape" else found)
        if self.dynamic and self._is_dynamic(node):
            return Value("size", self.dynamic)
        if name in SCALAR_TYPES:
            return Value("dtype", tree.Dtype(SCALAR_TYPES[name]))
        words = [DYNAMIC] if self.dynamic else []
        hint = did_you_mean(name, [*self.arguments, *self.local, *SCALAR_TYPES, *words])
        hint = hint or did_you_mean(name, self.arguments, "the arguments are")
        raise Mistake(node, f"unknown argument '{name}'", hint)

    def _is_dynamic(self, node: ast.expr) -> bool:
        is_word = isinstance(node, ast.Name) and node.id == DYNAMIC
        return is_word and self.dynamic is not None and DYNAMIC not in self.arguments

    def Constant(self, node: ast.Constant) -> Value:
        value = node.value
        if isinstance(value, bool):
            return Value("bool", tree.Constant(value))
        if isinstance(value, int):
            if value >= 1 << 63:
                raise Mistake(node, "a number that no integer of C++ can hold")
            return Value("int", tree.Constant(value))
        if isinstance(value, float) and math.isfinite(value):
            return Value("float", tree.Constant(value))
        if isinstance(value, str):
            return Value("str", tree.Constant(value))
        raise Mistake(node, f"'{ast.unparse(node)}' means nothing in a rule")

    def UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.USub):
            value = self.value(node.operand, "int", "float")
            found = tree.Negative(value.expression, of_numbers=value.kind == "float")
            return replace(value, expression=found)
        if isinstance(node.op, ast.Not):
            return self._negated(self.value(node.operand, "bool"))
        raise Mistake(node, f"'{ast.unparse(node)}' means nothing in a rule")

    @staticmethod
    def _negated(condition: Value) -> Value:
        return replace(condition, expression=tree.Call("negated", (condition.expression,)))

    def BinOp(self, node: ast.BinOp) -> Value:
        left = self.value(node.left, "int", "shape")
        right = self.value(node.right, left.kind)
        uses = left.uses | right.uses
        if left.kind == "shape":
            if not isinstance(node.op, ast.Add):
                raise Mistake(node, "shapes can be joined by + only")
            return Value("shape", tree.Call("concat", (left.expression, right.expression)), uses)
        function = OPERATORS.get(type(node.op))
        if function is None:
            raise Mistake(node, f"'{ast.unparse(node)}' is none of + - * // %")
        first = left.expression
        if isinstance(node.left, (ast.Constant, ast.UnaryOp)):
            first = tree.Call("integer", (first,))
        return Value("int", tree.Call(function, (first, right.expression), ast.unparse(node)), uses)

    def Tuple(self, node: ast.Tuple | ast.List) -> Value:
        kinds = ("int", "size") if self.dynamic else ("int",)
        values = [self.value(item, *kinds) for item in node.elts]
        uses = Needs.all(value.uses for value in values)
        return Value("shape", tree.Listed(tuple(value.expression for value in values)), uses)

    List = Tuple

    def Attribute(self, node: ast.Attribute) -> Value:
        value = self.value(node.value, "tensor", "tensor?")
        if node.attr not in ATTRIBUTES:
            hint = did_you_mean(node.attr, ATTRIBUTES, "it can be")
            raise Mistake(node, f"a tensor has no '{node.attr}' in a rule", hint)
        is_optional = value.kind == "tensor?"
        uses = value.uses | (value.itself if is_optional else Needs())
        found = tree.Attribute(value.expression, node.attr, is_optional)
        return Value(ATTRIBUTES[node.attr], found, uses)

    def Subscript(self, node: ast.Subscript) -> Value:
        value = self.value(node.value, "shape", "bools", "tensors")
        if value.kind == "bools":
            index = node.slice
            name = node.value.id if isinstance(node.value, ast.Name) else ""
            size = self.arguments[name].type.bare().size
            number = index.value if isinstance(index, ast.Constant) else None
            if type(number) is not int or (size is not None and number >= size):
                raise Mistake(index, f"the index of a '{self.arguments[name].type}' is a number")
            return Value("bool", tree.Element(value.expression, number))
        if value.kind == "shape" and isinstance(node.slice, ast.Slice):
            return self._slice(value, node.slice)
        place = self.value(node.slice, "int")
        both = (value.expression, place.expression)
        if value.kind == "tensors":
            return Value("tensor", tree.Call("item", both))
        return Value(
            "int", tree.Call("size", both, ast.unparse(node.value)), value.uses | place.uses
        )

    def _slice(self, value: Value, part: ast.Slice) -> Value:
        if part.step is not None:
            raise Mistake(part, "a slice of a shape has no step")
        ends = [self.value(e, "int") if e else None for e in (part.lower, part.upper)]
        given = [end.expression if end else None for end in ends]
        uses = value.uses | Needs.all(end.uses for end in ends if end)
        return Value("shape", tree.Call("slice", (value.expression, *given)), uses)

    def IfExp(self, node: ast.IfExp) -> Value:
        condition = self.value(node.test, "bool")
        then = self.value(node.body).as_tensor
        kinds = [then.kind]
        if then.kind in ("int", "size") and self.dynamic:
            kinds = ["int", "size"]
        if then.kind == "tensor":
            kinds = ["tensor", "tensor?"]
        other = self.value(node.orelse, *kinds).as_tensor
        if "size" in (then.kind, other.kind):
            then = replace(then, kind="size")
        there, elsewhere = self._established(node.test)
        case = tree.Case(condition.expression)
        uses = condition.uses | then.uses.without(there).within(case)
        uses |= other.uses.without(elsewhere).within(case.opposite)
        values = (then.expression, other.expression)
        if (function := _OWN.get(then.kind)) is not None:  # both of one type of C++
            values = (tree.Call(function, values[:1]), tree.Call(function, values[1:]))
        return Value(then.kind, tree.Choice(condition.expression, *values), uses)

    def _established(self, test: ast.expr) -> tuple[frozenset[str], frozenset[str]]:
        """The optional values that are there where a condition holds, and where it does not."""
        nothing: frozenset[str] = frozenset()
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            return nothing.union(*(self._established(part)[0] for part in test.values)), nothing
        if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name):
            label = frozenset({cpp_names.parameter_name(test.left.id)})
            if isinstance(test.ops[0], ast.IsNot):
                return label, nothing
            if isinstance(test.ops[0], ast.Is):
                return nothing, label
        return nothing, nothing

    def BoolOp(self, node: ast.BoolOp) -> Value:
        first = self.value(node.values[0], "bool", "dtype?", "int?")
        if first.kind == "bool":
            return self._conditions(node)
        if not isinstance(node.op, ast.Or) or len(node.values) != 2:
            raise Mistake(node, f"a value that may be missing is used as '{ast.unparse(node)}'")
        other = self.value(node.values[1], kind := first.kind.rstrip("?"))
        found = tree.Default(first.expression, other.expression, is_integer=kind == "int")
        missing = tree.Case(first.expression, holds=False, of_default=True)
        return Value(kind, found, other.uses.within(missing))

    def _conditions(self, node: ast.BoolOp) -> Value:
        """`and` and `or`, where what a missing value would decide is not looked at."""
        is_and = isinstance(node.op, ast.And)
        known: frozenset[str] = frozenset()
        values = []
        for item in node.values:
            value = self.value(item, "bool")
            values.append(replace(value, uses=value.uses.without(known)))
            known |= self._established(item)[0 if is_and else 1]
        return self._joined(values, is_and)

    def _joined(self, values: list[Value], is_and: bool) -> Value:
        """Conditions of which one is looked at where those before it leave it open."""
        *first, found = values
        for value in reversed(first):
            function = "both" if is_and else "either"
            uses = value.uses | found.uses.within(tree.Case(value.expression, holds=is_and))
            found = Value("bool", tree.Joined(function, value.expression, found.expression), uses)
        return found

    def Compare(self, node: ast.Compare) -> Value:
        if len(node.ops) != 1:
            raise Mistake(node, "one comparison at a time")
        operator, right = node.ops[0], node.comparators[0]
        if self._is_dynamic(node.left):
            return self._bounded(node, right)
        if isinstance(operator, (ast.Is, ast.IsNot)):
            return self._is_none(node, isinstance(operator, ast.IsNot))
        if isinstance(operator, (ast.In, ast.NotIn)):
            return self._is_in(node, right)
        if type(operator) not in COMPARISONS:
            raise Mistake(node, f"'{ast.unparse(node)}' is no comparison of a rule")
        left = self.value(node.left, "int", "dtype", "shape", "float", "str")
        kinds = ("int", "float") if left.kind in ("int", "float") else (left.kind,)
        other = self.value(right, *kinds)
        sign, function = COMPARISONS[type(operator)]
        uses, both = left.uses | other.uses, (left.expression, other.expression)
        if "float" in (left.kind, other.kind):
            return Value("bool", tree.Comparison(function, *both, of_numbers=True), uses)
        if left.kind != "int" and sign not in ("==", "!="):
            raise Mistake(node, f"{article(left.kind)} is compared by == and != only")
        if left.kind in ("dtype", "str"):
            return Value("bool", tree.Call(sign, both), uses)
        if left.kind == "shape":
            same = Value("bool", tree.Call("same", both), uses)
            return same if sign == "==" else self._negated(same)
        return Value("bool", tree.Comparison(function, *both), uses)

    def _is_in(self, node: ast.Compare, right: ast.expr) -> Value:
        """Whether a value is one of several."""
        if not isinstance(right, (ast.Tuple, ast.List)) or not right.elts:
            raise Mistake(right, "'in' is asked of a list of values")
        equal = [ast.Compare(node.left, [ast.Eq()], [item]) for item in right.elts]
        for comparison in equal:
            ast.copy_location(comparison, node)
        values = [self.value(comparison, "bool") for comparison in equal]
        found = self._joined(values, is_and=False)
        return self._negated(found) if isinstance(node.ops[0], ast.NotIn) else found

    def _bounded(self, node: ast.Compare, right: ast.expr) -> Value:
        """A size that only the values tell, and that is not larger than another integer."""
        if not isinstance(node.ops[0], ast.LtE):
            raise Mistake(node, "a dynamic size is bounded by <= only")
        assert self.dynamic is not None  # the name on the left was it
        most = self.value(right, "int")
        return Value("size", replace(self.dynamic, most=most.expression), most.uses)

    def _is_none(self, node: ast.Compare, negated: bool) -> Value:
        right = node.comparators[0]
        if not isinstance(right, ast.Constant) or right.value is not None:
            raise Mistake(right, "'is' compares with None only")
        value = self.value(node.left, "tensor?", "int?", "dtype?")
        return Value("bool", tree.IsThere(value.expression, negated=not negated))

    def Call(self, node: ast.Call) -> Value:
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if name not in FUNCTIONS or node.keywords:
            hint = did_you_mean(name, FUNCTIONS, "the functions are")
            raise Mistake(node, f"'{name}' is no function of a rule", hint)
        kinds, result, function = FUNCTIONS[name]
        wanted = self._wanted(node, name, kinds)
        values = [self.value(arg, *kind) for arg, kind in zip(node.args, wanted)]
        uses = Needs.all(value.uses for value in values)
        given = [value.expression for value in values]
        if kinds == ("shape", "..."):
            given = [tree.Call("sizes", (value,)) for value in given]
        return Value(result, tree.Call(function, tuple(given)), uses)

    def _wanted(self, node: ast.Call, name: str, kinds: tuple[str, ...]) -> list[tuple[str, ...]]:
        count = len(node.args)
        wanted = [kinds[0]] * count if kinds[-1] == "..." else list(kinds)
        if count != len(wanted) or count == 0:
            numbers = "one or more" if kinds[-1] == "..." else str(len(kinds))
            raise Mistake(node, f"'{name}' takes {numbers} arguments, got {count}")
        several = {
            "dims": ("int", "shape"),
            "tensors or tensor": ("tensors", "tensor", "tensor?"),
            "list": LISTS,
        }
        return [several.get(kind, (kind,)) for kind in wanted]
