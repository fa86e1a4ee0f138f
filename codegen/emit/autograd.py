# SPDX-License-Identifier: BSD-3-Clause
"""autograd_<shard>.cpp: what stands on the autograd keys of every operator.

Operators with formulas get a kernel that records their node and computes their tangents; the others
the not-implemented one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ..cpp.template import fill
from ..output import File, banner, own_includes
from ..plan.autograd import Autograd, Recording, Unrecorded
from ..plan.calls import DeclaredForm
from ..plan.library import OperatorPlan, Plan
from .spelling.autograd import kernel
from .spelling.forms import form_text
from .spelling.headers import ops_includes

_SOURCE = """
$banner
#include <$namespace/library.h>
#include <torchext/generated/autograd_not_implemented.h>
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
TORCHEXT_LIBRARY_IMPL(m, DispatchKey::$key) {
$impls
}

"""

_USING = ["using namespace at;", "using namespace torchext::derivatives;"]

_UNRECORDED = {
    Unrecorded.NOT_IMPLEMENTED: "autograd_not_implemented()",
    Unrecorded.IGNORED: "autograd_ignored()",
}

_FORMULA_INCLUDES = ["#include <ATen/Functions.h>", "#include <torchext/derivative_helpers.h>"]


def emit(plan: Plan) -> Iterator[File]:
    """One source for each shard that has anything on the autograd keys."""
    for index in range(plan.shards):
        shard = plan.shard(index)
        registrations = list(_registrations(plan, shard))
        if not registrations:
            continue
        keyed = [(op, key, a) for op in shard for key, a in op.recordings]
        evaluates = any(a.evaluates for _, _, a in keyed)
        kernels = [kernel(plan.namespace, op, key, a) for op, key, a in keyed]
        text = fill(
            _SOURCE,
            banner=banner(__name__, plan.specs),
            namespace=plan.namespace,
            runtime=list(_runtime(shard)),
            includes=_includes(plan, index, keyed, evaluates),
            using=_USING if evaluates else [],
            kernels="\n".join(kernels).rstrip("\n") + "\n" if kernels else [],
            registrations="\n".join(registrations),
        )
        yield File(f"src/autograd_{index}.cpp", text, "part")


def _runtime(shard: list[OperatorPlan]) -> Iterator[str]:
    """The headers of the kernels that are there once for all operators."""
    forms = (op.on_autograd for op in shard if isinstance(op.on_autograd, DeclaredForm))
    for header in sorted({form.header for form in forms}):
        yield f"#include <torchext/generated/{header}.h>"
    if any(op.repeated and op.recordings for op in shard):
        yield "#include <torchext/generated/fixed_list.h>"
    if any(op.is_traced_on_copies for op in shard):
        yield "#include <torchext/generated/functionalization.h>"
    if any(op.tracked for op in shard):
        yield "#include <torchext/generated/views.h>"


def _includes(
    plan: Plan,
    index: int,
    keyed: list[tuple[OperatorPlan, str, Recording]],
    evaluates: bool,
) -> list[str]:
    """The nodes and operators of the shard, and what its formulas call."""
    groups = plan.group_of_api
    own = {op.group for op, _, _ in keyed}
    called = {groups[name] for _, _, a in keyed for name in a.calls if name in groups}
    found = [f"#include <{plan.namespace}/nodes_{index}.h>"] if own else []
    found += ops_includes(plan, own | called)
    if not evaluates:
        return found
    return [*found, *_FORMULA_INCLUDES, *own_includes(plan.formula_headers)]


def _registrations(plan: Plan, shard: list[OperatorPlan]) -> Iterator[str]:
    """One registration for each key that an operator has a kernel on."""
    by_key: dict[str, list[str]] = {}
    for op in shard:
        for key, found in op.autograd:
            function = _function(plan.namespace, op, key, found)
            by_key.setdefault(key, []).append(f'  m.impl("{op.operator.name}", {function});')
    for op in shard:
        if op.tracked:
            by_key.setdefault("ADInplaceOrView", []).append(_tracking(plan.namespace, op))
    for key, impls in by_key.items():
        yield fill(_REGISTRATION, key=key, impls=impls)


def _tracking(namespace: str, op: OperatorPlan) -> str:
    if op.is_traced_on_copies:
        form = dataclasses.replace(op.traced, function="traced_on_copies")
        return f'  m.impl("{op.operator.name}", {form_text(namespace, form)});'
    return f'  m.impl("{op.operator.name}", tracked_aliases(Views::{op.tracked.value}));'


def _function(namespace: str, op: OperatorPlan, key: str, kernel: Autograd) -> str:
    """The value that is registered for the key."""
    match kernel:
        case Recording():
            return f"&{key.lower()}_{op.handle}"
        case Unrecorded():
            return _UNRECORDED[kernel]
    return form_text(namespace, kernel)
