# SPDX-License-Identifier: BSD-3-Clause
"""The operators and formulas that follow from an expression, as one would write them.

Of results r(x), with g the gradients of r, h those of the gradients of x, and elements apart from
each other, so that second derivatives are symmetric:

    f_backward(g, x)            g r'(x)                 the gradients of f
    f_jvp(x_t, x)               r'(x) x_t               the tangent of f
    f_double_backward(h, g, x)  h r'(x) and g h r''(x)  the gradients of f_backward

The tangent of f_backward is f_backward(g_t, x) + g x_t r''(x), the second of f_double_backward.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ..errors import Location
from ..schema.parser import parse_schema
from ..schema.schema import Schema
from ..spec.model import NON_DIFFERENTIABLE, Derivative, Flag, Formula
from .derivatives import gradients, simplified, tangent
from .dtypes import Dtype, dtype_of
from .tree import Call, Choice, IsMissing, Name, Number, Tree, names

_ZERO = Number(0)
MASK = "output_mask"  # the argument that says which of several results are wanted
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


def derived_operators(
    namespace: str, func: Schema, results: tuple[Tree, ...], kinds: Mapping[str, str]
) -> Derived:
    """What follows from the expressions of an operator's results; nothing where no result depends
    smoothly on a tensor."""
    return _Deriving(namespace, func, results, kinds).run()


class _Deriving:
    """The parts of one operator's derivatives."""

    def __init__(
        self, namespace: str, func: Schema, results: tuple[Tree, ...], kinds: Mapping[str, str]
    ) -> None:
        self.namespace, self.func, self.kinds = namespace, func, kinds
        self.taken = {argument.name for argument in func.arguments}
        self.tensors = [n for n, kind in kinds.items() if kind in ("tensor", "tensor?")]
        self.smooth = tuple(self._is_smooth(tree) for tree in results)
        self.results = [tree for tree, is_smooth in zip(results, self.smooth) if is_smooth]
        count = len(self.results)
        one = ["grad_output"] if count == 1 else [f"grad_output_{i}" for i in range(count)]
        self.grads = [self._unused(name) for name in one]
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
        return any(tree is not None for tree in gradients({"": result}, self.tensors).values())

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
        if len(results) == 1:
            return gradients(results, wanted)
        wanted = list(wanted)
        found: dict[str, Tree | None] = dict.fromkeys(wanted)
        for grad, result in results.items():
            for name, tree in gradients({grad: result}, wanted).items():
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
        what = _listed(self.gradients)
        return DerivedOperator(func, trees, f"Gradients of ``{self.func.name}`` for {what}.")

    def _jvp(self) -> DerivedOperator:
        self.tangents = {name: self._unused(f"{name}_tangent") for name in self.gradients}
        values: dict[str, Tree] = {}
        for name, given in self.tangents.items():
            is_there = self.kinds[name] == "tensor"
            own = Name(given)
            values[name] = own if is_there else Choice(IsMissing(given), _ZERO, own)
        trees = tuple(simplified(tangent(tree, values) or _ZERO) for tree in self.results)
        before = [
            f"Tensor{'' if self.kinds[name] == 'tensor' else '?'} {given}"
            for name, given in self.tangents.items()
        ]
        func = self._schema("jvp", self._arguments(trees, before), len(trees))
        dtypes = tuple(self._dtype_of_tangent(tree, func) for tree in self.results)
        doc = f"Tangent of ``{self.func.name}`` in the direction {_listed(self.tangents.values())}."
        return DerivedOperator(func, trees, doc, dtypes, is_composite=True)

    def _dtype_of_tangent(self, result: Tree, func: Schema) -> Dtype:
        """That of the result, of what the tangent has of its tensors, or of their tangents."""
        known = {a.name for a in func.arguments}
        own = dtype_of(result, self.kinds)
        both = [t for name in own.tensors for t in (name, self.tangents.get(name, name))]
        tensors = tuple(dict.fromkeys(t for t in both if t in known))
        return Dtype(tensors, tuple(n for n in own.numbers if n in known), own.least)

    def _double_backward(self, backward: DerivedOperator) -> DerivedOperator:
        self.second = {name: self._unused(f"grad_{name}") for name in self.gradients}
        given = {self.second[name]: tree for name, tree in self.gradients.items()}
        wanted = [a.name for a in backward.func.arguments if a.name in (*self.grads, *self.tensors)]
        of = self._sum_of_gradients(given, wanted)
        self.differentiated = {name: tree for name, tree in of.items() if tree is not None}
        trees = tuple(self.differentiated.values())
        before = [f"Tensor{'' if len(given) == 1 else '?'} {name}" for name in given]
        before += [str(a) for a in backward.func.arguments if a.name in self.grads]
        func = self._schema("double_backward", self._arguments(trees, before), len(trees))
        doc = f"Gradients of ``{backward.func.name}`` for {_listed(self.differentiated)}."
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
        yield tuple(self.gradients), _where_defined(grads, call, len(self.gradients))
        yield from _without_gradient(n for n in self.tensors if n not in self.gradients)

    def _tangent_lines(self, jvp: DerivedOperator) -> Iterator[Lines]:
        values = {name: f"{name}_p" for name in self.gradients}
        values |= {given: f"{name}_t" for name, given in self.tangents.items()}
        count = len(self.results)
        smooth = [n for n, is_smooth in zip(_result_names(self.func), self.smooth) if is_smooth]
        for index, result in enumerate(smooth):
            yield (result,), _taken(self._call(jvp, values, _only(index, count)), index, count)

    def _second_lines(self, backward: DerivedOperator, double: DerivedOperator) -> Iterator[Lines]:
        count = len(self.gradients)
        given = ["grad"] if count == 1 else [f"grads[{i}]" for i in range(count)]
        call = self._call(double, dict(zip(self.second.values(), given)), "grad_input_mask")
        total = len(self.differentiated)
        yield tuple(self.differentiated), _where_defined(given, call, total)
        arguments = (a.name for a in backward.func.arguments if a.type.is_tensor_like)
        yield from _without_gradient(n for n in arguments if n not in self.differentiated)

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
        for index, (name, result) in enumerate(zip(self.gradients, _result_names(backward.func))):
            first = self._call(backward, {**primals, **along}, _only(index, count))
            text = _taken(first, index, count)
            if name in places:
                mask = _only(places[name], total)
                second = self._call(double, {**primals, **directions}, mask)
                text += f" + {_taken(second, places[name], total)}"
            yield (result,), text


def _without_gradient(arguments: Iterable[str]) -> Iterator[Lines]:
    found = tuple(arguments)
    if found:
        yield found, NON_DIFFERENTIABLE


def _result_names(func: Schema) -> list[str]:
    if len(func.returns) == 1:
        return [func.returns[0].name or "result"]
    return [result.name or f"result{i}" for i, result in enumerate(func.returns)]


def _only(index: int, count: int) -> str:
    """A mask that asks for one of several results."""
    return "{" + ", ".join("true" if i == index else "false" for i in range(count)) + "}"


def _taken(call: str, index: int, count: int) -> str:
    return call if count == 1 else f"std::get<{index}>({call})"


def _where_defined(grads: list[str], call: str, count: int) -> str:
    """A call that is left out where no gradient came."""
    if count == 1 and len(grads) == 1:
        return call  # which autograd asks itself
    nothing = f"std::tuple<{', '.join(['Tensor'] * count)}>()" if count > 1 else "Tensor()"
    return f"{' || '.join(f'{grad}.defined()' for grad in grads)} ? {call} : {nothing}"


def _listed(found: Iterable[str]) -> str:
    return ", ".join(f"``{name}``" for name in found)
