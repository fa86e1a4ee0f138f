# SPDX-License-Identifier: BSD-3-Clause
"""What the formulas of one operator may name: its arguments, its results and their gradients.

Names of results are upstream's (torchgen/api/cpp.py): their own, `result`, or `result0`, ...
"""

from __future__ import annotations

from ..cpp import names as cpp_names
from ..cpp import types as cpp_types
from ..errors import Errors
from ..plan.autograd import Condition, ResultPlan, SourceLine
from ..schema.schema import Argument, Type
from ..spec.model import Derivative, Flag, Formula, Operator
from .reading import read

DIFFERENTIABLE_TYPES = ("Tensor", "Tensor?", "Tensor[]", "Tensor?[]")


class FormulaScope:
    """The names that formulas see, for one operator and the formulas of one autograd key."""

    def __init__(
        self,
        namespace: str,
        operator: Operator,
        derivative: Derivative,
        formulas: tuple[Formula, ...],
        errors: Errors,
        result_names: tuple[str, ...] = (),
    ) -> None:
        self.namespace, self.errors = namespace, errors
        self.operator, self.derivative = operator, derivative
        self.func = operator.func
        self.arguments: dict[str, Argument] = {a.name: a for a in self.func.arguments}
        self.results = self._results(self._flags(formulas), result_names)
        self.by_result = {r.name: r for r in self.results}
        self.types: dict[str, Type] = {a.name: a.type for a in self.func.arguments}
        self.types |= {r.name: given.type for r, given in zip(self.results, self.func.returns)}
        flow = [r for r in self.results if r.is_differentiable]
        self.flow = tuple(flow)
        self.named_grads = {f"grad_{r.name}": i for i, r in enumerate(flow)}

    def is_result(self, name: str) -> bool:
        """Whether a formula of this name gives a tangent."""
        return name in self.by_result and name not in self.arguments

    def is_elementwise(self, text: str) -> bool:
        """Whether a formula is for the i-th element of lists: `i` is nothing else that it knows."""
        if not any(r.is_list for r in self.flow):
            return False
        reading = read(text)
        return "i" in reading.names - reading.local - self.types.keys()

    def grads_in(self, text: str) -> set[int]:
        """The differentiable results, by their numbers, whose gradients a formula names."""
        reading = read(text)
        found = {index for name, index in self.named_grads.items() if name in reading.names}
        found |= {0} if "grad" in reading.names else set()
        numbers = [int(index) for index, _ in reading.grads if index.isdigit()]
        is_whole = reading.count("grads") > len(numbers) or any(r.is_list for r in self.flow)
        if "grads" in reading.names and is_whole:
            return set(range(len(self.flow)))
        return found | {number for number in numbers if number < len(self.flow)}

    def parameter(self, name: str) -> str:
        """What an argument or result is called in the kernel."""
        result = self.by_result.get(name)
        if result is not None and name not in self.arguments:
            return result.local
        return cpp_names.parameter_name(name)

    def _flags(self, formulas: tuple[Formula, ...]) -> tuple[Flag, ...]:
        """For each result whether it can require grad; only the first where formulas say `grad`."""
        returns, flags = self.func.returns, self.derivative.output_differentiability
        if flags is not None and len(flags) != len(returns):
            message = (
                f"'output_differentiability' has {len(flags)} items for {len(returns)} results"
            )
            self.errors.add(self.derivative.location, message)
            flags = None
        if flags is not None:
            return flags
        found = ["True" if r.type.is_tensor_like else "False" for r in returns]
        arguments = {a.name for a in self.func.arguments}
        gradients = [f.text for f in formulas if set(f.names) <= arguments]
        if "True" in found and any("grad" in read(text).names for text in gradients):
            first = found.index("True")
            found = ["True" if i == first else "False" for i in range(len(found))]
        return tuple(Flag(text, self.derivative.location) for text in found)

    def _results(self, flags: tuple[Flag, ...], names: tuple[str, ...]) -> tuple[ResultPlan, ...]:
        """Name, type and differentiability of each result; names are those of an entry's own
        operator where the formulas are inherited."""
        found = []
        both = zip(self.func.returns, self.func.written_results, flags)
        for index, (result, argument, flag) in enumerate(both):
            name = result.name or ("result" if len(flags) == 1 else f"result{index}")
            name = names[index] if names else name
            if name in self.arguments:
                name += "_return"
            written = cpp_names.parameter_name(argument.name) if argument else None
            is_optional = argument is not None and argument.type.name == "Optional"
            found.append(
                ResultPlan(
                    name,
                    cpp_names.parameter_name(name) if is_optional or not written else written,
                    cpp_types.result_type(result.type) or "at::Tensor",
                    flag.text != "False" and result.type.is_tensor_like,
                    result.type.name == "List",
                    written,
                    is_optional,
                    is_optional and argument.is_kwarg_only,
                    result.type.is_alias and not result.type.is_write,
                    self.operator.is_inplace_view and written is not None,
                    self._condition(flag) if flag.is_condition else None,
                    result.type.is_tensor_like,
                )
            )
        return tuple(found)

    def _condition(self, flag: Flag) -> Condition:
        """A condition over arguments, as the autograd kernel spells them."""
        names = {name: cpp_names.parameter_name(name) for name in self.arguments}
        line = SourceLine(flag.location.source.name, flag.location.line)
        text = read(flag.text).renamed(names)
        return Condition(read(text).rooted(self.namespace), line)
