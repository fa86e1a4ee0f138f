# SPDX-License-Identifier: BSD-3-Clause
"""python/nodes_<shard>.cpp and python/module.cpp: the Python class of every backward node.

They are compiled into a library's second shared object, the one that needs Python. Where no
operator has a node there is none.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..cpp.template import fill
from ..output import File, banner
from ..plan.autograd import NodePlan, SavedKind
from ..plan.library import OperatorPlan, Plan
from .spelling.saved import has_property

_SHARD = """
$banner
#include <torchext/generated/python_nodes.h>

#include <$namespace/nodes_$shard.h>

namespace torchext::generated::$namespace {

void add_node_classes_$shard(PyObject* classes) {
$classes
}

} // namespace torchext::generated::$namespace
"""

_CLASS = """
// $location: $schema
add_class<$name>(classes, "$name", {
    $properties
});
"""

_CLASS_WITHOUT_PROPERTIES = """
// $location: $schema
add_class<$name>(classes, "$name", {});
"""

_MODULE = """
$banner
#include <torchext/generated/python_library.h>

namespace torchext::generated::$namespace {

$declarations

TORCHEXT_DEFINE_PYTHON_LIBRARY($namespace, $functions);

} // namespace torchext::generated::$namespace
"""


def emit(plan: Plan) -> Iterator[File]:
    """A source for each shard that has nodes, and one that joins them."""
    head = banner(__name__, plan.specs)
    functions = []
    for index in range(plan.shards):
        shard = [(op, node) for op in plan.shard(index) for node in op.nodes]
        if shard:
            text = fill(
                _SHARD,
                banner=head,
                namespace=plan.namespace,
                shard=str(index),
                classes=_indented("".join(_class(op, node) for op, node in shard)),
            )
            yield File(f"python/nodes_{index}.cpp", text, "python_part")
            functions.append(f"add_node_classes_{index}")
    if functions:
        declarations = [f"void {function}(PyObject* classes);" for function in functions]
        text = fill(
            _MODULE,
            banner=head,
            namespace=plan.namespace,
            declarations=declarations,
            functions=functions,
        )
        yield File("python/module.cpp", text, "python_part")


def _class(op: OperatorPlan, node: NodePlan) -> str:
    values = {"location": node.spec_line, "schema": op.schema, "name": node.name}
    properties = list(_properties(node))
    if not properties:
        return fill(_CLASS_WITHOUT_PROPERTIES, **values)
    return fill(_CLASS, properties=properties, **values)


def _properties(node: NodePlan) -> Iterator[str]:
    for item in node.saved:
        member = f"&{node.name}::{item.member}"
        if has_property(item):
            yield f'saved<{member}>("_saved_{item.name}"),'
        if item.kind is not SavedKind.VALUE:
            yield f'raw_saved<{member}>("_raw_saved_{item.name}"),'


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
