# SPDX-License-Identifier: BSD-3-Clause
"""fused_<part>.h, fused_<part>.cpp, fused_loops_<part>.cpp, cuda/fused_<part>.cu: expressions.

The header has for each operator what computes one value of each result, of values of any type; the
loops call it with vectors, and are compiled once for each instruction set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..cpp.template import fill
from ..output import File, banner
from ..plan.fused import FusedFunction, FusedPlan, Runs
from ..plan.library import OperatorPlan, Plan
from .spelling.fused import shared_value
from .spelling.fused_struct import struct

_HEADER = """
$banner
#pragma once

#include <torchext/fused/rows.h>
#include <torchext/fused/values.h>

namespace torchext::generated::$namespace {
namespace expressions {

$structs

} // namespace expressions

namespace loops {

using ::torchext::fused::Loops;
using ::torchext::fused::RowLoops;

$tables

} // namespace loops
} // namespace torchext::generated::$namespace
"""

_TABLES = """
namespace $capability {
$loops
} // namespace $capability
"""

_LOOPS = """
$banner
#include <torchext/fused/cpu_rows.h> // first

#include "../include/$namespace/fused_$part.h"

namespace torchext::generated::$namespace::loops::CPU_CAPABILITY {

$loops

} // namespace torchext::generated::$namespace::loops::CPU_CAPABILITY
"""

_SOURCE = """
$banner
$precompiled
$includes

namespace {

using namespace torchext::generated::$namespace::loops;
namespace expressions = torchext::generated::$namespace::expressions;
namespace fused = torchext::fused;

} // namespace

