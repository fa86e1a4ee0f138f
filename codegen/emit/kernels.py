# SPDX-License-Identifier: BSD-3-Clause
"""kernels/<group>.h and kernels.h: prototypes of the kernels that the library's author defines.

Kernels are defined by qualified name against them, so that the compiler refuses another signature
and the linker names a missing one. Structured operators have classes in place of functions.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..cpp.template import fill
from ..output import File, banner
from ..plan.library import OperatorPlan, Plan
from .spelling.structured import declarations, includes

_HEADER = """
$banner
#pragma once

$includes

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
        found = list(_declarations(operators))
        if found:
            groups.append(group)
            structured = [op.structured for op in operators if op.structured]
            text = fill(
                _HEADER,
                banner=head,
                includes=[*_includes(operators), *includes(structured)],
                declarations="\n".join(found).rstrip(),
            )
            yield File(f"{folder}/kernels/{group}.h", text, "header")
    everything = [f"#include <{plan.namespace}/kernels/{group}.h>" for group in sorted(groups)]
    yield File(f"{folder}/kernels.h", fill(_ALL, banner=head, includes=everything), "header")


def _includes(operators: list[OperatorPlan]) -> list[str]:
    kernels = (kernel for op in operators for kernel in op.kernels if kernel.is_declared)
    is_boxed = any(kernel.declared is None for kernel in kernels)
    boxed = ["#include <torchext/generated/boxed_kernel.h>"] if is_boxed else []
    return [*boxed, "#include <torchext/generated/operator_types.h>"]


def _declarations(operators: list[OperatorPlan]) -> Iterator[str]:
    """Structured operators' classes, then each kernel once, with every operator and key that it
    serves above it; by namespace."""
    blocks: dict[str, list[str]] = {}
    for op in operators:
        for space, text in declarations(op, op.structured) if op.structured else ():
            blocks.setdefault(space, []).append(text)
    for space, prototypes in _prototypes(operators).items():
        for prototype, served in prototypes.items():
            comments = [f"// {place}: {', '.join(names)}" for place, names in served.items()]
            text = fill(_DECLARATION, comments=comments, prototype=prototype)
            blocks.setdefault(space, []).append(text)
    for space, texts in blocks.items():
        yield fill(_NAMESPACE, namespace=space, prototypes="\n".join(texts).rstrip())


def _prototypes(operators: list[OperatorPlan]) -> dict[str, dict[str, dict[str, list[str]]]]:
    """Namespace, prototype, and line of the spec with a dispatch key, to the operators that the
    kernel serves there."""
    found: dict[str, dict[str, dict[str, list[str]]]] = {}
    for op in operators:
        for kernel in op.kernels:
            if not kernel.is_declared:
                continue
            space, _, name = str(kernel.own).rpartition("::")
            signature = kernel.declared
            prototype = signature.prototype(name) if signature else _BOXED.replace("$name", name)
            served = found.setdefault(space, {}).setdefault(prototype, {})
            boxed = "" if signature else " (boxed: a type in it has no C++ spelling)"
            names = served.setdefault(f"{op.spec_line}: {kernel.key}", [])
            names.append(f"{op.operator.name}{boxed}")
    return found
