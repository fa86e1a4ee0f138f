# SPDX-License-Identifier: BSD-3-Clause
"""The kernel on an autograd key: what it checks, saves before and after, records and computes.

One entry serves its own operator and the in-place forms that inherit it; what they save differs,
because a tensor that is written to has to be copied first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..cpp import names as cpp_names
from ..formula.scope import FormulaScope
from ..plan.autograd import (
    EdgeTo,
    NodePlan,
    Overwritten,
    Recording,
    Refused,
    SavedFrom,
    SavedKind,
    SavedPlan,
    SaveStep,
    TangentPlan,
    Tensors,
    Unrecorded,
)
from ..schema.schema import Argument
from ..spec.model import Operator
from .nodes import NodeAnalysis
from .tangents import TangentAnalysis

# Operators of a backward take the result of the forward operator beside its input, and their
# formulas are in terms of the input alone; upstream exempts the argument by this name.
_FORWARD_RESULT, _BACKWARD = "output", "backward"
# The tag of operators that torch's own ones have it for.
_MAY_SHARE = "maybe_aliasing_or_mutating"
_NO_GRADIENT = "a tangent without a gradient: no argument is differentiable"


def kernel_plan(
    namespace: str, operator: Operator, entry: NodeAnalysis, node_name: str | None
) -> Recording | Unrecorded:
    """The plan for one operator that an entry's formulas differentiate; errors are noted."""
    scope, errors = entry.scope, entry.errors
    owns = scope.operator is operator
    if not owns:
        formulas = (*entry.backward, *entry.forward)
        names = tuple(r.name for r in entry.scope.results)
        scope = FormulaScope(namespace, operator, entry.derivative, formulas, errors, names)
    _check_written(scope, entry)
    if entry.forward and not entry.with_gradient:
        errors.add(entry.forward[0].location, _NO_GRADIENT)
    if node_name is None or not scope.flow:
        return (
            Unrecorded.NOT_IMPLEMENTED
            if scope.flow and _undeclared(scope, entry)
            else Unrecorded.IGNORED
        )
    node = entry.node(node_name)
    handle = cpp_names.handle_name(operator.name.identifier)
    analysis = TangentAnalysis(namespace, handle, scope, entry, errors)
    tangents = analysis.plan()
    _check_locals(scope, entry, node, tangents)
    return Recording(
        node=node,
        owns_node=owns,
        tensors=_tensor_parameters(scope),
        may_share=_MAY_SHARE in operator.tags,
        has_aliases=operator.func.has_aliases,
        results=scope.results,
        edges=_edges(scope, entry, node),
        watched=_watched(scope, entry),
        saves=tuple(_saves(scope, node, after=False)),
        saves_after=tuple(_saves(scope, node, after=True)),
        tangents=tangents,
        refused=_refused(scope, entry, tangents),
        overwritten=Overwritten(
            parameters=tuple(scope.parameter(a.name) for a in operator.func.mutated),
            originals=_originals(scope, node, tangents),
            asides=_asides(scope, node),
            read=tuple(sorted(analysis.reads)),
        ),
        calls=analysis.calls(),
    )


def _refused(
    scope: FormulaScope, entry: NodeAnalysis, tangents: tuple[TangentPlan, ...]
) -> Refused:
    """With what a call that records is refused."""
    operator, undeclared = scope.operator, _undeclared(scope, entry)
    return Refused(
        without_formula=_tensors(a for a in undeclared if not _is_exempt(operator, a)),
        without_tangent=_tensors(undeclared if tangents else _without_tangent(scope, entry)),
        views=tuple(r.written for r in scope.flow if r.written and len(scope.flow) > 1),
        shared=_written_apart(scope),
        complex=() if operator.complex_autograd else _new_tensors(scope),
    )


def _watched(scope: FormulaScope, entry: NodeAnalysis) -> tuple[str, ...]:
    """The parameters of which one must require grad for the node to be recorded: those with a
    gradient, and those that are overwritten, whose history ends."""
    edges = [scope.parameter(name) for name in entry.with_gradient]
    return tuple(dict.fromkeys([*edges, *(r.written for r in scope.flow if r.written)]))


