# SPDX-License-Identifier: BSD-3-Clause
"""Operators and derivatives to a Plan: names, groups and shards, and what the other analyses say.

Reads model records, notes in Errors what concerns several entries or the C++ they become, and
returns values. Kernels are decided on in ``kernels``, structured operators in ``structured``, what
a backward node saves and computes in ``differentiation``.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Iterable, Mapping

from ..cpp import names as cpp_names
from ..errors import Errors
from ..formula.calls import CallChecks, formula_headers
from ..formula.helper_topics import Topic, needed_topics
from ..formula.reading import read
from ..formula.torch_functions import TorchFunctions
from ..fused.entries import Expressions
from ..fused.operators import lowered
from ..plan.fused import FusedPlan
from ..plan.kernels import KernelPlan
from ..plan.library import BatchingRule, OperatorPlan, Plan
from ..schema.schema import OperatorName
from ..spec.model import Derivative, Operator
from .api_names import with_api
from .argument_checks import repeated_numbers
from .batching import batching_rule, rows_rule, served
from .differentiation import AutogradAnalysis, is_ignored
from .form_tags import FormTags
from .forms import Forms
from .functional_forms import FunctionalForms
from .fused import fused_plan
from .generated_operators import operators_beside, with_variants
from .kernels import falls_back, kernels_of, speaking
from .layouts import layout_tags
from .overrides import own_derivatives, plan_override
from .rule_calls import rule_plan
from .samples import SampleAnalysis
from .signatures import signature_of
from .structured import Group, StructuredAnalysis
from .wrappers import wrappers_of

# Namespaces inside a library's own: no function can have these names.
_KERNEL_NAMESPACES = ("meta", "native")
# Parsing torch's headers takes most of the time of a shard with fewer entries.
_OPERATORS_PER_SHARD = 64
_MOST_SHARDS = 64
# Names that a library's namespace would hide or clash with in generated code.
RESERVED_NAMESPACES = "at aten c10 caffe2 native prim prims std torch torchext".split()


def plan_library(
    namespace: str,
    specs: tuple[str, ...],
    operators: Iterable[Operator],
    derivatives: Iterable[Derivative],
    errors: Errors,
    topics: Iterable[Topic] = (),
    torch_functions: TorchFunctions | None = None,
) -> Plan:
    """The plan of a library; mistakes are noted and the entries that have them are left out."""
    entries = lowered(namespace, list(operators), list(derivatives), errors)
    declared = with_variants(entries.operators, errors)
    own = [op for op in declared if not op.is_override]
    formulas = own_derivatives(entries.derivatives, errors)
    analyses = _OwnOperators(namespace, own, formulas, entries.expressions, errors)
    everything = [*declared, *analyses.beside]
    shards = _shard_count(len(everything))
    plans = []
    for operator in everything:
        group = _group(operator.origin if operator.beside else operator)
        shard = zlib.crc32(group.encode()) % shards
        with errors.about(str(operator.name)):
            if operator.is_override:
                plans.append(plan_override(namespace, operator, group, shard, errors))
            else:
                plans.append(analyses.plan(operator, group, shard))
    _check_namespace(namespace, own, errors)
    _check_handles(plans, errors)
    _check_parameters(plans, errors)
    headers = formula_headers(formulas)
    plans = with_api(_with_wrappers(_with_casts(plans)))
    fused_parts = _shard_count(sum(plan.fused is not None for plan in plans))
    plan = Plan(namespace, specs, shards, fused_parts, tuple(plans), headers)
    CallChecks(namespace, plan.operators, torch_functions, errors).check(formulas)
    called = set().union(*(read(formula).functions for formula in plan.formulas()))
    return dataclasses.replace(plan, helper_topics=needed_topics(topics, called))


class _OwnOperators:
    """What the other analyses say of the operators that the library defines."""

    def __init__(
        self,
        namespace: str,
        operators: list[Operator],
        derivatives: list[Derivative],
        expressions: Mapping[OperatorName, Expressions],
        errors: Errors,
    ) -> None:
        self.namespace, self.expressions, self.errors = namespace, expressions, errors
        self.functional = forms = FunctionalForms(operators, errors)
        self.form_tags = FormTags(operators, errors)
        self.autograd = AutogradAnalysis(namespace, operators, derivatives, forms, errors)
        self.beside = tuple(operators_beside(operators, forms, self.autograd.saves_written))
        operators = [*operators, *self.beside]
        self.has_private = any(operator.name.is_private for operator in operators)
        self.structured = StructuredAnalysis(namespace, operators, errors)
        self.forms = Forms(forms, operators)
        self.samples = SampleAnalysis(operators, forms, errors)

    def plan(self, operator: Operator, group: str, shard: int) -> OperatorPlan:
        """The plan of one of them."""
        structured = self.structured.group(operator)
        kernels = kernels_of(self.namespace, operator, structured, self.forms, self.errors)
        if self.has_private and not operator.name.is_private:
            kernels = speaking(kernels)
        autograd = self.autograd.kernels(operator)
        return OperatorPlan(
            operator=operator,
            group=group,
            shard=shard,
            tags=self._tags(operator, kernels),
            handle=cpp_names.handle_name(operator.name.identifier),
            signature=signature_of(operator),
            repeated=tuple(repeated_numbers(operator)),
            kernels=kernels,
            autograd=autograd,
            tracked=self.autograd.tracked(operator, autograd),
            structured=self.structured.plan(operator),
            rule=rule_plan(self.namespace, operator, self.errors),
            fused=self._fused(operator, kernels),
            traced=self.forms.traced(operator),
            traced_view=self.forms.traced_view(operator),
            batching=self._batching(operator, structured, kernels, is_ignored(autograd)),
            form_of=self.forms.compared_with(operator),
            samples=self.samples.samples(operator),
        )

    def _fused(self, operator: Operator, kernels: Iterable[KernelPlan]) -> FusedPlan | None:
        """The expressions that are the operator's kernels."""
        found = self.expressions.get(operator.name)
        if found is None:
            return None
        form = found.operator.name.identifier
        return fused_plan(found, kernels, self.structured.plan(operator), form)

    def _tags(self, operator: Operator, kernels: Iterable[KernelPlan]) -> tuple[str, ...]:
        """Those of the entry, that of its form, and what follows from its other keys."""
        tags = dict.fromkeys(operator.tags)
        if form := self.form_tags.tag(operator):
            tags.setdefault(form)
        tags.update(dict.fromkeys(layout_tags(operator)))
        called = (self.functional.of(operator), operator.origin)
        if falls_back("CUDA", kernels, called):
            tags.setdefault("cudagraph_unsafe")  # its copies wait for the stream
        if operator.pt2_compliant:
            tags.setdefault("pt2_compliant_tag")
        return tuple(tags)

    def _batching(
        self,
        operator: Operator,
        group: Group | None,
        kernels: Iterable[KernelPlan],
        is_constant: bool,
    ) -> BatchingRule | None:
        """How the operator serves a batch of torch.vmap."""
        rule = batching_rule(operator, group, self.forms.batched(operator), self.errors)
        source = operator.origin.name if operator.origin else operator.name
        if not operator.func.is_out and (expressions := self.expressions.get(source)) is not None:
            rule = rows_rule(expressions) or rule
        forms = (operator, operator.origin, self.functional.of(operator))
        draws = any(form.draws_numbers for form in forms if form)
        keys = {kernel.key for kernel in kernels}
        return served(operator, rule, keys, draws, is_constant)


