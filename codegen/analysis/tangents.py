# SPDX-License-Identifier: BSD-3-Clause
"""Forward mode: what each `result:` formula computes and reads.

Rules are upstream's (load_derivatives.py, api/autograd.py), those for in-place forms included.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..cpp import names as cpp_names
from ..errors import Errors
from ..formula import tangents as forward
from ..formula.checks import AUTO_ELEMENT_WISE, AUTO_LINEAR
from ..formula.reading import read
from ..formula.scope import DIFFERENTIABLE_TYPES, FormulaScope
from ..plan.autograd import ResultPlan, SourceLine, TangentInput, TangentPlan
from ..spec.model import Formula
from .nodes import NodeAnalysis


class TangentAnalysis:
    """The tangents of one operator: of the entry's own, or of an in-place form that inherits it."""

    def __init__(
        self, namespace: str, handle: str, scope: FormulaScope, entry: NodeAnalysis, errors: Errors
    ) -> None:
        self.namespace, self.handle, self.scope, self.errors = namespace, handle, scope, errors
        self.entry = entry
        self.inherits = scope is not entry.scope
        gradients = entry.with_gradient
        self.tensors = [n for n in gradients if scope.arguments[n].type.name != "List"]
        self.lists = [n for n in gradients if n not in self.tensors]
        self.written = {a.name for a in scope.func.mutated}
        # What may share memory with what is written to is read as it was before.
        is_safe = scope.func.is_out or scope.operator.is_inplace_view
        self.may_be_written = {
            a.name
            for a in scope.func.arguments
            if a.type.plain in DIFFERENTIABLE_TYPES and a.name not in self.written
            if self.written and not is_safe
        }
        self.reads: set[str] = set()  # parameters
        # One formula must not meet what another has written.
        self.overwrites = len(scope.flow) > 1 and any(r.written for r in scope.flow)

    def plan(self) -> tuple[TangentPlan, ...]:
        """The tangents, in the order of the formulas; none where an error was noted."""
        formulas = self.entry.forward
        if not formulas:
            return ()
        location = formulas[0].location
        named = [name for formula in formulas for name in formula.names]
        missing = [r.name for r in self.scope.flow if r.name not in named]
        extra = [n for n in named if n not in {r.name for r in self.scope.flow}]
        if extra or missing:
            what = (
                f"tangent of '{extra[0]}', which is not differentiable"
                if extra
                else f"no tangent for '{missing[0]}', though there is one for '{named[0]}'"
            )
            self.errors.add(location, what)
            return ()
        if not self._are_apart(formulas):
            return ()
        return tuple(self._tangent(formula, len(formulas)) for formula in formulas)

    def _are_apart(self, formulas: list[Formula]) -> bool:
        """Whether no formula gives the tangents of a list beside others."""
        for formula in formulas:
            if len(formula.names) > 1 and any(
                self.scope.by_result[n].is_list for n in formula.names
            ):
                what = "the tangents of a list and of other results need formulas of their own"
                self.errors.add(formula.location, what)
                return False
        return True

    def calls(self) -> tuple[str, ...]:
        """Functions of the library's own C++ API that the formulas and conditions call."""
        texts = [formula.text for formula in self.entry.forward]
        texts += [r.condition.expression for r in self.scope.results if r.condition]
        found = (read(text).members_of(self.namespace) for text in texts)
        return tuple(sorted(set().union(*found)))

    def _tangent(self, formula: Formula, count: int) -> TangentPlan:
        results = tuple(self.scope.by_result[name] for name in formula.names)
        text = formula.text
        required: list[str] | None = None
        if text == AUTO_ELEMENT_WISE:
            text, required = self._element_wise(formula, count), list(self.tensors)
        elif text == AUTO_LINEAR:
            text, required = self._linear(formula, count), list(self.tensors)
        elementwise = self.scope.is_elementwise(text) or self.entry.is_foreach(formula)
        candidates = [*self.tensors, *self.lists] if elementwise else self.tensors
        used = read(text).names
        if required is None:
            required = [n for n in candidates if used.intersection(forward.words(n))]
        primals = {n for n in candidates if f"{n}_p" in used}
        written = [self._argument(r.written) for r in results if r.written]
        clones: tuple[str, ...] = ()
        if self.overwrites:
            text, primals = self._beside(text, primals)
            candidates = list(dict.fromkeys([*candidates, *written]))
            required = list(dict.fromkeys([*required, *written]))
        elif written:
            (name,) = written
            text, primals, clones = self._in_place(text, name, primals)
            candidates = list(dict.fromkeys([*candidates, name]))
            required = list(dict.fromkeys([*required, name]))
        is_old = {n for n in candidates if used.intersection(forward.words(f"original_{n}"))}
        old = [n for n in candidates if n in is_old and n not in required]
        looked_at = [*required, *old, *([] if elementwise else self.lists)]
        named = dict.fromkeys([*looked_at, *(n for n in candidates if n in primals)])
        return TangentPlan(
            results,
            tuple(self._value(n, elementwise) for n in looked_at),
            self._inputs(text, candidates, required, primals, elementwise),
            read(self._over_parameters(text, candidates, results)).rooted(self.namespace),
            SourceLine(formula.location.source.name, formula.at(0).line),
            elementwise,
            tuple(self._by_element(text, [*required, *primals])) if elementwise else (),
            clones,
            tuple(self._value(n, elementwise) for n in named if n not in written)
            if not any(r.is_view for r in results)
            else (),
        )

    def _element_wise(self, formula: Formula, count: int) -> str:
        """The Jacobian is diagonal: the gradient's formula at the conjugate tangent, conjugated."""
        single = count == 1 and len(formula.names) == 1 and len(self.entry.with_gradient) == 1
        if not single or len(self.entry.backward) != 1 or not self.tensors:
            what = f"'{AUTO_ELEMENT_WISE}' needs one differentiable argument and one result"
            self.errors.add(formula.location, what)
            return ""
        if any(r.written for r in self.entry.scope.results):
            what = f"'{AUTO_ELEMENT_WISE}' cannot be used where the result is an argument"
            self.errors.add(formula.location, what)
        uses = read(self.entry.backward[0].text).names
        if odd := sorted(uses & {"grads", "grad_input_mask", "retain_variables"}):
            what = f"'{AUTO_ELEMENT_WISE}' needs a gradient without '{odd[0]}'"
            self.errors.add(formula.location, what)
        (name,) = self.tensors
        grads = ["grad", *self.entry.scope.named_grads]
        return forward.at_conjugate(self.entry.backward[0].text, name, grads)

    def _linear(self, formula: Formula, count: int) -> str:
        """The operator itself, at the tangents: of its results the one that is differentiable."""
        if count > 1 or len(formula.names) > 1:
            self.errors.add(formula.location, f"'{AUTO_LINEAR}' needs one differentiable result")
        if self.lists:
            what = f"'{AUTO_LINEAR}' cannot be used with the list '{self.lists[0]}'"
            self.errors.add(formula.location, what)
        self._check_called_again(formula)
        arguments = [f"{n}_t" if n in self.tensors else n for n in self.scope.arguments]
        # An inherited formula is of the functional form, whose name the node's operator has. What
        # makes its argument a view of itself does so to the tangent, whatever that is.
        is_other = self.inherits and not self.scope.operator.is_inplace_view
        handle = self._functional_handle() if is_other else self.handle
        names = [r.name for r in self.scope.results]
        index = names.index(formula.names[0]) if len(names) > 1 else None
        return forward.called_again(handle, arguments, index)

    def _check_called_again(self, formula: Formula) -> None:
        """Note what a second call of the operator would do other than compute the tangent."""
        if self.inherits:
            return
        what = hint = None
        aside = [n for n in self.written if n not in self.tensors]
        if aside:
            what = f"'{AUTO_LINEAR}' would call the operator again, and it writes to '{aside[0]}'"
            hint = f"write the tangent with a function that leaves '{aside[0]}' as it is"
        elif "nondeterministic_seeded" in self.scope.operator.tags:
            what = f"'{AUTO_LINEAR}' would call the operator again, and it draws random numbers"
            hint = "write the tangent with what the first call drew, such as a mask that it returns"
        if what:
            self.errors.add(formula.location, what, hint)

    def _functional_handle(self) -> str:
        return cpp_names.handle_name(self.entry.scope.operator.name.identifier)

    def _in_place(
        self, text: str, name: str, primals: set[str]
    ) -> tuple[str, set[str], tuple[str, ...]]:
        """The formula for an operator that writes its result to the argument `name`."""
        text, primals = self._beside(text, primals)
        if self.scope.operator.is_inplace_view:
            return forward.viewed_in_place(name, text), primals, ()
        written = forward.written_in_place(name, text, self.entry.scope.operator.name.base)
        own = (*forward.words(name), *forward.words(f"original_{name}"))
        reads = read(text).names.intersection(own)
        if not self.inherits:
            # it writes to the tangent itself, or does not read it
            clones = tuple(word for word in forward.words(name) if word in reads)
            return text if reads else written, primals, clones
        whole, raw = forward.words(name)
        if raw in reads:
            text = read(text).renamed({raw: forward.read_apart(raw)})
            written = forward.written_in_place(name, text, self.entry.scope.operator.name.base)
        keeps = f"original_{name}_t" in text or f"original_{name}_p" in text or whole not in reads
        return written, primals, () if keeps else (whole,)

    def _writes(self, text: str) -> bool:
        """Whether a formula itself writes to a tangent."""
        return bool(self.written) and not self.inherits and read(text).writes

    def _beside(self, text: str, primals: set[str]) -> tuple[str, set[str]]:
        """The formula over what is written to, before and after the call."""
        written = {self._argument(r.written): r.name for r in self.scope.results if r.written}
        # one without a gradient has no `_p`: its name is its value, the one before the call
        text = read(text).renamed({n: f"original_{n}_p" for n in written if n not in self.tensors})
        uses = read(text).names
        for other in (n for n in written if f"{n}_p" in uses):
            if not self.inherits:
                what = f"'{other}_p' is the value that the operator overwrites"
                hint = f"'{written[other]}' is the new value, 'original_{other}_p' the old one"
                self.errors.add(self.entry.forward[0].location, what, hint)
            words = (f"{other}_p", *forward.words(other))
            text = read(text).renamed({word: f"original_{word}" for word in words})
            primals = primals - {other}
        missing = {r.name for r in self.scope.results if r.is_optional}
        kept = {result: n for n, result in written.items() if result not in missing}
        text = read(text).renamed({result: f"{n}_p" for result, n in kept.items()})
        return text, primals | {n for n in written if f"{n}_p" in read(text).names}

    def _argument(self, written: str | None) -> str:
        """The argument that is this parameter of the kernel."""
        return next(n for n in self.written if self.scope.parameter(n) == written)

    def _value(self, name: str, elementwise: bool, is_read: bool = False) -> str:
        """An argument in the kernel; of a list the i-th element where the formula is for that."""
        is_list = self.scope.arguments[name].type.name == "List"
        parameter = self._before(name) if is_read else self.scope.parameter(name)
        return parameter + ("[i]" if elementwise and is_list else "")

    def _before(self, name: str) -> str:
        """An argument as it was before the operator wrote to others."""
        parameter = self.scope.parameter(name)
        if name not in self.may_be_written:
            return parameter
        self.reads.add(parameter)
        return f"{parameter}_before"

    def _by_element(self, text: str, names: list[str]) -> Iterator[tuple[str, str]]:
        """The lists of which a formula reads the i-th element, among them the arguments of which it
        does so by a word of their own."""
        used = read(text).by_element.union(names)
        for name, argument in self.scope.arguments.items():
            if name in used and argument.type.name == "List":
                yield name, self.scope.parameter(name)

    def _inputs(
        self,
        text: str,
        candidates: list[str],
        required: list[str],
        primals: set[str],
        elementwise: bool,
    ) -> tuple[TangentInput, ...]:
        used = read(text).names
        found = []
        for name in candidates:
            if name in required or name in primals:
                # A formula of the operator's own may write to one tangent before it reads another.
                is_read = name in primals or self.overwrites or self._writes(text)
                parameter = self._value(name, elementwise, is_read)
                written = name in self.written
                whole, raw = forward.words(name)
                needs = whole in used, name in primals, raw in used
                copied = written and self.overwrites
                found.append(TangentInput(name, parameter, *needs, written, is_copied=copied))
        for name in sorted(self.written):
            item = f"original_{name}"
            whole, raw = (word in used for word in forward.words(item))
            primal = f"{item}_p" in used
            if whole or raw or primal:
                local = f"original_{self.scope.parameter(name)}"
                found.append(TangentInput(item, local, whole, primal, raw, False, True))
        return tuple(found)

    def _plain(self, name: str) -> str:
        """An argument that a formula reads by its name: as it is, but for a tangent that goes
        nowhere."""
        type_ = self.scope.arguments[name].type
        is_constant = type_.is_tensor_like and name in self.entry.non_differentiable
        keeps = not is_constant or name in self.written
        parameter = self._before(name)
        return parameter if keeps else forward.without_tangent(parameter)

    def _over_parameters(
        self, text: str, candidates: list[str], results: tuple[ResultPlan, ...]
    ) -> str:
        """The formula with arguments and results as the kernel spells them."""
        used = read(text).names.difference(candidates)
        names = {n: self._plain(n) for n in self.scope.arguments if n in used}
        names |= {r.name: r.local for r in self.scope.results if not r.written}
        optional = (r for r in self.scope.results if r.is_optional)
        names |= {r.name: forward.primal_of(r.local) for r in optional}
        return read(text).renamed(names)
