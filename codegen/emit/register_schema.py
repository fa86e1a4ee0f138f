# SPDX-License-Identifier: BSD-3-Clause
"""schema_<shard>.cpp: the schema of every operator, with its tags."""

from __future__ import annotations

from collections.abc import Iterator

from ..output import File, banner
from ..plan import OperatorPlan, Plan
from ..template import fill

_SOURCE = """
$banner
#include <ATen/core/enum_tag.h>
#include <$namespace/library.h>
#include <torchext/compat.h>

namespace torchext::generated::$namespace {
namespace {

void register_schemas_$index(torch::Library& m) {
$definitions
}

TORCHEXT_RUN_FIRST void add_schemas_$index() {
  library().add($arguments);
}

} // namespace
} // namespace torchext::generated::$namespace
"""

# Tags that are empty on a torch that lacks them (compat.h).
_RECENT_TAGS = {"inplace": "TORCHEXT_TAG_INPLACE", "out": "TORCHEXT_TAG_OUT"}


def emit(plan: Plan) -> Iterator[File]:
    """One source for each shard."""
    for index in range(plan.shards):
        shard = plan.shard(index)
        if shard:
            text = fill(
                _SOURCE,
                banner=banner(__name__, plan.specs),
                namespace=plan.namespace,
                index=str(index),
                arguments=[
                    "torch::Library::FRAGMENT",
                    "std::nullopt",
                    f"&register_schemas_{index}",
                ],
                definitions=[_definition(op) for op in shard],
            )
            yield File(f"src/schema_{index}.cpp", text, "source")


def _definition(op: OperatorPlan) -> str:
    schema = op.schema.replace("\\", "\\\\").replace('"', '\\"')
    recent = [_RECENT_TAGS[tag] for tag in op.tags if tag in _RECENT_TAGS]
    others = ", ".join(f"at::Tag::{tag}" for tag in op.tags if tag not in _RECENT_TAGS)
    tags = " ".join([*recent, others]).strip()
    return f'  // {op.spec_line}\n  m.def("{schema}", {{{tags}}});'
