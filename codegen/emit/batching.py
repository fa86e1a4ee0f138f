# SPDX-License-Identifier: BSD-3-Clause
"""batching_<shard>.cpp: how each operator serves a batch of torch.vmap.

By the rule of its `vmap:`, or by a call for each example; an out= form calls the functional one and
copies. Composite operators have no such kernel: their parts serve a batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..cpp.template import fill
from ..output import File, banner
from ..plan.library import BatchingRule, OperatorPlan, Plan
from .spelling.expressions import decided, spelled

_SOURCE = """
$banner
#include <$namespace/library.h>
$runtime

namespace torchext::generated::$namespace {
namespace {

$functions
$blocks

} // namespace
} // namespace torchext::generated::$namespace
"""

_BLOCK = """
TORCHEXT_LIBRARY_IMPL(m, DispatchKey::$key) {
$impls
}

"""

_KEYS = ("FuncTorchBatched", "FuncTorchVmapMode")

# The functions that a rule asks; what is asked is of an operator's arguments.
_FUNCTION = """
// $location
$type $name($parameter) {
  [[maybe_unused]] constexpr auto op = "$operator";
  $arguments
  return $value;
}
"""
_PARAMETER = "const std::vector<c10::IValue>& torchext_values"


def emit(plan: Plan) -> Iterator[File]:
    """One source for each shard that has such operators."""
    for index in range(plan.shards):
        rules = [(op, op.batching) for op in plan.shard(index) if op.batching]
        if rules:
            text = fill(
                _SOURCE,
                banner=banner(__name__, plan.specs),
                namespace=plan.namespace,
                functions=[text for op, rule in rules for text in _functions(op, rule)],
                runtime=sorted({_header(rule) for _, rule in rules}),
                blocks="\n".join(_blocks(plan.namespace, rules)).rstrip(),
            )
            yield File(f"src/batching_{index}.cpp", text, "part")


def _blocks(namespace: str, rules: list[tuple[OperatorPlan, BatchingRule]]) -> Iterator[str]:
    """The registrations of each dispatch key."""
    for key in _KEYS:
        impls = [_impl(namespace, op, rule) for op, rule in rules if key in rule.keys]
        if impls:
            yield fill(_BLOCK, key=key, impls=impls)


def _header(rule: BatchingRule) -> str:
    return f"#include <torchext/generated/{'declared_forms' if rule.form else 'batching'}.h>"


def _impl(namespace: str, op: OperatorPlan, rule: BatchingRule) -> str:
    given = ", ".join(_arguments(namespace, op, rule))
    return f'  m.impl("{op.operator.name}", {rule.function}({given}));'


def _arguments(namespace: str, op: OperatorPlan, rule: BatchingRule) -> list[str]:
    """What a rule is given; those that are as usual are left out at the end."""
    facts = "{" + ", ".join(f".{name} = {_fact(value)}" for name, value in rule.facts) + "}"
    condition = f"&batches_{op.handle}" if rule.condition else "nullptr"
    given: list[str] = []
    if rule.form:
        given = [f'"{namespace}::{rule.form.base}"', f'"{rule.form.overload}"']
    elif rule.function == "leading_rule":
        rows = "{" + ", ".join(f'"{name}"' for name in rule.rows) + "}"
        given = [rows, condition, facts, f"&rows_of_{op.handle}" if rule.rows_of_row else "nullptr"]
    elif rule.function == "pointwise_rule":
        given = [condition, facts]
    elif rule.facts:
        given = [facts]
    while given and given[-1] in ("nullptr", "{}"):
        given.pop()
    return given


def _fact(value: bool | tuple[str, ...] | tuple[tuple[str, int], ...]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    parts = (f'"{p}"' if isinstance(p, str) else f'{{"{p[0]}", {p[1]}}}' for p in value)
    return "{" + ", ".join(parts) + "}"


def _functions(op: OperatorPlan, rule: BatchingRule) -> Iterator[str]:
    """The functions that say whether a rule serves a call, and how many rows come of one."""
    for asked, name, type_, spell in (
        (rule.condition, f"batches_{op.handle}", "bool", decided),
        (rule.rows_of_row, f"rows_of_{op.handle}", "c10::SymInt", spelled),
    ):
        if asked is not None:
            yield fill(
                _FUNCTION,
                location=op.spec_line,
                type=type_,
                name=name,
                parameter=_PARAMETER,
                operator=asked.operator,
                arguments=[
                    f"const auto {a.name} = unboxed<{a.type}>(torchext_values[{a.index}]);"
                    for a in asked.arguments
                ],
                value=spell(asked.value),
            )
