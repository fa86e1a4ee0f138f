# SPDX-License-Identifier: BSD-3-Clause
"""autograd_<shard>.cpp: what stands on the autograd keys of every operator.

Operators with formulas get a kernel that records their node and computes their tangents; the others
the not-implemented one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ..autograd_plan import AutogradPlan, ResultPlan, SaveStep, Tensors
from ..form_text import form_text
from ..output import RESTORE_LINE, File, banner, own_includes
from ..plan import OperatorPlan, Plan, Signature
from ..tangent_text import set_tangents, tangent_block
from ..template import fill

_SOURCE = """
$banner
#include <$namespace/library.h>
#include <torchext/autograd_not_implemented.h>
$runtime

$includes

namespace torchext::generated::$namespace {
namespace {

$using

$kernels
$registrations
} // namespace
} // namespace torchext::generated::$namespace
"""

_REGISTRATION = """
void register_$name(torch::Library& m) {
$impls
}

const bool registered_$name = library().add($arguments);

"""

_USING = ["using namespace at;", "using namespace torchext::derivatives;"]

_FORMULA_INCLUDES = ["#include <ATen/Functions.h>", "#include <torchext/derivative_helpers.h>"]

_KERNEL = """
// $location: $schema
$result $function($parameters) {
$tangent_refusals
$refusals
$conditions
  const bool records = $records;
$checks
$originals
  NodePtr<$node> node;
  if (records) {
    node = make_node<$node>();
    node->set_next_edges(collect_edges($edges));
$saved
  }
$call
  if (node) {
$fresh
$history
  }
$tangents
$outputs
$returned
}

"""

_CALL = """
  $results[&] {
    at::$guard guard;
    return operators::$handle::redispatch(keys & c10::after_autograd_keyset$arguments);
  }();
