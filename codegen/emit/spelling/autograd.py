# SPDX-License-Identifier: BSD-3-Clause
"""The kernel of an operator with formulas: records its node, calls it, and computes tangents."""

from __future__ import annotations

from collections.abc import Iterator

from ...cpp.signatures import Signature
from ...cpp.template import fill
from ...output import RESTORE_LINE, line_of
from ...plan.autograd import (
    EdgeTo,
    Recording,
    ResultPlan,
    SavedFrom,
    SaveStep,
    TangentPlan,
    Tensors,
)
from ...plan.library import OperatorPlan
from .lists import given, list_lines
from .tangents import if_any_flag, set_tangents, tangent_block, trigger

_KERNEL = """
// $location: $schema
$result $function($parameters) {
$lists
$tangent_refusals
$refusals
$conditions
  const bool records = $records;
$checks
$originals
  const auto node = recorded_node<$node>($recorded);
$saved
$asides
$call
$backs
$fresh
$history
$tangents
$outputs
$returned
}

"""


_EDGES = {
    EdgeTo.ARGUMENT: "{}",
    EdgeTo.VIEW: "only_view({})",
    EdgeTo.NOWHERE: "at::Tensor()",
}


def kernel(namespace: str, op: OperatorPlan, key: str, recording: Recording) -> str:
    """The kernel of the operator for the key, by whose formulas the plan is."""
    node, signature = recording.node, op.signature
    refused, asides = recording.refused, recording.overwritten.asides
    assert signature is not None  # analysis refuses formulas otherwise
    name = f"{namespace}::{op.operator.name}"
    lists = [edge for edge in node.edges if edge.is_list]
    taken = given(signature, op.repeated)
    return fill(
        _KERNEL,
        location=node.spec_line,
        schema=op.schema,
        result=signature.result,
        function=f"{key.lower()}_{op.handle}",
        parameters=["c10::DispatchKeySet keys", *(p.declaration for p in taken.parameters)],
        lists=list(list_lines(signature, op.repeated)),
        tangent_refusals=[_check("check_no_tangent", name, a) for a in refused.without_tangent],
        refusals=[_check("check_no_requires_grad", name, a) for a in refused.without_formula],
        conditions=[line for r in recording.results for line in _condition(r)],
        records=_records(recording),
        checks=list(_write_checks(name, recording)),
        originals=list(_originals(recording)),
        node=node.name,
        recorded=["records", *(_EDGES[to].format(name) for name, to in recording.edges)],
        saved=_if_node(
            *(f"    node->{e.argument}_size = {e.parameter}.size();" for e in lists),
            *map(_save, recording.saves),
        ),
        asides=[
            f"  Aside<{p.type}> {p.name}_aside({p.name}, records);"
            for p in signature.parameters
            if p.name in asides
        ],
        call=list(_call(op, recording)),
        backs=[f"  {name}_aside.copy_back();" for name in asides],
        fresh=list(_new_checks(name, recording)),
        history=[
            *_history(recording),
            *_if_node(*(f'    check_not_complex("{name}", {r});' for r in refused.complex)),
        ],
        tangents=_tangents(recording.tangents),
        # after the tangents are set, so that what is unpacked has them
        outputs=_if_node(*map(_save, recording.saves_after)),
        returned=_returned(signature, recording.results),
    )


def _tangents(tangents: tuple[TangentPlan, ...]) -> list[str]:
    """All are computed before the first is set."""
    blocks = [tangent_block(tangent) for tangent in tangents]
    return [*blocks, *(line for tangent in tangents for line in set_tangents(tangent))]


def _new_checks(name: str, recording: Recording) -> Iterator[str]:
    """Whatever is recorded: a traced call, which records nothing, takes new results as its own."""
    new = [r for r in recording.results if r.is_new]
    function = "check_no_argument" if recording.may_share else "check_new"
    for result in new:
        check = f'{function}("{name}", {", ".join([result.local, *recording.tensors])});'
        if result.is_optional:
            yield f"  if (!has_tensor({result.written})) {{\n    {check}\n  }}"
        else:
            yield f"  {check}"
    if len(new) > 1 or any(r.is_list for r in new):
        function = "check_no_twins" if recording.may_share else "check_apart"
        yield f'  {function}("{name}", {", ".join(r.local for r in new)});'


def _condition(result: ResultPlan) -> list[str]:
    condition = result.condition
    if condition is None:
        return []
    value = f"      {condition.expression};"
    return [f"  const bool {result.flag} =", line_of(condition.line), value, RESTORE_LINE]


