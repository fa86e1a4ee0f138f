# SPDX-License-Identifier: BSD-3-Clause
"""The text of forward mode inside an autograd kernel: reads a TangentPlan, returns C++."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...cpp.template import fill
from ...output import RESTORE_LINE, line_of
from ...plan.autograd import ResultPlan, TangentInput, TangentPlan
from .gradients import element_checks

_TANGENT = """
  $type $name;
  if ($condition) {
$inputs
$line
    $name = $formula;
$restore
    $cleared
    $apart
  }
"""

_ELEMENTS = """
  variable_list $name($result.size());
$lists
  for (size_t i = 0; i < $result.size(); ++i) {
    if ($condition) {
$inputs
$line
      $name[i] = $formula;
$restore
      $apart
    }
  }
"""


def tangent_block(tangent: TangentPlan) -> str:
    """The computation of the tangents, before any of them is set."""
    each = tangent.is_elementwise
    inputs = [f"{'  ' * each}    {line}" for i in tangent.inputs for line in _input(i)]
    inputs += [f"    {name} = unshared({name});" for name in tangent.clones]
    name = f"{tangent.name}[i]" if each else tangent.name
    apart = [f"set_apart({', '.join([name, *tangent.apart])});"] if tangent.apart else []
    kind = {"type": _type(tangent), "cleared": list(_zeros(tangent))}
    if each:
        result = tangent.results[0].local
        kind = {"result": result, "lists": element_checks(tangent.lists, result)}
    return fill(
        _ELEMENTS if each else _TANGENT,
        name=tangent.name,
        condition=_condition(tangent),
        inputs=inputs,
        line=[line_of(tangent.line)],
        formula=tangent.expression,
        restore=[RESTORE_LINE],
        apart=apart,
        **kind,
    ).rstrip("\n")


def _zeros(tangent: TangentPlan) -> Iterator[str]:
    """The lines for what was written to, whose old tangent is none of the new value."""
    many = len(tangent.results) > 1
    for index, result in enumerate(tangent.results):
        if result.written and not result.is_list:
            own = f"::std::get<{index}>({tangent.name})" if many else tangent.name
            yield f"{own} = tangent_or_zeros({own}, {result.local});"


def _condition(tangent: TangentPlan) -> str:
    """A result that a mask left out is undefined, and has no tangent."""
    result = tangent.results[0]
    is_always_there = len(tangent.results) > 1 or result.is_list or result.is_argument
    there = trigger(tangent)
    return there if is_always_there else f"{there} && {result.local}.defined()"


def trigger(tangent: TangentPlan) -> str:
    """The condition under which there is anything to compute."""
    return if_any_flag(tangent.results, f"has_tangent({', '.join(tangent.looked_at)})")


def if_any_flag(results: Sequence[ResultPlan], condition: str) -> str:
    """A condition, and that one of the results is differentiable where that depends."""
    if not all(result.condition for result in results):
        return condition
    flags = " || ".join(result.flag for result in results)
    return f"({flags}) && {condition}" if len(results) > 1 else f"{flags} && {condition}"


def _type(tangent: TangentPlan) -> str:
    """The type of the variable that holds the tangents."""
    if len(tangent.results) > 1:
        return f"::std::tuple<{', '.join(['at::Tensor'] * len(tangent.results))}>"
    return "variable_list" if tangent.results[0].is_list else "at::Tensor"


def _input(item: TangentInput) -> Iterator[str]:
    if item.needs_raw:
        value = f"raw_tangent_of({item.parameter})"
        yield f"at::Tensor {item.name}_t_raw = {f'copied({value})' if item.is_copied else value};"
    if item.needs_tangent:
        writable = item.is_written or item.is_original
        function = "writable_tangent_of" if writable else "tangent_of"
        value = f"{function}({item.parameter})"
        yield f"at::Tensor {item.name}_t = {f'copied({value})' if item.is_copied else value};"
    if item.needs_primal:
        yield f"const at::Tensor {item.name}_p = primal_of({item.parameter});"


def set_tangents(tangent: TangentPlan) -> Iterator[str]:
    """The lines that give each result its tangent."""
    many = len(tangent.results) > 1
    for index, result in enumerate(tangent.results):
        value = f"::std::get<{index}>({tangent.name})" if many else tangent.name
        written = ", /*is_inplace=*/true" if result.written else ""
        if result.is_optional:
            written = f", /*is_inplace=*/has_tensor({result.written})"
        line = f"  set_tangent({result.local}, {value}{written});"
        yield f"  if ({result.flag}) {{\n  {line}\n  }}" if many and result.condition else line