$functions
"""

_FUNCTION = """
// $location: $schema
$prototype {
  using Op = expressions::$struct;
  const fused::Held<Op> held{{$tensors}, {$scalars}, {$numbers}, {$conditions}};
$body
}
"""

_CPU = ("DEFAULT", "AVX2", "AVX512")
_LOOPS_OF = {False: ("Loops", "loops"), True: ("RowLoops", "row_loops")}
_COMPOSITE = "return fused::returned<Op>(fused::composite_results($known, $held, $wanted));"
_BODIES = {
    Runs.STRUCTURED_META: "build(fused::Operands($known, $held).with_result(maybe_get_output()));",
    Runs.STRUCTURED_LOOP: {
        "CPU": "fused::run_on_cpu($known, *this, $loops, $held);",
        "CUDA": "fused::write_on_cuda<Op>($known, *this, $held);",
    },
    Runs.META: "return fused::returned<Op>(fused::meta_results($known, $held, $wanted));",
    Runs.LOOP: {
        "CPU": "return fused::returned<Op>(fused::new_on_cpu($known, $loops, $held, $wanted));",
        "CUDA": "return fused::returned<Op>(fused::new_on_cuda<Op>($known, $held, $wanted));",
    },
    Runs.COMPOSITE: _COMPOSITE,
    Runs.AUTOGRAD: (
        "if (fused::is_differentiated($held)) {\n"
        f"  {_COMPOSITE}\n"
        "}\n"
        "const at::AutoDispatchBelowAutograd below;\n"
        "return $handle::call($names);"
    ),
}


def emit(plan: Plan) -> Iterator[File]:
    """The expressions of each part, their loops, and the kernels that run them."""
    for index in range(plan.fused_parts):
        found = [(op, op.fused) for op in plan.fused_part(index)]
        if found:
            structs = {fused.struct: (op, fused) for op, fused in reversed(found)}
            yield from _expressions(plan, index, dict(reversed(structs.items())))
            yield from _kernels(plan, index, found)


def _expressions(
    plan: Plan, index: int, structs: Mapping[str, tuple[OperatorPlan, FusedPlan]]
) -> Iterator[File]:
    head = banner(__name__, plan.specs)
    names = {name: _LOOPS_OF[fused.rows is not None] for name, (_, fused) in structs.items()}
    header = fill(
        _HEADER,
        banner=head,
        namespace=plan.namespace,
        structs=_joined(struct(plan.namespace, *found) for found in structs.values()),
        tables=_joined(_tables(capability, names) for capability in _CPU),
    )
    yield File(f"include/{plan.namespace}/fused_{index}.h", header, "header")
    loops = [
        f"const {type_} {name} = ::torchext::fused::{function}<expressions::{name}>();"
        for name, (type_, function) in names.items()
    ]
    text_ = fill(
        _LOOPS, banner=head, namespace=plan.namespace, part=str(index), loops="\n".join(loops)
    )
    yield File(f"src/fused_loops_{index}.cpp", text_, "vector_source")


def _kernels(plan: Plan, index: int, found: list[tuple[OperatorPlan, FusedPlan]]) -> Iterator[File]:
    for device, path in (("CPU", "src/fused_{}.cpp"), ("CUDA", "src/cuda/fused_{}.cu")):
        functions = list(_functions(plan.namespace, found, device))
        if functions:
            text_ = fill(
                _SOURCE,
                banner=banner(__name__, plan.specs),
                precompiled=["#include <torchext/precompiled.h>", ""] if device == "CPU" else [],
                includes=_includes(plan, index, [op for op, _ in found], device),
                namespace=plan.namespace,
                functions=_joined(iter(functions)),
            )
            yield File(path.format(index), text_, "source")


def _includes(plan: Plan, index: int, operators: list[OperatorPlan], device: str) -> list[str]:
    own = "row_operands.h" if device == "CPU" else "cuda_rows.cuh"
    return [
        f"#include <torchext/fused/{own}>",
        "",
        f"#include <{plan.namespace}/fused_{index}.h>",
        *(f"#include <{plan.namespace}/kernels/{group}.h>" for group in _groups(operators)),
        *(
            f"#include <{plan.namespace}/ops/{group}.h>"
            for group in _groups(op for op in operators if _is_called(op.fused))
            if device == "CPU"
        ),
    ]


def _groups(operators: object) -> list[str]:
    return sorted({op.group for op in operators})


def _is_called(plan: FusedPlan) -> bool:
    return any(function.runs is Runs.AUTOGRAD for function in plan.functions)


def _joined(blocks: Iterator[str]) -> str:
    return "\n".join(blocks).rstrip()


def _tables(capability: str, names: Mapping[str, tuple[str, str]]) -> str:
    loops = [f"extern const {type_} {name};" for name, (type_, _) in names.items()]
    return fill(_TABLES, capability=capability, loops=loops)


def _functions(
    namespace: str, found: list[tuple[OperatorPlan, FusedPlan]], device: str
) -> Iterator[str]:
    for op, plan in found:
        for function in plan.functions:
            if (function.key == "CUDA") == (device == "CUDA"):
                yield _function(namespace, op, plan, function)


def _function(namespace: str, op: OperatorPlan, plan: FusedPlan, function: FusedFunction) -> str:
    body = _BODIES[function.runs]
    words = body if isinstance(body, str) else body[function.key]
    is_structured = function.runs in (Runs.STRUCTURED_META, Runs.STRUCTURED_LOOP)
    member = "meta" if function.runs is Runs.STRUCTURED_META else "impl"
    name = f"{function.name}::{member}" if is_structured else function.name
    values = {
        "$known": "fused::described<Op>",
        "$held": "held.arguments()",
        "$loops": f"*TORCHEXT_VECTORIZED({plan.struct})",
        "$wanted": plan.mask or "fused::all<Op>()",
        "$handle": f"torchext::generated::{namespace}::operators::{op.handle}",
        "$names": function.signature.names,
    }
    parameters = dict(plan.scalars)
    for hole, value in values.items():
        words = words.replace(hole, value)
    return fill(
        _FUNCTION,
        location=op.spec_line,
        schema=op.schema,
        prototype=function.signature.prototype(name),
        struct=plan.struct,
        tensors=[f"fused::ref({item.parameter})" for item in plan.inputs],
        scalars=[parameter for _, parameter in plan.scalars],
        numbers=[f"fused::shared({shared_value(n, parameters)})" for n in plan.numbers],
        conditions=[shared_value(condition, parameters) for condition in plan.conditions],
        body=[f"  {line}" for line in words.split("\n")],
    )