def _edges(
    scope: FormulaScope, entry: NodeAnalysis, node: NodePlan
) -> tuple[tuple[str, EdgeTo], ...]:
    """Where the node's gradients go. One that it has for in-place forms alone goes nowhere here."""
    written = {r.written for r in scope.flow}
    found = []
    for edge in node.edges:
        lost = EdgeTo.VIEW if edge.parameter in written else EdgeTo.NOWHERE
        to = EdgeTo.ARGUMENT if edge.argument in entry.with_gradient else lost
        found.append((edge.parameter, to))
    return tuple(found)


def _undeclared(scope: FormulaScope, entry: NodeAnalysis) -> list[Argument]:
    """The tensors that no formula gives a gradient: neither they nor what overwrites them may
    require one."""
    return [
        a
        for a in scope.func.arguments
        if a.type.is_tensor_like
        and (
            a.name not in entry.gradients
            or (a.name in entry.non_differentiable and _loses_history(scope, a.name))
        )
    ]


def _without_tangent(scope: FormulaScope, entry: NodeAnalysis) -> list[Argument]:
    """The tensors that must not have a tangent where no formula gives the results theirs."""
    harmless = {n for n in entry.non_differentiable if not _loses_history(scope, n)}
    return [a for a in scope.func.arguments if a.type.is_tensor_like and a.name not in harmless]


def _tensor_parameters(scope: FormulaScope) -> tuple[str, ...]:
    """The parameters that no new result may be."""
    arguments = scope.func.arguments
    return tuple(scope.parameter(a.name) for a in arguments if a.type.is_tensor_like)


def _new_tensors(scope: FormulaScope) -> tuple[str, ...]:
    """The differentiable results that are no arguments, as upstream checks these only."""
    return tuple(r.local for r in scope.flow if not r.is_argument and not r.is_list)


def _is_exempt(operator: Operator, argument: Argument) -> bool:
    return argument.name == _FORWARD_RESULT and _BACKWARD in operator.func.name.base


def _check_locals(
    scope: FormulaScope, entry: NodeAnalysis, node: NodePlan, tangents: tuple[TangentPlan, ...]
) -> None:
    """The variables of a kernel and the members of a node must not be called like arguments."""
    names = {tangent.name for tangent in tangents}
    for item in (item for tangent in tangents for item in tangent.inputs):
        names |= {f"{item.name}_t", f"{item.name}_p", f"{item.name}_t_raw"}
    names |= {f"original_{scope.parameter(a.name)}" for a in scope.func.mutated}
    names |= {f"{scope.parameter(a.name)}_aside" for a in scope.func.mutated}
    names |= {f"{scope.parameter(a.name)}_before" for a in scope.func.arguments}
    names |= {f"{edge.argument}_size" for edge in node.edges if edge.is_list}
    names |= {result.flag for result in scope.results if result.condition}
    for name in sorted(names & {*scope.arguments, *scope.by_result}):
        message = f"an argument or result of '{scope.operator.name}' cannot be called '{name}'"
        hint = "what its formulas read of another argument or of a result has that name"
        scope.errors.add(entry.derivative.location, message, hint)


def _check_written(scope: FormulaScope, entry: NodeAnalysis) -> None:
    """A tensor that is written to but not returned has no gradient that a formula could read."""
    for arg in scope.func.mutated:
        is_aside = _is_written_aside(scope, arg.name)
        loses = is_aside or (scope.flow and _loses_history(scope, arg.name))
        if arg.name in entry.with_gradient and loses:
            why = "not returned" if is_aside else "its result is not differentiable"
            message = f"'{arg.name}' is written to and {why}: it cannot have a gradient"
            hint = "return it, as in `-> Tensor(a!)`" if is_aside else None
            if arg.type.name == "List":
                message = f"the list '{arg.name}' is written to: it cannot have a gradient"
                hint = None
            scope.errors.add(entry.derivative.location, message, hint)