def _write_checks(name: str, recording: Recording) -> Iterator[str]:
    for result in recording.results:
        if result.written and result.is_differentiable:
            if result.is_out:
                tangent = f"has_tangent({', '.join(recording.watched)})"
                yield f'  check_out("{name}", {result.written}, records, {tangent});'
            elif result.is_optional:
                yield f"  check_inplace({result.written}, records);"
            else:
                yield f"  torch::autograd::check_inplace({result.written}, records);"
    for written in recording.refused.views:
        yield f'  check_no_view("{name}", "{written}", {written}, records);'
    if recording.refused.shared:
        recorded = f"records || has_tangent({', '.join(recording.watched)})"
        names = ", ".join(f'"{parameter}"' for parameter in recording.refused.shared)
        tensors = ", ".join(recording.refused.shared)
        yield f'  check_written_apart("{name}", {recorded}, {{{names}}}, {tensors});'


def _check(function: str, name: str, item: Tensors) -> str:
    return f'  {function}("{name}", "{item.name}", {item.parameter});'


def _call(op: OperatorPlan, recording: Recording) -> Iterator[str]:
    """The call below autograd. What it writes to are arguments, whatever it returns for them."""
    assert op.signature is not None
    names = [r.local for r in recording.results]
    if not names or all(r.is_argument for r in recording.results):
        results = ""
    elif len(names) == 1:
        results = f"auto {names[0]} = "
    else:
        names = [f"{n}_written" if r.is_argument else n for n, r in zip(names, recording.results)]
        results = f"auto [{', '.join(names)}] = "
    function = "below_autograd" if recording.has_aliases else "below_adinplace_or_view"
    arguments = ", ".join(["keys", *(_passed(p.name, recording) for p in op.signature.parameters)])
    yield f"  {results}{function}<operators::{op.handle}>({arguments});"
    for result in recording.results:
        if result.is_optional:
            yield f"  {result.local} = given_or({result.written}, {result.local});"


def _passed(parameter: str, recording: Recording) -> str:
    return (
        f"{parameter}_aside.written()" if parameter in recording.overwritten.asides else parameter
    )


def _returned(signature: Signature, results: tuple[ResultPlan, ...]) -> list[str]:
    if len(results) < 2:
        return [f"  return {result.local};" for result in results]
    values = (r.local if r.is_argument else f"::std::move({r.local})" for r in results)
    return [f"  return {signature.result}({', '.join(values)});"]


def _originals(recording: Recording) -> Iterator[str]:
    """Copies of what is written to: made when first asked for, or at once for a tangent; and of
    what a tangent reads, if it is written to as a part of that."""
    for parameter in recording.overwritten.read:
        needed = f"has_tangent({', '.join(recording.watched)})"
        given_ = ", ".join([needed, parameter, *recording.overwritten.parameters])
        yield f"  const auto {parameter}_before = before_write({given_});"
    for parameter in recording.overwritten.originals:
        yield f"  ::std::optional<at::Tensor> original_{parameter};"
    for tangent in recording.tangents:
        for item in tangent.inputs:
            if item.is_original:
                parameter = item.parameter.removeprefix("original_")
                yield f"  if ({trigger(tangent)}) {{"
                yield f"    kept({item.parameter}, {parameter});"
                yield "  }"


def _save(item: SaveStep) -> str:
    line = f"    node->{item.member} = {_saved(item)};"
    needed = " || ".join(f"node->should_compute_output({i})" for i in item.edges)
    return f"    if ({needed}) {{\n  {line}\n    }}" if needed else line


def _saved(item: SaveStep) -> str:
    """What a member of a node is given."""
    source = item.source
    match item.origin:
        case SavedFrom.VALUE:
            return item.value.replace("{}", source)
        case SavedFrom.ASIDE if item.given:
            return f"save(given_or({item.given}_aside.written(), {source}))"
        case SavedFrom.ASIDE:
            return f"save({source}_aside.written())"
        case SavedFrom.RESULT:
            return f"save({source}, true)"
        case SavedFrom.WRITTEN:
            return f"save_written({f'{item.given}, ' if item.given else ''}{source})"
        case SavedFrom.ORIGINAL:
            return f"save(kept(original_{source}, {source}))"
    return f"save({source})"


def _records(recording: Recording) -> str:
    """The condition under which the node is recorded."""
    flow = [result for result in recording.results if result.is_differentiable]
    return if_any_flag(flow, f"any_requires_grad({', '.join(recording.watched)})")


def _if_node(*statements: str) -> list[str]:
    """Statements that run where a node is recorded."""
    return ["  if (node) {", *statements, "  }"] if statements else []


def _history(recording: Recording) -> Iterator[str]:
    for result in recording.results:
        if result.is_differentiable:
            # what is made a view of itself has the memory of its base still, and no new value
            keeps = result.written is None or result.is_inplace_view
            function = "set_result_history" if keeps else "rebase_result_history"
            flag = f", {result.flag}" if result.condition else ""
            given = f"{result.written}, " if result.is_optional else ""
            yield f"  {function}({given}{result.local}, node{flag});"
