# SPDX-License-Identifier: BSD-3-Clause
"""batching_<shard>.cpp: how each operator serves a batch of torch.vmap.

By the rule of its `vmap:`, or by a call for each example; an out= form calls the functional one and
copies. Composite operators have no such kernel: their parts serve a batch.
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
$blocks

} // namespace
} // namespace torchext::generated::$namespace
"""

_BLOCK = """
void register_$name_$index(torch::Library& m) {
$impls
}

const bool registered_$name_$index = library().add($arguments);

"""

# what the functions of a dispatch key are called by
_NAMES = {"FuncTorchBatched": "batching", "FuncTorchVmapMode": "randomness"}

_CONDITIONAL = {"pointwise_rule", "leading_rule"}  # which take a condition

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
                conditions=[text for op, rule in rules for text in _condition(op, rule)],
                runtime=sorted({_header(rule) for _, rule in rules}),
                blocks="\n".join(_blocks(plan.namespace, index, rules)).rstrip(),
            )
            yield File(f"src/batching_{index}.cpp", text, "source")


def _blocks(
    namespace: str, index: int, rules: list[tuple[OperatorPlan, BatchingRule]]
) -> Iterator[str]:
    """The registrations of each dispatch key."""
    for key, name in _NAMES.items():
        own = [(op, rule) for op, rule in rules if key in rule.keys]
        impls = [line for op, rule in own for line in _impl(namespace, op, rule)]
        if impls:
            function = f"&register_{name}_{index}"
            arguments = ["torch::Library::IMPL", f"c10::DispatchKey::{key}", function]
            block = _BLOCK.replace("$name", name)
            yield fill(block, index=str(index), impls=impls, arguments=arguments)


def _header(rule: BatchingRule) -> str:
    return f"#include <torchext/{'declared_forms' if rule.form else 'batching'}.h>"


def _impl(namespace: str, op: OperatorPlan, rule: BatchingRule) -> Iterator[str]:
    arguments = []
    if rule.form:
        arguments = [f'"{namespace}::{rule.form.base}"', f'"{rule.form.overload}"']
    elif rule.rows:
        arguments = ["{" + ", ".join(f'"{name}"' for name in rule.rows) + "}"]
    if rule.condition is not None:
        arguments.append(f"&batches_{op.handle}")
    elif rule.facts and rule.function in _CONDITIONAL:
        arguments.append("nullptr")
    if rule.facts:
        arguments.append("{" + ", ".join(rule.facts) + "}")
    yield f"  // {op.spec_line}"
    yield f'  m.impl("{op.operator.name}", {rule.function}({", ".join(arguments)}));'


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
