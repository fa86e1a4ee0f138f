# SPDX-License-Identifier: BSD-3-Clause
"""The operators and formulas that follow from an expression, as one would write them.

Of results r(x), with g the gradients of r, h those of the gradients of x, and elements apart from
each other, so that second derivatives are symmetric:

    f_backward(g, x)            g r'(x)                 the gradients of f
    f_jvp(x_t, x)               r'(x) x_t               the tangent of f
    f_double_backward(h, g, x)  h r'(x) and g h r''(x)  the gradients of f_backward

The tangent of f_backward is f_backward(g_t, x) + g x_t r''(x), the second of f_double_backward.

The same holds of rows, where r' is a matrix, and r'' of each result a symmetric one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from ..errors import Location
from ..schema.parser import parse_schema
from ..schema.schema import Schema
from ..spec.model import Derivative, Flag, Formula
from .derivatives import Rows, gradients, simplified, tangent
from .dtypes import Dtype, dtype_of
from .entries import MASK
from .extents import Extent, extent
from .formula_text import (
    Lines,
    listed,
    only,
    result_names,
    taken,
    where_defined,
    without_gradient,
)
from .functions import expanded
from .tree import LENGTH, Call, Choice, IsMissing, Name, Number, OfRow, Tree, names

_ZERO = Number(0)


@dataclass(frozen=True)
class DerivedOperator:
    """One that no entry declares; of its results the expressions."""

    func: Schema
    results: tuple[Tree, ...]
    doc: str
    dtypes: tuple[Dtype, ...] = ()  # of the results, where they are not those of the expressions
    is_composite: bool = False  # it differentiates as the operators that it is made of


@dataclass
class Derived:
    """What follows from an expression."""

    operators: list[DerivedOperator] = field(default_factory=list)
    formulas: list[tuple[Schema, list[Lines], tuple[bool, ...]]] = field(default_factory=list)

    def derivatives(self, place: Location) -> Iterator[Derivative]:
        """The formulas as entries of derivatives.yaml, which stand where the expression does."""
        for func, lines, smooth in self.formulas:
            made = tuple(Formula(n, text, place, (place,) * len(n)) for n, text in lines)
            flags = tuple(Flag(str(is_smooth), place) for is_smooth in smooth)
            known = flags if len(smooth) > 1 else None
            yield Derivative(place, func, known, dispatch=(("Default", made),))


def derived_operators(
    namespace: str,
    func: Schema,
    results: tuple[Tree, ...],
    kinds: Mapping[str, str],
    of_rows: Set[str] | None,
) -> Derived:
    """What follows from the expressions of an operator's results; nothing where no result depends
    smoothly on a tensor. of_rows: the arguments that rows have one number of; None: no rows."""
    return _Deriving(namespace, func, results, kinds, of_rows).run()


class _Deriving:
    """The parts of one operator's derivatives."""

    def __init__(
        self,
        namespace: str,
        func: Schema,
        results: tuple[Tree, ...],
        kinds: Mapping[str, str],
        of_rows: Set[str] | None,
    ) -> None:
        self.namespace, self.func, self.kinds = namespace, func, kinds
        self.has_rows, self.of_rows = of_rows is not None, set(of_rows or ())
        self.all_kinds = dict(kinds)  # those of the arguments of what is derived too
        self.taken = {argument.name for argument in func.arguments}
        self.taken |= {LENGTH} if self.has_rows else set()
        self.tensors = [n for n, kind in kinds.items() if kind in ("tensor", "tensor?")]
        self.smooth = tuple(self._is_smooth(tree) for tree in results)
        self.results = [tree for tree, is_smooth in zip(results, self.smooth) if is_smooth]
        count = len(self.results)
        one = ["grad_output"] if count == 1 else [f"grad_output_{i}" for i in range(count)]
        self.grads = [self._given(n, tree) for n, tree in zip(one, self.results)]
        of = self._sum_of_gradients(dict(zip(self.grads, self.results)), self.tensors)
        self.gradients = {name: tree for name, tree in of.items() if tree is not None}

    def run(self) -> Derived:
        found = Derived()
        if not self.gradients:
            return found
        backward = self._backward()
        double = self._double_backward(backward)
        jvp = self._jvp()
        found.operators += [backward, double, jvp]
        lines = [*self._gradient_lines(backward), *self._tangent_lines(jvp)]
        found.formulas.append((self.func, lines, self.smooth))
        seconds = [*self._second_lines(backward, double), *self._second_tangents(backward, double)]
        found.formulas.append((backward.func, seconds, (True,) * len(self.gradients)))
        return found

    def _is_smooth(self, result: Tree) -> bool:
        found = gradients({"": result}, self.tensors, self._rows({"": result}))
        return any(tree is not None for tree in found.values())

    def _rows(self, results: Mapping[str, Tree] = {}) -> Rows | None:
        """What is known of rows, and of the gradients of results."""
        if not self.has_rows:
            return None
        kinds = {**self.all_kinds, **dict.fromkeys(results, "tensor")}
        of_rows = {name for name, tree in results.items() if self._is_of_rows(tree)}
        return Rows(kinds, self.of_rows | of_rows)

    def _is_of_rows(self, tree: Tree) -> bool:
        """Whether rows have one number of a value, and not one for each element."""
        return self.has_rows and extent(tree, self.all_kinds) is not Extent.ELEMENT

    def _given(self, name: str, like: Tree) -> str:
        """The name of an argument of what is derived, a tensor as a value."""
        name = self._unused(name)
        if self._is_of_rows(like):
            self.of_rows.add(name)
        self.all_kinds[name] = "tensor"
        return name

    def _named(self, name: str) -> Tree:
        return OfRow(name) if name in self.of_rows else Name(name)

    def _unused(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def _sum_of_gradients(
        self, results: Mapping[str, Tree], wanted: Iterable[str]
    ) -> dict[str, Tree | None]:
        """The gradients of results whose own gradients have these names. Of several results each
        may have none, which then is no zero that anything is multiplied by."""
        rows = self._rows()
        if len(results) == 1:
            return gradients(results, wanted, rows)
        wanted = list(wanted)
        found: dict[str, Tree | None] = dict.fromkeys(wanted)
        for grad, result in results.items():
            for name, tree in gradients({grad: result}, wanted, rows).items():
                if tree is not None:
                    part = Choice(IsMissing(grad), _ZERO, tree)
                    before = found[name]
                    found[name] = part if before is None else Call("+", (before, part))
        return found

    def _arguments(self, trees: Iterable[Tree], before: list[str]) -> str:
        """Arguments for what expressions name: first these, then those of the operator."""
        used = set(names(*trees))
        own = [a for a in self.func.arguments if a.name in used]
        return ", ".join([*before, *(f"{a.type} {a.name}" for a in own)])

    def _schema(self, suffix: str, arguments: str, count: int) -> Schema:
        name = self.func.name
        overload = f".{name.overload}" if name.overload else ""
        mask = f", bool[{count}] {MASK}" if count > 1 else ""
        results = f"({', '.join(['Tensor'] * count)})" if count > 1 else "Tensor"
        return parse_schema(f"{name.base}_{suffix}{overload}({arguments}{mask}) -> {results}")

    def _backward(self) -> DerivedOperator:
        trees = tuple(self.gradients.values())
        is_one = len(self.grads) == 1
        before = [f"Tensor{'' if is_one else '?'} {grad}" for grad in self.grads]
        func = self._schema("backward", self._arguments(trees, before), len(trees))
        what = listed(self.gradients)
        return DerivedOperator(func, trees, f"Gradients of ``{self.func.name}`` for {what}.")

    def _jvp(self) -> DerivedOperator:
        self.tangents = {
            name: self._given(f"{name}_tangent", self._named(name)) for name in self.gradients
        }
        values: dict[str, Tree] = {}
        for name, given in self.tangents.items():
            is_there = self.kinds[name] == "tensor"
            own = self._named(given)
            values[name] = own if is_there else Choice(IsMissing(given), _ZERO, own)
        rows = self._rows()
        trees = tuple(
            self._like(simplified(tangent(tree, values, rows) or _ZERO), tree)
            for tree in self.results
        )
        before = [
            f"Tensor{'' if self.kinds[name] == 'tensor' else '?'} {given}"
            for name, given in self.tangents.items()
        ]
        func = self._schema("jvp", self._arguments(trees, before), len(trees))
        dtypes = tuple(self._dtype_of_tangent(tree, func) for tree in self.results)
        doc = f"Tangent of ``{self.func.name}`` in the direction {listed(self.tangents.values())}."
        return DerivedOperator(func, trees, doc, dtypes, is_composite=True)

    def _like(self, tree: Tree, result: Tree) -> Tree:
        """A tangent of as many elements as the result."""
        if not self._is_of_rows(tree) or self._is_of_rows(result):
            return tree
        rows = [n for n in names(result) if n in self.tensors and n not in self.of_rows]
        like = min(rows, key=lambda name: self.kinds[name] != "tensor")
        return expanded(tree, Name(like))

    def _dtype_of_tangent(self, result: Tree, func: Schema) -> Dtype:
        """That of the result, of what the tangent has of its tensors, or of their tangents."""
        known = {a.name for a in func.arguments}
        own = dtype_of(result, self.kinds)
        both = [t for name in own.tensors for t in (name, self.tangents.get(name, name))]
        tensors = tuple(dict.fromkeys(t for t in both if t in known))
        return Dtype(tensors, tuple(n for n in own.numbers if n in known), own.least)

    def _double_backward(self, backward: DerivedOperator) -> DerivedOperator:
        self.second = {
            name: self._given(f"grad_{name}", self._named(name)) for name in self.gradients
        }
        given = {self.second[name]: tree for name, tree in self.gradients.items()}
        wanted = [a.name for a in backward.func.arguments if a.name in (*self.grads, *self.tensors)]
        of = self._sum_of_gradients(given, wanted)
        self.differentiated = {name: tree for name, tree in of.items() if tree is not None}
        trees = tuple(self.differentiated.values())
        before = [f"Tensor{'' if len(given) == 1 else '?'} {name}" for name in given]
        used = names(*trees)
        before += [str(a) for a in backward.func.arguments if a.name in {*self.grads} & {*used}]
        func = self._schema("double_backward", self._arguments(trees, before), len(trees))
        doc = f"Gradients of ``{backward.func.name}`` for {listed(self.differentiated)}."
        return DerivedOperator(func, trees, doc, is_composite=True)

    def _call(self, operator: DerivedOperator, values: Mapping[str, str], mask: str = "") -> str:
        """A call in a formula; arguments that are given no other value are themselves."""
        arguments = [a.name for a in operator.func.arguments]
        given = [mask if name == MASK else values.get(name, name) for name in arguments]
        return f"{self.namespace}::{operator.func.name.base}({', '.join(given)})"

    def _gradient_lines(self, backward: DerivedOperator) -> Iterator[Lines]:
        is_one = len(self.grads) == 1
        values = {n: "grad" if is_one else f"grads[{i}]" for i, n in enumerate(self.grads)}
        call = self._call(backward, values, "grad_input_mask")
        grads = list(values.values())
        yield tuple(self.gradients), where_defined(grads, call, len(self.gradients))
        yield from without_gradient(n for n in self.tensors if n not in self.gradients)

    def _tangent_lines(self, jvp: DerivedOperator) -> Iterator[Lines]:
        values = {name: f"{name}_p" for name in self.gradients}
        values |= {given: f"{name}_t" for name, given in self.tangents.items()}
        count = len(self.results)
        smooth = [n for n, is_smooth in zip(result_names(self.func), self.smooth) if is_smooth]
        for index, result in enumerate(smooth):
            yield (result,), taken(self._call(jvp, values, only(index, count)), index, count)

    def _second_lines(self, backward: DerivedOperator, double: DerivedOperator) -> Iterator[Lines]:
        count = len(self.gradients)
        given = ["grad"] if count == 1 else [f"grads[{i}]" for i in range(count)]
        call = self._call(double, dict(zip(self.second.values(), given)), "grad_input_mask")
        total = len(self.differentiated)
        yield tuple(self.differentiated), where_defined(given, call, total)
        arguments = (a.name for a in backward.func.arguments if a.type.is_tensor_like)
        yield from without_gradient(n for n in arguments if n not in self.differentiated)

    def _second_tangents(
        self, backward: DerivedOperator, double: DerivedOperator
    ) -> Iterator[Lines]:
        """Tangents of the gradients: of what is linear in `grad`, and along the arguments."""
        count, total = len(self.gradients), len(self.differentiated)
        primals = {name: f"{name}_p" for name in self.differentiated}
        along = {name: f"{name}_t" for name in self.grads}
        directions = {
            given: f"{name}_t" if name in self.differentiated else "Tensor()"
            for name, given in self.second.items()
        }
        places = {name: place for place, name in enumerate(self.differentiated)}
        for index, (name, result) in enumerate(zip(self.gradients, result_names(backward.func))):
            first = self._call(backward, {**primals, **along}, only(index, count))
            text = taken(first, index, count)
            if name in places:
                mask = only(places[name], total)
                second = self._call(double, {**primals, **directions}, mask)
                text += f" + {taken(second, places[name], total)}"
            yield (result,), text