def _shard_count(operators: int) -> int:
    """A power of two, so that few operators move to another shard when it grows."""
    wanted = max(1, math.ceil(operators / _OPERATORS_PER_SHARD))
    return min(_MOST_SHARDS, 1 << (wanted - 1).bit_length())


def _group(operator: Operator) -> str:
    """`mul` for mul, mul_ and mul.out: a lower-case file name."""
    base = operator.func.name.base
    return (base if base.startswith("__") else base.rstrip("_") or base).lower()


def _check_namespace(namespace: str, operators: list[Operator], errors: Errors) -> None:
    for operator in operators:
        own = operator.func.name.namespace
        if own and own != namespace:
            message = f"operator of namespace '{own}' in a library for namespace '{namespace}'"
            with errors.about(str(operator.name)):
                errors.add(operator.location, message)
        if operator.func.name.base in _KERNEL_NAMESPACES and not operator.origin:
            message = f"an operator cannot be called '{operator.func.name.base}'"
            with errors.about(str(operator.name)):
                errors.add(operator.location, message, "the kernels' C++ namespace has this name")


def _check_parameters(plans: list[OperatorPlan], errors: Errors) -> None:
    """`default` and `default_` would both be the C++ parameter `default_`, torch.compile passes a
    keyword argument to methods in Python, whose `self` is another, and the dispatcher does not look
    into a list that may be missing."""
    for plan in plans:
        for argument in plan.operator.func.mutated:
            if argument.type.bare().plain == "Tensor[]?":
                with errors.about(str(plan.operator.name)):
                    message = f"'{argument.name}' is a list that may be missing and is written to"
                    hint = "torch would not see what is written; take 'Tensor(a!)[]', empty if none"
                    errors.add(plan.operator.location, message, hint)
        if any(a.is_kwarg_only and a.name == "self" for a in plan.operator.func.arguments):
            with errors.about(str(plan.operator.name)):
                message = "an argument that is passed by name cannot be called 'self'"
                hint = "torch.compile could not trace it; let it stand before the '*'"
                errors.add(plan.operator.location, message, hint)
        names = [p.name for p in plan.signature.parameters] if plan.signature else []
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            with errors.about(str(plan.operator.name)):
                message = f"two arguments of '{plan.operator.name}' would be '{twice}' in C++"
                errors.add(plan.operator.location, message)


def _check_handles(plans: list[OperatorPlan], errors: Errors) -> None:
    """`a.b` and `a_b` would both be the C++ handle `a_b`."""
    seen: dict[str, OperatorPlan] = {}
    for plan in plans:
        first = seen.setdefault(plan.handle, plan)
        if first is not plan:
            message = f"'{plan.operator.name}' has the C++ name of '{first.operator.name}'"
            hint = (
                f"both are '{plan.handle}'; that one stands on line {first.operator.location.line}"
            )
            with errors.about(str(plan.operator.name)):
                errors.add(plan.operator.location, message, hint)


def _with_casts(plans: list[OperatorPlan]) -> list[OperatorPlan]:
    """Mark the kernels whose name alone does not tell which C++ overload is meant."""
    types: dict[str, set[str]] = {}
    for kernel in (kernel for plan in plans for kernel in plan.kernels):
        if kernel.declared and kernel.function:
            types.setdefault(kernel.function, set()).add(kernel.declared.type)
    overloaded = {name for name, found in types.items() if len(found) > 1}

    def marked(kernel: KernelPlan) -> KernelPlan:
        if kernel.function not in overloaded:
            return kernel
        runs = dataclasses.replace(kernel.runs, is_overloaded=True)
        return dataclasses.replace(kernel, runs=runs)

    return [dataclasses.replace(p, kernels=tuple(map(marked, p.kernels))) for p in plans]


def _with_wrappers(plans: list[OperatorPlan]) -> list[OperatorPlan]:
    return [dataclasses.replace(p, wrappers=wrappers_of(p.handle, p.kernels)) for p in plans]
