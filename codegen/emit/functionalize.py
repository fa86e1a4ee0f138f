# SPDX-License-Identifier: BSD-3-Clause
"""functionalize_<shard>.cpp: the Functionalize kernels of in-place and out= forms, and of views.

A form calls the functional one of its operator. Operators without one have no such kernel: PyTorch
functionalizes them itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..cpp.template import fill
from ..output import File, banner
from ..plan.library import OperatorPlan, Plan
from .spelling.forms import form_text, traced_view_text

_SOURCE = """
$banner
#include <$namespace/library.h>
#include <torchext/generated/functional_views.h>
#include <torchext/generated/functionalization.h>

namespace torchext::generated::$namespace {
namespace {

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::Functionalize) {
$impls
}

} // namespace
} // namespace torchext::generated::$namespace
"""


def emit(plan: Plan) -> Iterator[File]:
    """One source for each shard that has such forms."""
    for index in range(plan.shards):
        impls = [line for op in plan.shard(index) for line in _impl(plan.namespace, op)]
        if impls:
            text = fill(
                _SOURCE,
                banner=banner(__name__, plan.specs),
                namespace=plan.namespace,
                impls=impls,
            )
            yield File(f"src/functionalize_{index}.cpp", text, "part")


def _impl(namespace: str, op: OperatorPlan) -> Iterator[str]:
    if op.traced:
        yield f'  m.impl("{op.operator.name}", {form_text(namespace, op.traced)});'
    if op.traced_view:
        yield f'  m.impl("{op.operator.name}", {traced_view_text(namespace, op.traced_view)});'
