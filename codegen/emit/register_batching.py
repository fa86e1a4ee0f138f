# SPDX-License-Identifier: BSD-3-Clause
"""batching_<shard>.cpp: the batching rules of operators with `vmap:`, and those of out= forms.

An out= form calls the functional one and copies. Operators without a rule have no such kernel:
PyTorch calls them for each example, but for out= forms, which it refuses.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..output import File, banner
from ..plan import BatchingRule, OperatorPlan, Plan
from ..template import fill

_SOURCE = """
$banner
#include <$namespace/library.h>
$runtime

namespace torchext::generated::$namespace {
namespace {

$conditions
void register_batching_$index(torch::Library& m) {
$impls
}

const bool registered_batching_$index = library().add($arguments);

} // namespace
} // namespace torchext::generated::$namespace
"""

_CONDITION = """
// $location
bool batches_$handle(const std::vector<c10::IValue>& torchext_values) {
  $values
  return shape::decided($condition);
}
"""


def emit(plan: Plan) -> Iterator[File]:
    """One source for each shard that has such operators."""
    for index in range(plan.shards):
        rules = [(op, op.batching) for op in plan.shard(index) if op.batching]
        if rules:
            text = fill(
                _SOURCE,
                banner=banner(__name__, plan.specs),
                namespace=plan.namespace,
                index=str(index),
                conditions=[text for op, rule in rules for text in _condition(op, rule)],
                runtime=sorted({_header(rule) for _, rule in rules}),
                impls=[line for op, rule in rules for line in _impl(plan.namespace, op, rule)],
                arguments=[
                    "torch::Library::IMPL",
                    "c10::DispatchKey::FuncTorchBatched",
                    f"&register_batching_{index}",
                ],
            )
            yield File(f"src/batching_{index}.cpp", text, "source")


def _header(rule: BatchingRule) -> str:
    return f"#include <torchext/{'declared_forms' if rule.form else 'batching'}.h>"


def _impl(namespace: str, op: OperatorPlan, rule: BatchingRule) -> Iterator[str]:
    arguments = []
    if rule.form:
        arguments = [f'"{namespace}::{rule.form.base}"', f'"{rule.form.overload}"']
    elif rule.rows:
        arguments = ["{" + ", ".join(f'"{name}"' for name in rule.rows) + "}"]
    yield f"  // {op.spec_line}"
    if rule.condition is None:
        yield f'  m.impl("{op.operator.name}", {rule.function}({", ".join(arguments)}));'
        return
    name = f"batches_{op.handle}"
    yield f'  m.impl("{op.operator.name}", {rule.function}({", ".join([*arguments, f"&{name}"])}));'


def _condition(op: OperatorPlan, rule: BatchingRule) -> Iterator[str]:
    """The function that says whether a rule serves a call."""
    if rule.condition is not None:
        yield fill(
            _CONDITION,
            location=op.spec_line,
            handle=op.handle,
            values=list(rule.condition.values),
            condition=rule.condition.cpp,
        )
