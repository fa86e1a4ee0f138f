# SPDX-License-Identifier: BSD-3-Clause
"""The operators and formulas that follow from an expression, as one would write them.

Of results r(x), with g the gradients of r, h those of the gradients of x, and elements apart from
each other, so that second derivatives are symmetric:

    f_backward(g, x)            g r'(x)                 the gradients of f
    f_jvp(x_t, x)               r'(x) x_t               the tangent of f
    f_double_backward(h, g, x)  h r'(x) and g h r''(x)  the gradients of f_backward

The tangent of f_backward is f_backward(g_t, x) + g x_t r''(x), the second of f_double_backward.

The same holds of rows, where r' is a matrix, and r'' of each result a symmetric one. Of complex
numbers f_backward is g conj(r'(x)), whose tangent is an operator of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from functools import partial

from ..schema.parser import parse_schema
from ..schema.schema import Schema
from .derivatives import Arguments, gradients, simplified, tangent
from .dtypes import Dtype, cast_is_smooth, dtype_of
from .entries import MASK
from .extents import Extent, extent
from .formula_text import Derived, DerivedOperator, Formulas, listed
from .functions import by_pieces, computed, is_condition, made_as, size_of
from .sizes import as_rows, of_arguments, with_tensors
from .tree import (
    LENGTH,
    Cast,
    Choice,
    IsMissing,
    Name,
    Number,
    OfRow,
    Tree,
    exchanged,
    in_order,
    names,
    parts,
)

_ZERO = Number(0)


def derived_operators(
    namespace: str,
    func: Schema,
    results: tuple[Tree, ...],
    kinds: Mapping[str, str],
    of_rows: Set[str] | None,
    is_complex: bool = False,
) -> Derived:
    """What follows from the expressions of an operator's results; nothing where no result depends
    smoothly on a tensor. of_rows: the arguments that rows have one number of; None: no rows.
    is_complex: whether numbers may be complex."""
    return _Deriving(namespace, func, results, kinds, of_rows, is_complex).run()


class _Deriving:
    """The parts of one operator's derivatives."""

    def __init__(
        self,
        namespace: str,
        func: Schema,
        results: tuple[Tree, ...],
        kinds: Mapping[str, str],
        of_rows: Set[str] | None,
        is_complex: bool,
    ) -> None:
        self.namespace, self.func, self.kinds = namespace, func, kinds
        self.is_complex = is_complex
        self.has_rows, self.of_rows = of_rows is not None, set(of_rows or ())
        self.all_kinds = dict(kinds)  # those of the arguments of what is derived too
        self.taken = {argument.name for argument in func.arguments}
        self.taken |= {LENGTH} if self.has_rows else set()
        self.tensors = [n for n, kind in kinds.items() if kind in ("tensor", "tensor?")]
        self.smooth = tuple(self._is_smooth(tree) for tree in results)
        self.whole = [tree for tree, is_smooth in zip(results, self.smooth) if is_smooth]
        self.results = [computed(tree) for tree in self.whole]
        count = len(self.results)
        one = ["grad_output"] if count == 1 else [f"grad_output_{i}" for i in range(count)]
        self.grads = [self._given(n, tree) for n, tree in zip(one, self.results)]
        of = gradients(dict(zip(self.grads, self.results)), self.tensors, self._known())
        self.gradients = {name: tree for name, tree in of.items() if tree is not None}
        is_whole = all(size_of(tree) is None for tree in self.whole)
        is_less = self.of_rows.issuperset(self.grads) or not is_whole
        if self.has_rows and (len(self.grads) > 1 or is_less):
            made = with_tensors(self.gradients.values(), self.results, self.all_kinds)
            self.gradients = dict(zip(self.gradients, made))
        self.saved = self._save_result(results)

    def run(self) -> Derived:
        found = Derived()
        if not self.gradients:
            return found
        backward = self._backward()
        double = self._double_backward(backward)
        jvp = self._jvp()
        found.operators += [backward, double, jvp]
        formulas = Formulas(
            self.namespace,
            self.func,
            self.smooth,
            self.tensors,
            self.grads,
            [*self.gradients],
            [*self.differentiated],
            self.tangents,
            self.second,
            self.saved,
            self._tangents_given(self.differentiated) if self._has_own_tangent else {},
            self.is_complex,
        )
        seconds = [*formulas.second_lines(backward.func, double.func)]
        if self._has_own_tangent:
            tangent_of_backward = self._backward_jvp(backward, formulas.tangents_of_backward)
            found.operators.append(tangent_of_backward)
            seconds += formulas.tangents_of(backward.func, tangent_of_backward.func)
        else:
            seconds += formulas.second_tangents(backward.func, double.func)
        lines = [*formulas.gradient_lines(backward.func), *formulas.tangent_lines(jvp.func)]
        found.formulas.append((self.func, lines, self.smooth))
        found.formulas.append((backward.func, seconds, (True,) * len(self.gradients)))
        return found

    @property
    def _has_own_tangent(self) -> bool:
        """Whether the tangent of the gradients is an operator: one along the result, too, and one
        that is complex where an argument is real, whose gradients f_double_backward makes real."""
        return bool(self.saved) or self.is_complex

    def _is_smooth(self, result: Tree) -> bool:
        if isinstance(result, Cast) and not cast_is_smooth(result):
            return False
        result = computed(result)
        found = gradients({"": result}, self.tensors, self._known({"": result}))
        return any(tree is not None for tree in found.values())

    def _save_result(self, results: tuple[Tree, ...]) -> str | None:
        """The name of an argument that is the result, where gradients are computed of that and of
        fewer tensors then, or rows have only one number of it; not where they compare with it what
        is computed again, which is not rounded as it is."""
        if len(results) != 1 or not self.gradients:
            return None
        name = "output"
        while name in self.taken:
            name += "_"
        is_of_rows = self._is_of_rows(results[0])
        own: Tree = OfRow(name) if is_of_rows else Name(name)
        trees = {n: exchanged(tree, {results[0]: own}) for n, tree in self.gradients.items()}
        before, after = (
            set(names(*found.values())) & set(self.tensors) for found in (self.gradients, trees)
        )
        is_gain = after < before or is_of_rows
        if trees == self.gradients or not is_gain or _is_compared(own, trees.values()):
            return None
        self.gradients = trees
        return self._given(name, results[0])

    def _known(self, results: Mapping[str, Tree] = {}) -> Arguments:
        """The arguments, and the gradients of results."""
        kinds = {**self.all_kinds, **dict.fromkeys(results, "tensor")}
        of_rows = {name for name, tree in results.items() if self._is_of_rows(tree)}
        of_rows = self.of_rows | of_rows
        return Arguments(kinds, of_rows if self.has_rows else None, self.is_complex)

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
        trees = of_arguments(self.gradients, self._rows_of(self.tensors))
        is_one = len(self.grads) == 1
        before = [f"Tensor{'' if is_one else '?'} {grad}" for grad in self.grads]
        before += [f"Tensor {self.saved}"] if self.saved else []
        func = self._schema("backward", self._arguments(trees, before), len(trees))
        what = listed(self.gradients)
        return DerivedOperator(func, trees, f"Gradients of ``{self.func.name}`` for {what}.")

    def _jvp(self) -> DerivedOperator:
        self.tangents = self._tangents_given(self.gradients)
        trees, before = self._along(self.results, self.tangents)
        trees = tuple(made_as(whole, tree) for whole, tree in zip(self.whole, trees))
        func = self._schema("jvp", self._arguments(trees, before), len(trees))
        dtypes = tuple(self._dtype_of_tangent(tree, func) for tree in self.whole)
        doc = f"Tangent of ``{self.func.name}`` in the direction {listed(self.tangents.values())}."
        return DerivedOperator(func, trees, doc, dtypes, is_composite=True)

    def _backward_jvp(
        self, backward: DerivedOperator, tangents: Mapping[str, str]
    ) -> DerivedOperator:
        """The tangent of the gradients, along the result too."""
        trees, before = self._along(self.gradients.values(), tangents)
        used = names(*trees)
        trees = tuple(map(made_as, backward.results, trees))
        known = [a for a in backward.func.arguments if a.name in (*self.grads, self.saved)]
        before += [str(a) for a in known if a.name in used]
        func = self._schema("backward_jvp", self._arguments(trees, before), len(trees))
        doc = f"Tangent of ``{backward.func.name}`` in the direction "
        doc += f"{listed(tangents.values())}."
        return DerivedOperator(func, trees, doc, is_composite=True)

    def _tangents_given(self, arguments: Iterable[str]) -> dict[str, str]:
        return {name: self._given(f"{name}_tangent", self._named(name)) for name in arguments}

    def _along(
        self, results: Collection[Tree], tangents: Mapping[str, str]
    ) -> tuple[tuple[Tree, ...], list[str]]:
        """The tangents of results, and the arguments that are those of the arguments."""
        values: dict[str, Tree] = {}
        arguments = []
        # One alone is there, since anything is computed.
        is_there = [self.all_kinds[name] for name in tangents] == ["tensor"]
        for name, given in tangents.items():
            own = self._named(given)
            values[name] = own if is_there else Choice(IsMissing(given), _ZERO, own)
            arguments.append(f"Tensor{'' if is_there else '?'} {given}")
        known = self._known()
        zeros = (by_pieces(lambda _: _ZERO, tree) for tree in results)
        found = tuple(
            simplified(tangent(tree, values, known) or zero) for tree, zero in zip(results, zeros)
        )
        if self.has_rows:
            whole = partial(as_rows, kinds=self.all_kinds)
            found = tuple(by_pieces(whole, *both) for both in zip(found, results))
        for_arguments = tangents if is_there else {}
        return with_tensors(found, results, self.all_kinds, for_arguments), arguments

    def _rows_of(self, arguments: Iterable[str]) -> set[str]:
        """Those of some that have rows, which may be broadcast."""
        is_broadcast = self.has_rows and len(self.tensors) > 1
        return {*arguments} - self.of_rows if is_broadcast else set()

    def _dtype_of_tangent(self, result: Tree, func: Schema) -> Dtype:
        """That of the result, of what the tangent has of its tensors, or of their tangents."""
        if isinstance(result, Cast):
            return dtype_of(result, self.kinds)
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
        known = (*self.grads, *self.tensors, self.saved)
        wanted = [a.name for a in backward.func.arguments if a.name in known]
        of = gradients(given, wanted, self._known())
        self.differentiated = {name: tree for name, tree in of.items() if tree is not None}
        if self._rows_of(self.tensors):
            own = self.differentiated.values()
            long = with_tensors(own, self.gradients.values(), self.all_kinds)
            self.differentiated = dict(zip(self.differentiated, long))
        trees = of_arguments(self.differentiated, self._rows_of(wanted))
        before = [f"Tensor{'' if len(given) == 1 else '?'} {name}" for name in given]
        used = names(*trees)
        more = {*self.grads, self.saved} & {*used}
        before += [str(a) for a in backward.func.arguments if a.name in more]
        func = self._schema("double_backward", self._arguments(trees, before), len(trees))
        doc = f"Gradients of ``{backward.func.name}`` for {listed(self.differentiated)}."
        return DerivedOperator(func, trees, doc, is_composite=True)


def _is_compared(value: Tree, trees: Iterable[Tree]) -> bool:
    """Whether a value is compared with one that is computed."""
    comparisons = (part for part in in_order(*trees) if is_condition(part))
    return any(
        value in parts(part) and any(parts(other) for other in parts(part)) for part in comparisons
    )
