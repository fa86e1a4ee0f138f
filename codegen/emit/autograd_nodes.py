# SPDX-License-Identifier: BSD-3-Clause
"""nodes/<group>.h and nodes_<shard>.cpp: the backward node of every operator with formulas."""

from __future__ import annotations

from collections.abc import Iterator

from ..output import File, banner
from ..plan import GradientPlan, NodePlan, OperatorPlan, Plan
from ..template import fill

_HEADER = """
$banner
#pragma once

#include <array>
#include <string>

#include <torchext/autograd.h>

namespace torchext::generated::$namespace {

$classes

} // namespace torchext::generated::$namespace
"""

_CLASS = """
// $location: $schema
struct TORCHEXT_API $name final : BackwardNode {
  using BackwardNode::BackwardNode;
  std::string name() const override;
  variable_list apply(variable_list&& grads) override;
  void release_variables() override;
$members
};
"""

_SOURCE = """
$banner
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torchext/derivative_helpers.h>

$includes

// Formulas are written in upstream's language: unqualified functions are ATen's and the helpers'.
namespace torchext::generated::$namespace {

using namespace at;
using namespace torchext::derivatives;

$definitions

} // namespace torchext::generated::$namespace
"""

_DEFINITION = """
// $location: $schema
std::string $name::name() const {
  return "$name";
}

variable_list $name::apply(variable_list&& grads) {
  const std::lock_guard<std::mutex> lock(mutex_);
  GradRanges ranges;
$ranges
  variable_list grad_inputs(ranges.size());
  if (!any_defined(grads)) {
    return grad_inputs;
  }
$locals
$gradients
  return grad_inputs;
}

void $name::release_variables() {
  const std::lock_guard<std::mutex> lock(mutex_);
$releases
  released_ = true;
}
"""

_GRADIENT = """
if (needs($range)) {
  store(grad_inputs, $range, $formula);
}
"""

_GRADIENTS = """
if ($any) {
$mask
  const auto computed = $formula;
$stores
}
"""


def emit(plan: Plan) -> Iterator[File]:
    """A header for each group that has nodes, and a source for each shard."""
    head, space = banner(__name__, plan.specs), plan.namespace
    for group, operators in plan.groups().items():
        nodes = [(op, op.autograd.node) for op in operators if op.autograd.node]
        if nodes:
            classes = "\n".join(_class(op, node) for op, node in nodes).rstrip()
            text = fill(_HEADER, banner=head, namespace=space, classes=classes)
            yield File(f"include/{space}/nodes/{group}.h", text, "header")
    for index in range(plan.shards):
        shard = [(op, op.autograd.node) for op in plan.shard(index) if op.autograd.node]
        if shard:
            text = fill(
                _SOURCE,
                banner=head,
                namespace=space,
                includes=_includes(plan, shard),
                definitions="\n".join(_definition(op, node) for op, node in shard).rstrip(),
            )
            yield File(f"src/nodes_{index}.cpp", text, "source")


def _includes(plan: Plan, shard: list[tuple[OperatorPlan, NodePlan]]) -> list[str]:
    """The nodes of the shard, and the operators of this library that its formulas call."""
    groups = {op.api_name: op.group for op in plan.operators if op.api_name}
    calls = {name for _, node in shard for name in node.calls}
    called = sorted({groups[name] for name in calls if name in groups})
    own = sorted({op.group for op, _ in shard})
    return [f"#include <{plan.namespace}/nodes/{group}.h>" for group in own] + [
        f"#include <{plan.namespace}/ops/{group}.h>" for group in called
    ]


def _class(op: OperatorPlan, node: NodePlan) -> str:
    members = [f"  {item.type} {item.member};" for item in node.saved]
    members += [f"  size_t {e.argument}_size = 0;" for e in node.edges if e.is_list]
    members = ["", *members] if members else []
    return fill(_CLASS, location=node.spec_line, schema=op.schema, name=node.name, members=members)


def _definition(op: OperatorPlan, node: NodePlan) -> str:
    return fill(
        _DEFINITION,
        location=node.spec_line,
        schema=op.schema,
        name=node.name,
        ranges=[_range(e.argument, e.is_list) for e in node.edges],
        locals=list(_locals(node)),
        gradients=[_indented(_gradient(node, g)) for g in node.gradients],
        releases=[f"  {s.member}.{s.releases}();" for s in node.saved if s.releases],
    )


def _range(argument: str, is_list: bool) -> str:
    return f"  const auto {argument}_range = ranges.next({f'{argument}_size' if is_list else ''});"


def _locals(node: NodePlan) -> Iterator[str]:
    if any(item.releases == "clear" for item in node.saved):
        yield "  check_not_released();"
    grads = dict(pair for gradient in node.gradients for pair in gradient.grads)
    for name, index in grads.items():
        yield f"  const auto& {name} = grads[{index}];"
    for item in node.saved:
        if item.unpack:
            yield f"  const auto {item.local} = {item.unpack.replace('torchext::', '')};"


def _gradient(node: NodePlan, gradient: GradientPlan) -> str:
    ranges = [f"{node.edges[i].argument}_range" for i in gradient.edges]
    if len(ranges) == 1 and not gradient.needs_mask:
        return fill(_GRADIENT, range=ranges[0], formula=gradient.expression)
    needs = [f"needs({name})" for name in ranges]
    mask = f"  const ::std::array<bool, {len(needs)}> grad_input_mask = {{{', '.join(needs)}}};"
    if len(ranges) == 1:
        stores = [f"  store(grad_inputs, {ranges[0]}, computed);"]
    else:
        stores = [
            f"  if ({need}) {{\n    store(grad_inputs, {name}, ::std::get<{i}>(computed));\n  }}"
            for i, (need, name) in enumerate(zip(needs, ranges))
        ]
    return fill(
        _GRADIENTS,
        any=" || ".join(needs),
        mask=[mask] if gradient.needs_mask else [],
        formula=gradient.expression,
        stores=stores,
    )


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else line for line in text.rstrip("\n").split("\n"))
