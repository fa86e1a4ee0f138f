# SPDX-License-Identifier: BSD-3-Clause
"""autograd_<shard>.cpp: what stands on the autograd keys of every operator.

Operators with formulas get a kernel that records their node; the others the not-implemented one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..output import File, banner
from ..plan import (
    AutogradPlan,
    NodePlan,
    OperatorPlan,
    Plan,
    SavedPlan,
    Signature,
    Tensors,
)
from ..template import fill

_SOURCE = """
$banner
#include <$namespace/library.h>
#include <torchext/autograd_not_implemented.h>

$includes

namespace torchext::generated::$namespace {
namespace {

$kernels
void register_autograd_$index(torch::Library& m) {
$impls
}

const bool autograd_registered_$index = library().add($autograd_arguments);

$aliases
} // namespace
} // namespace torchext::generated::$namespace
"""

_ALIASES = """
void register_aliases_$index(torch::Library& m) {
$impls
}

const bool aliases_registered_$index = library().add($aliases_arguments);

"""

_KERNEL = """
// $location: $schema
$prototype {
$tangents
$refusals
  NodePtr<$node> node;
  if (any_requires_grad($differentiable)) {
    node = make_node<$node>();
    node->set_next_edges(collect_edges($edges));
$saved
  }
  auto $results = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    return operators::$handle::redispatch(keys & c10::after_autograd_keyset$arguments);
  }();
  if (node) {
$fresh
$history
$outputs
  }
  return $returned;
}

"""


def emit(plan: Plan) -> Iterator[File]:
    """One source for each shard that has anything on the autograd keys."""
    for index in range(plan.shards):
        shard = [op for op in plan.shard(index) if _has_autograd(op.autograd)]
        if not shard:
            continue
        nodes = [op for op in shard if op.autograd.node]
        groups = sorted({op.group for op in nodes})
        space = plan.namespace
        text = fill(
            _SOURCE,
            banner=banner(__name__, plan.specs),
            namespace=space,
            includes=[
                f"#include <{space}/{part}/{g}.h>" for part in ("nodes", "ops") for g in groups
            ],
            kernels="\n".join(_kernel(space, op) for op in nodes).rstrip("\n") + "\n"
            if nodes
            else [],
            autograd_arguments=_add_arguments("Autograd", f"register_autograd_{index}"),
            impls=[impl for op in shard if (impl := _impl(op))],
            aliases=_aliases(index, shard),
            index=str(index),
        )
        yield File(f"src/autograd_{index}.cpp", text, "source")


def _has_autograd(autograd: AutogradPlan) -> bool:
    return bool(
        autograd.node
        or autograd.is_not_implemented
        or autograd.is_ignored
        or autograd.tracks_aliases
    )


def _boxed(op: OperatorPlan, function: str) -> str:
    return (
        f'  m.impl("{op.operator.name}", torch::CppFunction::makeFromBoxedFunction<&{function}>());'
    )


def _impl(op: OperatorPlan) -> str | None:
    if op.autograd.node:
        return f'  m.impl("{op.operator.name}", TORCH_FN(autograd_{op.handle}));'
    if op.autograd.is_ignored:
        return _boxed(op, "autograd_ignored")
    return _boxed(op, "autograd_not_implemented") if op.autograd.is_not_implemented else None


def _aliases(index: int, shard: list[OperatorPlan]) -> str | list[str]:
    impls = [_boxed(op, "track_aliases") for op in shard if op.autograd.tracks_aliases]
    if not impls:
        return []
    arguments = _add_arguments("ADInplaceOrView", f"register_aliases_{index}")
    return fill(_ALIASES, index=str(index), impls=impls, aliases_arguments=arguments)


def _add_arguments(key: str, function: str) -> list[str]:
    return ["torch::Library::IMPL", f"c10::DispatchKey::{key}", f"&{function}"]


def _kernel(namespace: str, op: OperatorPlan) -> str:
    autograd, node, signature = op.autograd, op.autograd.node, op.signature
    assert node is not None and signature is not None  # analysis refuses formulas otherwise
    name = f"{namespace}::{op.operator.name}"
    results = [r.local for r in autograd.results]
    more = "".join(f", {name}" for name in autograd.tensors)
    inputs = [s for s in node.saved if not s.is_output]
    outputs = [s for s in node.saved if s.is_output]
    return fill(
        _KERNEL,
        location=node.spec_line,
        schema=op.schema,
        prototype=_prototype(signature, op.handle),
        tangents=[_check("check_no_tangent", name, a) for a in autograd.differentiable],
        refusals=[_check("check_no_requires_grad", name, a) for a in autograd.without_formula],
        node=node.name,
        differentiable=[a.parameter for a in autograd.differentiable],
        edges=[e.parameter for e in node.edges],
        saved=[*_sizes(node), *map(_save, inputs)],
        results=results[0] if len(results) == 1 else f"[{', '.join(results)}]",
        handle=op.handle,
        arguments="".join(f", {p.name}" for p in signature.parameters),
        fresh=[
            f'    check_new("{name}", {r.local}{more});'
            for r in autograd.results
            if r.is_differentiable
        ],
        history=list(_history(autograd)),
        outputs=[_save(item) for item in outputs],
        returned=_returned(signature, results),
    )


def _check(function: str, name: str, tensors: Tensors) -> str:
    return f'  {function}("{name}", "{tensors.name}", {tensors.parameter});'


def _prototype(signature: Signature, handle: str) -> str:
    rest = [p.declaration for p in signature.parameters]
    return f"{signature.result} autograd_{handle}({', '.join(['c10::DispatchKeySet keys', *rest])})"


def _returned(signature: Signature, results: list[str]) -> str:
    if len(results) == 1:
        return results[0]
    return f"{signature.result}({', '.join(f'::std::move({name})' for name in results)})"


def _sizes(node: NodePlan) -> Iterator[str]:
    for edge in node.edges:
        if edge.is_list:
            yield f"    node->{edge.argument}_size = {edge.parameter}.size();"


def _save(item: SavedPlan) -> str:
    line = f"node->{item.member} = {item.save.replace('torchext::', '')};"
    if not item.edges:
        return f"    {line}"
    condition = " || ".join(f"node->should_compute_output({i})" for i in item.edges)
    return f"    if ({condition}) {{\n      {line}\n    }}"


def _history(autograd: AutogradPlan) -> Iterator[str]:
    for result in autograd.results:
        if result.is_differentiable:
            condition = f", {result.condition}" if result.condition else ""
            yield f"    set_result_history({result.local}, node{condition});"
