# SPDX-License-Identifier: BSD-3-Clause
"""The functions that formulas call, checked against those of the library and of installed torch.

Reads formulas and the plans of operators; notes in Errors a call of what is no operator of the
library, or of one with another number of arguments, which the C++ compiler would find much later.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..cpp.signatures import Signature
from ..errors import Errors, did_you_mean
from ..plan.autograd import SourceLine
from ..plan.library import OperatorPlan
from ..spec.model import Derivative, Formula
from .reading import QualifiedName, read
from .torch_functions import TorchFunctions

# The namespaces that generated code sees: those of torch's headers, and inside at and torchext's
# derivatives, which formulas are written in.
_KNOWN = (
    "at c10 std torch torchext caffe2 autograd autocast cuda derivatives detail functorch impl "
    "indexing jit meta namedinference native profiler sparse sparse_csr symint tracer vec"
).split()
_KERNEL_NAMESPACES = ("native", "meta")
_HEADERS = "an entry 'headers:' names the header that has it"


def formula_headers(derivatives: Iterable[Derivative]) -> tuple[tuple[str, SourceLine], ...]:
    """The headers that formulas need, each with its place."""
    found: dict[str, SourceLine] = {}
    for line in (line for derivative in derivatives for line in derivative.headers):
        found.setdefault(line.text, SourceLine(line.location.source.name, line.location.line))
    return tuple(found.items())


class CallChecks:
    """Checks the formulas of a library against the functions of its C++ API."""

    def __init__(
        self,
        namespace: str,
        plans: Iterable[OperatorPlan],
        torch_functions: TorchFunctions | None,
        errors: Errors,
    ) -> None:
        self.namespace, self.torch_functions, self.errors = namespace, torch_functions, errors
        self.functions: dict[str, list[Signature]] = {}
        self.operators: dict[str, str] = {}  # by the kernels that they run
        self.without_function: set[str] = set()
        for plan in plans:
            if plan.api is None:
                self.without_function.add(plan.operator.name.base)
                continue
            self.functions.setdefault(plan.api.name, []).append(plan.api.signature)
            for kernel in filter(None, (kernel.function for kernel in plan.kernels)):
                self.operators.setdefault(kernel, f"{namespace}::{plan.api.name}")

    def check(self, derivatives: Iterable[Derivative]) -> None:
        """Every formula of every entry."""
        for derivative in derivatives:
            name = derivative.name.name
            with self.errors.about(name.unqualified):
                for _, formulas in derivative.dispatch:
                    for formula in formulas:
                        self._check_formula(formula, bool(derivative.headers))

    def _check_formula(self, formula: Formula, has_headers: bool) -> None:
        for found in read(formula.text).qualified:
            root = found.namespaces[0]
            if root == self.namespace:
                self._check_own(formula, found, has_headers)
            elif not (has_headers or root in _KNOWN or _is_class(root)):
                hint = did_you_mean(root, [self.namespace, *_KNOWN]) or _HEADERS
                self._note_unknown(formula, found, root, hint)
            elif found.namespaces == ("at",) and found.arguments is not None and not has_headers:
                self._check_torch(formula, found.name, found.offset)
        for call in () if has_headers else read(formula.text).calls:
            self._check_torch(formula, call.text, call.offset)

    def _check_torch(self, formula: Formula, name: str, offset: int) -> None:
        """A function of ATen's or a derivative helper, as far as the installed torch tells."""
        is_type = _is_class(name) or name.endswith("_t")
        if is_type or self.torch_functions is None or self.torch_functions.has(name):
            return
        hint = self.torch_functions.hint(name)
        if name in self.functions:
            hint = f"the operator of the library is '{self.namespace}::{name}'"
        self.errors.add(formula.at(offset), f"there is no function '{name}' in ATen", hint)

    def _note_unknown(self, formula: Formula, found: QualifiedName, space: str, hint: str) -> None:
        what = f"there is no namespace '{space}' in what formulas see"
        self.errors.add(formula.at(found.offset), what, hint)

    def _check_own(self, formula: Formula, found: QualifiedName, has_headers: bool) -> None:
        if len(found.namespaces) > 1:
            self._check_inner(formula, found, has_headers)
            return
        name, given = f"{self.namespace}::{found.name}", self._signatures(found.name)
        if not given and (self.errors.misses_operators or self.errors.concerns_base(found.name)):
            return  # its entry could not be read
        if not given:
            hint = did_you_mean(found.name, self.functions)
            if hint is not None:
                hint = hint.replace("'", f"'{self.namespace}::", 1)
            elif has_headers:
                hint = f"functions of your own stand in another one, as {self.namespace}::formulas"
            what = f"'{name}' is no operator of the library"
            if found.name in self.without_function:
                what, hint = f"the operator '{name}' has no C++ function", None
            self.errors.add(formula.at(found.offset), what, hint)
        elif found.arguments is not None and not any(_takes(s, found.arguments) for s in given):
            plural = "s" * (found.arguments != 1)
            what = f"'{name}' does not take {found.arguments} argument{plural}"
            hint = "it is " + ", or ".join(s.prototype(name, defaults=True) for s in given)
            self.errors.add(formula.at(found.offset), what, hint)

    def _check_inner(self, formula: Formula, found: QualifiedName, has_headers: bool) -> None:
        """A name in a namespace inside the library's own."""
        space = "::".join(found.namespaces)
        if found.namespaces[1] in _KERNEL_NAMESPACES:
            kernel = f"{space}::{found.name}"
            what = f"'{kernel}' is a kernel, through which nothing differentiates"
            own = self.operators.get(kernel)
            hint = f"call the operator, {own}" if own else "call the operator that runs it"
            self.errors.add(formula.at(found.offset), what, hint)
        elif not has_headers:
            self._note_unknown(formula, found, space, _HEADERS)

    def _signatures(self, name: str) -> list[Signature]:
        return self.functions.get(name, []) or self.functions.get(name.removesuffix("_symint"), [])


def _is_class(name: str) -> bool:
    """Whether a name is spelled as classes are."""
    return name[:1].isupper() and not name.isupper()


def _takes(signature: Signature, count: int) -> bool:
    needed = sum(parameter.default is None for parameter in signature.parameters)
    return needed <= count <= len(signature.parameters)