"""


def emit(plan: Plan) -> Iterator[File]:
    """One source for each shard that has anything on the autograd keys."""
    for index in range(plan.shards):
        shard = plan.shard(index)
        registrations = list(_registrations(plan, shard, index))
        if not registrations:
            continue
        keyed = [(op, key, a) for op in shard for key, a in _plans(op) if a.node]
        evaluates = any(a.evaluates for _, _, a in keyed)
        kernels = [_kernel(plan.namespace, op, key, a) for op, key, a in keyed]
        text = fill(
            _SOURCE,
            banner=banner(__name__, plan.specs),
            namespace=plan.namespace,
            runtime=list(_runtime(shard)),
            includes=_includes(plan, keyed, evaluates),
            using=_USING if evaluates else [],
            kernels="\n".join(kernels).rstrip("\n") + "\n" if kernels else [],
            registrations="\n".join(registrations),
        )
        yield File(f"src/autograd_{index}.cpp", text, "source")


def _runtime(shard: list[OperatorPlan]) -> Iterator[str]:
    """The headers of the kernels that are there once for all operators."""
    if any(op.autograd.parts for op in shard):
        yield "#include <torchext/view_forms.h>"
    if any(op.is_traced_on_copies for op in shard):
        yield "#include <torchext/functionalization.h>"
    if any(op.autograd.tracks_aliases for op in shard):
        yield "#include <torchext/views.h>"


def _plans(op: OperatorPlan) -> Iterator[tuple[str, AutogradPlan]]:
    yield "Autograd", op.autograd
    yield from op.autograd_by_key


def _includes(
    plan: Plan, keyed: list[tuple[OperatorPlan, str, AutogradPlan]], evaluates: bool
) -> list[str]:
    """The nodes and operators of the shard, and what its formulas call."""
    groups = plan.group_of_api
    own = {op.group for op, _, _ in keyed}
    called = {groups[name] for _, _, a in keyed for name in a.calls if name in groups}
    found = [f"#include <{plan.namespace}/nodes/{g}.h>" for g in sorted(own)]
    found += [f"#include <{plan.namespace}/ops/{g}.h>" for g in sorted(own | called)]
    if not evaluates:
        return found
    return [*found, *_FORMULA_INCLUDES, *own_includes(plan.formula_headers)]


def _registrations(plan: Plan, shard: list[OperatorPlan], index: int) -> Iterator[str]:
    """One registration for each key that an operator has a kernel on."""
    by_key: dict[str, list[str]] = {}
    for op in shard:
        for key, autograd in _plans(op):
            impl = _impl(plan.namespace, op, key, autograd)
            if impl:
                by_key.setdefault(key, []).append(impl)
    for op in shard:
        if op.autograd.tracks_aliases:
            by_key.setdefault("ADInplaceOrView", []).append(_tracking(plan.namespace, op))
    for key, impls in by_key.items():
        name = f"{key.lower()}_{index}"
        arguments = ["torch::Library::IMPL", f"c10::DispatchKey::{key}", f"&register_{name}"]
        yield fill(_REGISTRATION, name=name, impls=impls, arguments=arguments)


def _boxed(op: OperatorPlan, function: str) -> str:
    kernel = f"torch::CppFunction::makeFromBoxedFunction<&torchext::{function}>()"
    return f'  m.impl("{op.operator.name}", {kernel});'


def _tracking(namespace: str, op: OperatorPlan) -> str:
    if op.is_traced_on_copies:
        form = dataclasses.replace(op.traced, function="traced_on_copies")
        return f'  m.impl("{op.operator.name}", {form_text(namespace, form)});'
    views = op.autograd.tracks_aliases
    return f'  m.impl("{op.operator.name}", tracked_aliases<Views::{views.value}>());'


def _impl(namespace: str, op: OperatorPlan, key: str, plan: AutogradPlan) -> str | None:
    if plan.parts:
        return f'  m.impl("{op.operator.name}", {form_text(namespace, plan.parts)});'
    if plan.node:
        return f'  m.impl("{op.operator.name}", TORCH_FN({key.lower()}_{op.handle}));'
    if plan.is_ignored:
        return _boxed(op, "autograd_ignored")
    return _boxed(op, "autograd_not_implemented") if plan.is_not_implemented else None


def _kernel(namespace: str, op: OperatorPlan, key: str, autograd: AutogradPlan) -> str:
    node, signature = autograd.node, op.signature
    assert node is not None and signature is not None  # analysis refuses formulas otherwise
    name = f"{namespace}::{op.operator.name}"
    new = [r for r in autograd.results if r.is_differentiable and r.is_new]
    more = "".join(f", {name}" for name in autograd.tensors)
    lists = [edge for edge in node.edges if edge.is_list]
    return fill(
        _KERNEL,
        location=node.spec_line,
        schema=op.schema,
        result=signature.result,
        function=f"{key.lower()}_{op.handle}",
        parameters=["c10::DispatchKeySet keys", *(p.declaration for p in signature.parameters)],
        tangent_refusals=[_check("check_no_tangent", name, a) for a in autograd.without_tangent],
        refusals=[_check("check_no_requires_grad", name, a) for a in autograd.without_formula],
        conditions=[line for r in autograd.results for line in _condition(r)],
        records=autograd.records,
        checks=list(_write_checks(name, autograd)),
        originals=list(_originals(autograd)),
        node=node.name,
        edges=[e.parameter for e in node.edges],
        saved=[
            *(f"    node->{e.argument}_size = {e.parameter}.size();" for e in lists),
            *map(_save, autograd.saves),
        ],
        call=_call(op, autograd).rstrip("\n"),
        fresh=[line for r in new for line in _check_new(name, r, more)],
        history=list(_history(name, autograd)),
        tangents=[tangent_block(t) for t in autograd.tangents]
        + [line for t in autograd.tangents for line in set_tangents(t)],
        outputs=_outputs(autograd),
        returned=_returned(signature, autograd.results),
    )


def _check_new(name: str, result: ResultPlan, more: str) -> Iterator[str]:
    check = f'check_new("{name}", {result.local}{more});'
    if result.is_optional:
        yield f"    if (!has_tensor({result.written})) {{\n      {check}\n    }}"
    else:
        yield f"    {check}"


def _condition(result: ResultPlan) -> list[str]:
    condition = result.condition
    if condition is None:
        return []
    value = f"      {condition.expression};"
    return [f"  const bool {result.flag} =", str(condition.line), value, RESTORE_LINE]


def _write_checks(name: str, autograd: AutogradPlan) -> Iterator[str]:
    for result in autograd.results:
        if result.written and result.is_differentiable:
            if result.is_out:
                tangent = f"has_tangent({', '.join(autograd.watched)})"
                yield f'  check_out("{name}", {result.written}, records, {tangent});'
            elif result.is_optional:
                yield f"  check_inplace({result.written}, records);"
            else:
                yield f"  torch::autograd::check_inplace({result.written}, records);"
    for written in autograd.not_views:
        yield f'  check_no_view("{name}", "{written}", {written}, records);'


def _check(function: str, name: str, item: Tensors) -> str:
    return f'  {function}("{name}", "{item.name}", {item.parameter});'


def _call(op: OperatorPlan, autograd: AutogradPlan) -> str:
    """The call below autograd. What it writes to are arguments, whatever it returns for them."""
    assert op.signature is not None
    names = [r.local for r in autograd.results]
    if not names or all(r.is_argument for r in autograd.results):
        results = ""
    elif len(names) == 1:
        results = f"auto {names[0]} = "
    else:
        names = [f"{n}_written" if r.is_argument else n for n, r in zip(names, autograd.results)]
        results = f"auto [{', '.join(names)}] = "
    call = fill(
        _CALL,
        results=results,
        guard=f"AutoDispatchBelow{'Autograd' if autograd.has_aliases else 'ADInplaceOrView'}",
        handle=op.handle,
        arguments="".join(f", {p.name}" for p in op.signature.parameters),
    )
    given = (r for r in autograd.results if r.is_optional)
    return call + "".join(f"  {r.local} = given_or({r.written}, {r.local});\n" for r in given)


def _returned(signature: Signature, results: tuple[ResultPlan, ...]) -> list[str]:
    if len(results) < 2:
        return [f"  return {result.local};" for result in results]
    values = (r.local if r.is_argument else f"::std::move({r.local})" for r in results)
    return [f"  return {signature.result}({', '.join(values)});"]


def _originals(autograd: AutogradPlan) -> Iterator[str]:
    """Copies of what is written to: made when first asked for, or at once for a tangent."""
    for parameter in autograd.originals:
        yield f"  ::std::optional<at::Tensor> original_{parameter};"
    for tangent in autograd.tangents:
        for item in tangent.inputs:
            if item.is_original:
                parameter = item.parameter.removeprefix("original_")
                yield f"  if ({tangent.trigger}) {{"
                yield f"    kept({item.parameter}, {parameter});"
                yield "  }"


def _save(item: SaveStep) -> str:
    line = f"    node->{item.member} = {item.value};"
    return f"    if ({item.condition}) {{\n  {line}\n    }}" if item.condition else line


def _history(name: str, autograd: AutogradPlan) -> Iterator[str]:
    for result in autograd.results:
        if result.is_differentiable:
            # what is made a view of itself has the memory of its base still, and no new value
            keeps = result.written is None or result.is_inplace_view
            function = "set_result_history" if keeps else "rebase_result_history"
            flag = f", {result.flag}" if result.condition else ""
            given = f"{result.written}, " if result.is_optional else ""
            yield f"    {function}({given}{result.local}, node{flag});"
    for local in autograd.not_complex:
        yield f'    check_not_complex("{name}", {local});'


def _outputs(autograd: AutogradPlan) -> list[str]:
    """Results are saved after their tangents are set, so that what is unpacked has them."""
    if not autograd.saves_after:
        return []
    return ["  if (node) {", *map(_save, autograd.saves_after), "  }"]