def _loses_history(scope: FormulaScope, name: str) -> bool:
    """Whether an argument is overwritten and is no differentiable result, so that no node can
    become its history."""
    arg = scope.arguments.get(name)
    flow = {r.written for r in scope.flow}
    return arg is not None and arg.type.is_write and scope.parameter(name) not in flow


def _is_written_aside(scope: FormulaScope, name: str) -> bool:
    """Whether an argument is written to but is no result: formulas see what was written."""
    arg = scope.arguments.get(name)
    returned = {r.written for r in scope.results}
    return arg is not None and arg.type.is_write and scope.parameter(name) not in returned


def _is_saved_aside(scope: FormulaScope, saved: SavedPlan) -> bool:
    """Whether backward reads what was written to an argument that no gradient flows to."""
    if saved.kind is SavedKind.VALUE:
        return False
    result = scope.by_result.get(saved.source) if saved.is_output else None
    if result is not None:
        return result.written is not None and not result.is_differentiable
    return _is_written_aside(scope, saved.source)


def _save(scope: FormulaScope, saved: SavedPlan) -> SaveStep:
    """How a node's member gets its value in the kernel of this operator."""
    source, given = scope.parameter(saved.source), None
    arg = scope.arguments.get(saved.source)
    result = scope.by_result.get(saved.source) if saved.is_output else None
    if saved.kind is SavedKind.VALUE:
        origin = SavedFrom.VALUE
    elif _is_saved_aside(scope, saved):
        origin = SavedFrom.ASIDE
        if result is not None and result.is_optional:
            given = _aside(scope, saved)
        else:
            source = _aside(scope, saved)
    elif result is not None:
        origin = SavedFrom.WRITTEN if result.written else SavedFrom.RESULT
        given = result.written if result.is_optional else None
    else:
        is_written = arg is not None and arg.type.is_write
        origin = SavedFrom.ORIGINAL if is_written else SavedFrom.ARGUMENT
    return SaveStep(saved.member, origin, source, saved.edges, saved.value, given)


def _saves(scope: FormulaScope, node: NodePlan, after: bool) -> Iterator[SaveStep]:
    """What is saved before the kernel runs, or after it."""
    for saved in node.saved:
        if after == (saved.is_output or _is_written_aside(scope, saved.source)):
            yield _save(scope, saved)


def _originals(
    scope: FormulaScope, node: NodePlan, tangents: tuple[TangentPlan, ...]
) -> tuple[str, ...]:
    """The written parameters whose value before the call may be needed after it."""
    whole = {s.source for s in node.saved if s.kind is not SavedKind.VALUE and not s.is_output}
    read = {i.parameter for t in tangents for i in t.inputs if i.is_original}
    found = []
    for arg in scope.func.mutated:
        parameter = scope.parameter(arg.name)
        if _is_written_aside(scope, arg.name):
            continue
        if arg.name in whole or f"original_{parameter}" in read:
            found.append(parameter)
    return tuple(found)


def _written_apart(scope: FormulaScope) -> tuple[str, ...]:
    """What is written to where a formula takes each for the only one; an out= form has none."""
    written = [a for a in scope.func.mutated if a.type.bare().plain in ("Tensor", "Tensor?")]
    is_asked = len(written) > 1 and scope.flow and not scope.func.is_out
    return tuple(scope.parameter(a.name) for a in written) if is_asked else ()


def _asides(scope: FormulaScope, node: NodePlan) -> tuple[str, ...]:
    """The written parameters that backward reads and no gradient flows to."""
    saved = (s for s in node.saved if _is_saved_aside(scope, s))
    return tuple(dict.fromkeys(_aside(scope, s) for s in saved))


def _aside(scope: FormulaScope, saved: SavedPlan) -> str:
    """The parameter that is written to, whether a result is named or the argument."""
    result = scope.by_result.get(saved.source) if saved.is_output else None
    return scope.parameter(saved.source) if result is None else str(result.written)


def _tensors(arguments: Iterable[Argument]) -> tuple[Tensors, ...]:
    return tuple(Tensors(a.name, cpp_names.parameter_name(a.name)) for a in arguments)
