# SPDX-License-Identifier: BSD-3-Clause
"""What follows from an expression: operators, and the text of formulas that call them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ..errors import Location
from ..schema.schema import Schema
from ..spec.model import NON_DIFFERENTIABLE, Derivative, Flag, Formula
from .dtypes import Dtype
from .entries import MASK
from .tree import Tree

Lines = tuple[tuple[str, ...], str]  # of a formula: its names and its text


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


@dataclass(frozen=True)
class Formulas:
    """The formulas of an operator and of its backward operator, by the names of their arguments.

    gradients, differentiated: what has a gradient, of the operator and of the backward one. second:
    by argument, the name of the gradient of its gradient; tangents, tangents_of_backward: those of
    tangents. saved: the argument of the backward operator that is the result.
    """

    namespace: str
    func: Schema
    smooth: tuple[bool, ...]  # of the results
    tensors: list[str]
    grads: list[str]
    gradients: list[str]
    differentiated: list[str]
    tangents: dict[str, str]
    second: dict[str, str]
    saved: str | None
    tangents_of_backward: dict[str, str]
    is_complex: bool  # whether tensors may be complex

    def _call(self, operator: Schema, values: Mapping[str, str], mask: str = "") -> str:
        """A call in a formula; arguments that are given no other value are themselves."""
        arguments = [a.name for a in operator.arguments]
        given = [mask if name == MASK else values.get(name, name) for name in arguments]
        return f"{self.namespace}::{operator.name.base}({', '.join(given)})"

    def _of_arguments(self, call: str, func: Schema, names: Collection[str]) -> str:
        """The gradients of arguments, which are real where those are."""
        if not self.is_complex:
            return call
        plain = {argument.name: argument.type.plain for argument in func.arguments}
        found = [f"{name}{_MEMBER[plain[name]]}scalar_type()" for name in names]
        return f"handle_r_to_c({found[0] if len(found) == 1 else _braced(found)}, {call})"

    def gradient_lines(self, backward: Schema) -> Iterator[Lines]:
        is_one = len(self.grads) == 1
        values = {n: "grad" if is_one else f"grads[{i}]" for i, n in enumerate(self.grads)}
        grads = list(values.values())
        if self.saved:
            values[self.saved] = result_names(self.func)[0]
        call = self._call(backward, values, "grad_input_mask")
        call = self._of_arguments(call, self.func, self.gradients)
        yield tuple(self.gradients), _gradients(grads, call, len(self.gradients))
        yield from without_gradient(n for n in self.tensors if n not in self.gradients)

    def tangent_lines(self, jvp: Schema) -> Iterator[Lines]:
        values = {name: f"{name}_p" for name in self.gradients}
        values |= _given(jvp, self.tangents)
        count = sum(self.smooth)
        smooth = [n for n, is_smooth in zip(result_names(self.func), self.smooth) if is_smooth]
        # An in-place form has a tangent where what it writes to has one alone.
        may_lack = len(self.tangents) == 1 and len(self.tensors) > 1
        # of tensors that only the other results are computed of a tangent has not the sizes
        is_less = not {a.name for a in jvp.arguments}.issuperset(self.tensors)
        for index, result in enumerate(smooth):
            text = taken(self._call(jvp, values, only(index, count)), index, count)
            if may_lack:
                text = where_defined([f"{n}_t_raw" for n in self.tangents], text, 1)
            yield (result,), f"expanded_as({text}, {result})" if is_less else text

    def second_lines(self, backward: Schema, double: Schema) -> Iterator[Lines]:
        count = len(self.gradients)
        given = ["grad"] if count == 1 else [f"grads[{i}]" for i in range(count)]
        call = self._call(double, dict(zip(self.second.values(), given)), "grad_input_mask")
        call = self._of_arguments(call, backward, self.differentiated)
        total = len(self.differentiated)
        yield tuple(self.differentiated), _gradients(given, call, total)
        arguments = (a.name for a in backward.arguments if a.type.is_tensor_like)
        yield from without_gradient(n for n in arguments if n not in self.differentiated)

    def tangents_of(self, backward: Schema, jvp: Schema) -> Iterator[Lines]:
        values = {name: f"{name}_p" for name in self.differentiated}
        values |= _given(jvp, self.tangents_of_backward)
        count = len(self.gradients)
        for index, result in enumerate(result_names(backward)):
            yield (result,), taken(self._call(jvp, values, only(index, count)), index, count)

    def second_tangents(self, backward: Schema, double: Schema) -> Iterator[Lines]:
        """Tangents of the gradients: of what is linear in `grad`, and along the arguments. Each is
        computed where there is a tangent for it, since 0 is no zero of what may be infinite."""
        count, total = len(self.gradients), len(self.differentiated)
        primals = {name: f"{name}_p" for name in self.differentiated}
        along = {name: f"{name}_t_raw" for name in self.grads}
        own = {n: f"{n}_t_raw" for n in self.gradients if n in self.differentiated}
        directions = {given: own.get(name, "Tensor()") for name, given in self.second.items()}
        places = {name: place for place, name in enumerate(self.differentiated)}
        for index, (name, result) in enumerate(zip(self.gradients, result_names(backward))):
            first = self._call(backward, {**primals, **along}, only(index, count))
            text = where_defined(along.values(), taken(first, index, count), 1)
            if name in places:
                mask = only(places[name], total)
                second = self._call(double, {**primals, **directions}, mask)
                second = where_defined(own.values(), taken(second, places[name], total), 1)
                text = f"sum_of_defined({text}, {second})"
            # of the gradients that have no tangent one may be all that a batch has
            yield (result,), text if len(self.grads) == 1 else f"expanded_as({text}, {result})"


_MEMBER = {"Tensor": ".", "Tensor?": "->"}


def _given(operator: Schema, tangents: Mapping[str, str]) -> dict[str, str]:
    """What the arguments for the tangents of others are: zeros where there is none, unless they may
    be missing."""
    optional = {a.name for a in operator.arguments if a.type.plain == "Tensor?"}
    raw = {n: given in optional for n, given in tangents.items()}
    return {given: f"{n}_t_raw" if raw[n] else f"{n}_t" for n, given in tangents.items()}


def without_gradient(arguments: Iterable[str]) -> Iterator[Lines]:
    found = tuple(arguments)
    if found:
        yield found, NON_DIFFERENTIABLE


def result_names(func: Schema) -> list[str]:
    if len(func.returns) == 1:
        return [func.returns[0].name or "result"]
    return [result.name or f"result{i}" for i, result in enumerate(func.returns)]


def only(index: int, count: int) -> str:
    """A mask that asks for one of several results."""
    return _braced("true" if i == index else "false" for i in range(count))


def _braced(values: Iterable[str]) -> str:
    return f"{{{', '.join(values)}}}"


def taken(call: str, index: int, count: int) -> str:
    return call if count == 1 else f"std::get<{index}>({call})"


def where_defined(grads: Collection[str], call: str, count: int) -> str:
    """A call that is left out where no gradient, or tangent, came."""
    nothing = f"std::tuple<{', '.join(['Tensor'] * count)}>()" if count > 1 else "Tensor()"
    return f"{' || '.join(f'{grad}.defined()' for grad in grads)} ? {call} : {nothing}"


def _gradients(grads: list[str], call: str, count: int) -> str:
    is_asked = count == 1 and len(grads) == 1  # by autograd itself
    return call if is_asked else where_defined(grads, call, count)


def listed(found: Iterable[str]) -> str:
    return ", ".join(f"``{name}``" for name in found)
