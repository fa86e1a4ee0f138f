# SPDX-License-Identifier: BSD-3-Clause
"""ops/<group>.h, ops.h and ops_<shard>.cpp: the C++ API, through the dispatcher."""

from __future__ import annotations

from collections.abc import Iterator

from ..cpp.folding import packed
from ..cpp.signatures import Signature
from ..cpp.template import fill
from ..output import File, banner
from ..plan.library import OperatorPlan, Plan
from .spelling.headers import ops_includes
from .spelling.lists import passed

_HEADER = """
$banner
#pragma once

$fixed_lists
#include <torchext/generated/operator.h>

namespace torchext::generated::$namespace::operators {

$handles

} // namespace torchext::generated::$namespace::operators

$api
"""

_API = """
namespace $namespace {

$functions

} // namespace $namespace
"""

_HANDLE = """
// $location: $schema
struct TORCHEXT_API $handle : Operator<$handle, $type> {
  static constexpr auto name = "$name", overload_name = "$overload";
};
"""

_FUNCTION = """
$doc
inline $prototype {
  return ::torchext::generated::$namespace::operators::$handle::call($arguments);
}
"""

_SOURCE = """
$banner
#include <torchext/generated/operator_handle.h>

$includes

namespace torchext {
namespace operators = generated::$namespace::operators;

template struct DefinitionsOf<$handles>;

} // namespace torchext
"""

_ALL = """
$banner
#pragma once

$includes
"""


def emit(plan: Plan) -> Iterator[File]:
    """A header for each group, one that includes them all, and a source for each shard."""
    head, space = banner(__name__, plan.specs), plan.namespace
    groups = {
        group: [op for op in operators if op.signature]
        for group, operators in plan.groups().items()
    }
    groups = {group: operators for group, operators in groups.items() if operators}
    for group, operators in groups.items():
        text = fill(
            _HEADER,
            banner=head,
            namespace=space,
            handles=_joined(_handle(space, op, op.signature) for op in operators if op.signature),
            fixed_lists=["#include <torchext/generated/fixed_list.h>"]
            if any(map(_repeats, operators))
            else [],
            api=_api(space, [op for op in operators if op.api]),
        )
        yield File(f"include/{space}/ops/{group}.h", text, "header")
    includes = [f"#include <{space}/ops/{group}.h>" for group in sorted(groups)]
    yield File(f"include/{space}/ops.h", fill(_ALL, banner=head, includes=includes), "header")
    for index in range(plan.shards):
        shard = [op for op in plan.shard(index) if op.signature]
        if shard:
            text = fill(
                _SOURCE,
                banner=head,
                namespace=space,
                includes=ops_includes(plan, {op.group for op in shard}),
                handles=packed(f"operators::{op.handle}" for op in shard),
            )
            yield File(f"src/ops_{index}.cpp", text, "part")


def _api(namespace: str, operators: list[OperatorPlan]) -> str | list[str]:
    """The functions of the C++ API; nothing where all of a group are written by hand."""
    if not operators:
        return []
    functions = _joined(
        _function(namespace, op, op.api.signature.prototype(name, defaults=True))
        for op in operators
        if op.api
        for name in op.api.names
    )
    return fill(_API, namespace=namespace, functions=functions).rstrip()


def _joined(blocks: Iterator[str]) -> str:
    return "\n".join(blocks).rstrip()


def _handle(namespace: str, op: OperatorPlan, signature: Signature) -> str:
    name = op.operator.name
    return fill(
        _HANDLE,
        location=op.spec_line,
        schema=op.schema,
        handle=op.handle,
        type=signature.type,
        name=f"{namespace}::{name.base}",
        overload=name.overload,
    )


def _function(namespace: str, op: OperatorPlan, prototype: str) -> str:
    doc = op.operator.doc.strip() or f"{op.schema}"
    return fill(
        _FUNCTION,
        namespace=namespace,
        doc=[_comment(line) for line in doc.splitlines()],
        prototype=prototype,
        handle=op.handle,
        arguments=", ".join(passed(p.name, op.repeated) for p in op.signature.parameters),
    )


def _repeats(op: OperatorPlan) -> bool:
    return bool(op.api and op.repeated)


def _comment(line: str) -> str:
    """A line of a comment; a backslash at its end would continue the comment on the next line, and
    so would the trigraph for one."""
    text = f"/// {line}".rstrip().replace("??/", "?? /")
    return f"{text}." if text.endswith("\\") else text
