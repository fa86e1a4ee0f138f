# SPDX-License-Identifier: BSD-3-Clause
"""schema_<shard>.cpp: the schema of every operator, with its tags.

An operator that PyTorch defines is not defined again: it is asked to be what the entry says.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..cpp.template import fill
from ..output import File, banner
from ..plan.library import OperatorPlan, OverridePlan, Plan

_SOURCE = """
$banner
#include <ATen/core/enum_tag.h>
#include <$namespace/library.h>
#include <torchext/compat.h>
$runtime

namespace torchext::generated::$namespace {
namespace {

$blocks

} // namespace
} // namespace torchext::generated::$namespace
"""

_DEFINITIONS = """
void register_schemas_$index(torch::Library& m) {
$definitions
}

TORCHEXT_RUN_FIRST void add_schemas_$index() {
  library().add($arguments);
}

"""

_CHECKS = """
void check_overridden_$index() {
$checks
}

TORCHEXT_RUN_FIRST void add_checks_$index() {
  library().check(&check_overridden_$index);
}

"""

# Tags that are empty on a torch that lacks them (compat.h).
_RECENT_TAGS = {"inplace": "TORCHEXT_TAG_INPLACE", "out": "TORCHEXT_TAG_OUT"}


def emit(plan: Plan) -> Iterator[File]:
    """One source for each shard."""
    for index in range(plan.shards):
        shard = plan.shard(index)
        if shard:
            overridden = any(op.override for op in shard)
            text = fill(
                _SOURCE,
                banner=banner(__name__, plan.specs),
                namespace=plan.namespace,
                runtime=["#include <torchext/generated/overriding.h>"] if overridden else [],
                blocks="\n".join(_blocks(shard, index)).rstrip(),
            )
            yield File(f"src/schema_{index}.cpp", text, "part")


def _blocks(shard: list[OperatorPlan], index: int) -> Iterator[str]:
    defined = [_definition(op) for op in shard if not op.override]
    checks = [_check(op, op.override) for op in shard if op.override]
    function = f"&register_schemas_{index}"
    arguments = ["torch::Library::FRAGMENT", "std::nullopt", function]
    if defined:
        yield fill(_DEFINITIONS, index=str(index), arguments=arguments, definitions=defined)
    if checks:
        yield fill(_CHECKS, index=str(index), checks=checks)


def _literal(op: OperatorPlan) -> str:
    """The schema as a C++ string."""
    schema = op.registered_schema.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{schema}"'


def _check(op: OperatorPlan, override: OverridePlan) -> str:
    keys = ", ".join(f"c10::DispatchKey::{key}" for key in override.covers)
    return f"  // {op.spec_line}\n  check_overridden({_literal(op)}, {{{keys}}});"


def _definition(op: OperatorPlan) -> str:
    recent = [_RECENT_TAGS[tag] for tag in op.tags if tag in _RECENT_TAGS]
    others = ", ".join(f"at::Tag::{tag}" for tag in op.tags if tag not in _RECENT_TAGS)
    tags = " ".join([*recent, others]).strip()
    return f"  // {op.spec_line}\n  m.def({_literal(op)}, {{{tags}}});"
