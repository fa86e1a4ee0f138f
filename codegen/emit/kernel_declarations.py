# SPDX-License-Identifier: BSD-3-Clause
"""kernels/<group>.h and kernels.h: prototypes of the kernels that the library's author defines.

Kernels are defined by qualified name against them, so that the compiler refuses another signature
and the linker names a missing one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..output import File, banner
from ..plan import OperatorPlan, Plan
from ..template import fill

_HEADER = """
$banner
#pragma once

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymBool.h>

namespace c10 {
class OperatorHandle;
} // namespace c10

$declarations
"""

_NAMESPACE = """
namespace $namespace {

$prototypes

} // namespace $namespace
"""

_DECLARATION = """
$comments
$prototype;
"""

_BOXED = "void $name(const c10::OperatorHandle& op, torch::jit::Stack* stack)"

_ALL = """
$banner
#pragma once

$includes
"""


def emit(plan: Plan) -> Iterator[File]:
    """One header for each group, and one that includes them all."""
    head = banner(__name__, plan.specs)
    folder = f"include/{plan.namespace}"
    groups = []
    for group, operators in plan.groups().items():
        declarations = list(_declarations(operators))
        if declarations:
            groups.append(group)
            text = fill(_HEADER, banner=head, declarations="\n".join(declarations).rstrip())
            yield File(f"{folder}/kernels/{group}.h", text, "header")
    includes = [f"#include <{plan.namespace}/kernels/{group}.h>" for group in sorted(groups)]
    yield File(f"{folder}/kernels.h", fill(_ALL, banner=head, includes=includes), "header")


def _declarations(operators: list[OperatorPlan]) -> Iterator[str]:
    """Each kernel once in its namespace, with every operator and key that it serves above it."""
    found: dict[str, dict[str, list[str]]] = {}
    for op in operators:
        for kernel in op.kernels:
            if kernel.is_fallback:
                continue
            space, _, name = kernel.function.rpartition("::")
            signature = kernel.signature
            prototype = signature.prototype(name) if signature else _BOXED.replace("$name", name)
            comment = f"// {op.spec_line}: {kernel.key}: {op.schema}"
            found.setdefault(space, {}).setdefault(prototype, []).append(comment)
    for space, prototypes in found.items():
        blocks = [
            fill(_DECLARATION, comments=comments, prototype=prototype)
            for prototype, comments in prototypes.items()
        ]
        yield fill(_NAMESPACE, namespace=space, prototypes="\n".join(blocks).rstrip())
