# SPDX-License-Identifier: BSD-3-Clause
"""nodes_<shard>.h and .cpp: the backward node of every operator with formulas."""

from __future__ import annotations

from collections.abc import Iterator

from ..cpp.folding import WIDTH, packed
from ..cpp.template import fill
from ..output import File, banner, own_includes
from ..plan.autograd import NodePlan, SavedKind
from ..plan.library import OperatorPlan, Plan
from .spelling.gradients import gradient_block
from .spelling.headers import ops_includes
from .spelling.saved import member_type, parameter

_HEADER = """
$banner
#pragma once

#include <torchext/generated/autograd.h>

namespace torchext::generated::$namespace {

$classes

} // namespace torchext::generated::$namespace
"""

_CLASS = """
// $location: $schema
struct TORCHEXT_API $name final : NodeOf<$name> {
  using NodeOf::NodeOf;
  std::string name() const override;
$members
};
"""

_SOURCE = """
$banner
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torchext/derivative_helpers.h>
#include <torchext/generated/node_definition.h>

$includes

// Formulas are written in upstream's language: unqualified functions are ATen's and the helpers'.
namespace torchext::generated::$namespace {

using namespace at;
using namespace torchext::derivatives;

$definitions

} // namespace torchext::generated::$namespace

namespace torchext {

$instances

} // namespace torchext
"""

_DEFINITION = """
// $location: $schema
static void $function($parameters) {
$zeros
$locals
$try
$gradients
$catch
}

NodeDefinition<$parts>
definition_of(const $name*);

std::string $name::name() const {
  return "$name";
}
"""


def emit(plan: Plan) -> Iterator[File]:
    """A header and a source for each shard that has nodes."""
    head, space = banner(__name__, plan.specs), plan.namespace
    for index in range(plan.shards):
        shard = [(op, node) for op in plan.shard(index) for node in op.nodes]
        if shard:
            classes = "\n".join(_class(op, node) for op, node in shard).rstrip()
            text = fill(_HEADER, banner=head, namespace=space, classes=classes)
            yield File(f"include/{space}/nodes_{index}.h", text, "header")
            definitions = (_definition(space, op, node) for op, node in shard)
            text = fill(
                _SOURCE,
                banner=head,
                namespace=space,
                includes=_includes(plan, index, shard),
                definitions="\n".join(definitions).rstrip(),
                instances=[
                    f"template class NodeOf<generated::{space}::{node.name}>;" for _, node in shard
                ],
            )
            yield File(f"src/nodes_{index}.cpp", text, "part")


def _includes(plan: Plan, index: int, shard: list[tuple[OperatorPlan, NodePlan]]) -> list[str]:
    """The nodes of the shard, and the operators of this library that its formulas call."""
    groups = plan.group_of_api
    calls = {name for _, node in shard for name in node.calls}
    called = {groups[name] for name in calls if name in groups}
    return [
        f"#include <{plan.namespace}/nodes_{index}.h>",
        *ops_includes(plan, called),
        *own_includes(plan.formula_headers),
    ]


def _class(op: OperatorPlan, node: NodePlan) -> str:
    members = [f"  {member_type(item)} {item.member};" for item in node.saved]
    members += [f"  size_t {e.argument}_size = 0;" for e in node.edges if e.is_list]
    members = ["", *members] if members else []
    return fill(_CLASS, location=node.spec_line, schema=op.schema, name=node.name, members=members)


def _definition(space: str, op: OperatorPlan, node: NodePlan) -> str:
    function = f"{node.name}_gradients"
    return fill(
        _DEFINITION,
        location=node.spec_line,
        schema=op.schema,
        function=function,
        parameters=_parameters(node),
        name=node.name,
        zeros=_zeros(node),
        locals=list(_grads(node)),
        gradients=[gradient_block(node, g) for g in node.gradients],
        **_explained(f"{space}::{op.operator.name}", node),
        parts=_together([f"&{function}", *_parts(node)]),
    )


def _together(parts: list[str]) -> str:
    line = ", ".join(parts)
    return line if len(f"NodeDefinition<{line}>") <= WIDTH else packed(parts)


def _parameters(node: NodePlan) -> list[str]:
    """Where gradients go, and what they are computed from: grads, which are needed, sizes of lists,
    what was saved."""
    found = [
        "Gradients& outputs",
        f"const variable_list& {_incoming(node)}",
        f"const ::std::array<bool, {len(node.edges)}>& needs",
    ]
    found += [f"size_t {e.argument}_size" for e in node.edges if e.is_list]
    found += [parameter(item) for item in node.saved]
    return found + (["bool retain_variables"] if node.retains else [])


def _parts(node: NodePlan) -> Iterator[str]:
    """What gives the arguments for those parameters, without grads."""
    sizes = [f"&{node.name}::{e.argument}_size" for e in node.edges if e.is_list]
    every = [f"&{node.name}::{e.argument}_size" if e.is_list else "1" for e in node.edges]
    yield f"Edges{'OfZeros' * bool(node.zeros)}<{', '.join(every)}>"
    if node.retains:
        yield "RetainVariables"
    yield from (f"Member<{size}>" for size in sizes)
    for item in node.saved:
        of = "Member"
        if item.kind is SavedKind.OPTIONAL_TENSORS:
            of = "Optionals"
        elif item.kind is not SavedKind.VALUE and item.is_output:
            of = "Result"
        yield f"{of}<&{node.name}::{item.member}>"


def _incoming(node: NodePlan) -> str:
    """What the gradients are called that the engine gives."""
    return "incoming" if node.zeros else "grads"


def _zeros(node: NodePlan) -> list[str]:
    """The statements that put zeros in the place of gradients that nobody gave."""
    if not node.zeros:
        return []
    steps = [f"  materialized.{f'next({i})' if i else 'skip()'};" for i in node.zeros]
    return [
        "  MaterializedGrads materialized(incoming);",
        *steps,
        "  const variable_list& grads = materialized.grads;",
    ]


def _explained(operator: str, node: NodePlan) -> dict[str, list[str]]:
    """What stands around the formulas, so that errors of undefined gradients say why."""
    if not node.undefined:
        return {"try": [], "catch": []}
    named = (f'{{"{name}", {-1 if index is None else index}}}' for name, index in node.undefined)
    return {
        "try": ["  try {"],
        "catch": [
            "  } catch (c10::Error& error) {",
            f'    explain_undefined(error, "{operator}", {{{", ".join(named)}}}, grads);',
            "    throw;",
            "  }",
        ],
    }


def _grads(node: NodePlan) -> Iterator[str]:
    grads = dict(pair for gradient in node.gradients for pair in gradient.grads)
    for name, index in grads.items():
        yield f"  const auto& {name} = grads[{index}];"
