# SPDX-License-Identifier: BSD-3-Clause
"""ufunc_<group>.cpp and cuda/ufunc_<group>.cu: the loops over the scalar functions of ufuncs.

A scalar function `f` stands in `ufunc/f.h` on the include path, in `NS::native::ufunc`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..cpp.signatures import Parameter
from ..cpp.template import Value, fill
from ..output import File, banner
from ..plan.kernels import StructuredPlan, UfuncPlan
from ..plan.library import OperatorPlan, Plan

_CPU = """
$banner
#include <torchext/cpu_loops.h> // first

#include <ATen/Dispatch.h>
$includes

namespace torchext::generated::$namespace {
namespace {

$loops

} // namespace
} // namespace torchext::generated::$namespace

$kernels
"""

_CUDA = """
$banner
#include <ATen/Dispatch.h>
#include <ATen/native/cuda/Loops.cuh>
$includes

namespace torchext::generated::$namespace {
namespace {

$loops

} // namespace
} // namespace torchext::generated::$namespace

$kernels
"""

_CPU_LOOP = """
// $location: $schema
template <typename scalar_t>
void $loop($parameters) {
  using opmath_t = at::opmath_type<scalar_t>;
$values
  $kernel<scalar_t>(iter, [=]($operands) {
    return static_cast<opmath_t>(::$namespace::native::ufunc::$function($arguments));
  });
}
"""

_CUDA_LOOP = """
// $location: $schema
template <typename scalar_t>
struct $functor {
  using opmath_t = at::opmath_type<scalar_t>;
$members

  __device__ __forceinline__ $type operator()($operands) const {
    return static_cast<$type>(::$namespace::native::ufunc::$function($arguments));
  }
};

template <typename scalar_t>
void $loop($parameters) {
$values
  at::native::$kernel(iter, $functor<scalar_t>{$fields});
}
"""

_KERNEL = """
$prototype {
  AT_DISPATCH_SWITCH(
      common_dtype(),
      "$name",
$cases);
}
"""

_CPU_KERNELS = {1: "unary_kernel", 2: "binary_loop", 3: "ternary_kernel"}


def emit(plan: Plan) -> Iterator[File]:
    """For each group that has ufuncs one source for each device."""
    head = banner(__name__, plan.specs)
    for group, operators in plan.groups().items():
        found = [(op, op.structured) for op in operators if op.structured and op.structured.ufunc]
        if not found:
            continue
        paths = {"CPU": f"src/ufunc_{group}.cpp", "CUDA": f"src/cuda/ufunc_{group}.cu"}
        for device, path in paths.items():
            text = fill(
                _CPU if device == "CPU" else _CUDA,
                banner=head,
                namespace=plan.namespace,
                includes=[
                    f"#include <{plan.namespace}/kernels/{group}.h>",
                    *(f"#include <ufunc/{name}.h>" for name in _functions(found, device)),
                ],
                loops=_joined(
                    _loop(plan.namespace, op, item, device, name)
                    for op, item in found
                    for name in _functions([(op, item)], device)
                ),
                kernels=_joined(_kernel(plan.namespace, op, item, device) for op, item in found),
            )
            yield File(path, text, "source")


def _joined(blocks: Iterator[str]) -> str:
    return "\n".join(blocks).rstrip()


def _dtypes(ufunc: UfuncPlan, device: str) -> tuple[tuple[str, str], ...]:
    return ufunc.cpu if device == "CPU" else ufunc.cuda


def _functions(found: list[tuple[OperatorPlan, StructuredPlan]], device: str) -> list[str]:
    """The scalar functions that the loops of a device call."""
    names = (name for _, item in found if item.ufunc for _, name in _dtypes(item.ufunc, device))
    return sorted(set(names))


def _loop_name(op: OperatorPlan, function: str) -> str:
    return f"{op.handle}_{function}"


Scalars = list[tuple[Parameter, bool]]


def _scalars(plan: StructuredPlan, ufunc: UfuncPlan) -> Scalars:
    """The parameters that are no operands, and whether each is an at::Scalar."""
    kinds = dict(ufunc.scalars)
    return [(p, kinds[p.name]) for p in plan.impl.parameters if p.name in kinds]


def _loop(
    namespace: str, op: OperatorPlan, plan: StructuredPlan, device: str, function: str
) -> str:
    """The function that runs one scalar function over an iterator."""
    ufunc = plan.ufunc
    assert ufunc is not None
    scalars = _scalars(plan, ufunc)
    spell = _cpu_loop if device == "CPU" else _cuda_loop
    return spell(
        ufunc,
        scalars,
        [p.name for p in plan.meta.parameters],
        location=op.spec_line,
        schema=op.schema,
        namespace=namespace,
        function=function,
        loop=_loop_name(op, function),
        parameters=["at::TensorIteratorBase& iter", *(p.declaration for p, _ in scalars)],
    )


def _value_names(ufunc: UfuncPlan, scalars: Scalars) -> dict[str, str]:
    """What the scalar function is handed for each parameter that is no operand."""
    taken = {*ufunc.tensors, *(p.name for p, _ in scalars)}
    names: dict[str, str] = {}
    for parameter, is_scalar in scalars:
        name = f"{parameter.name}_value" if is_scalar else parameter.name
        while is_scalar and name in taken:
            name += "_"
        names[parameter.name] = name
        taken.add(name)
    return names


def _checks(scalars: Scalars) -> list[str]:
    return [
        f"  (void){p.name}.to<scalar_t>(); // refuses what the dtype cannot hold"
        for p, is_scalar in scalars
        if is_scalar
    ]


def _cpu_loop(ufunc: UfuncPlan, scalars: Scalars, inputs: list[str], **common: Value) -> str:
    names = _value_names(ufunc, scalars)
    values = [
        f"  const auto {names[p.name]} = {p.name}.to<opmath_t>();"
        for p, is_scalar in scalars
        if is_scalar
    ]
    return fill(
        _CPU_LOOP,
        values=[*_checks(scalars), *values],
        kernel=_CPU_KERNELS[len(ufunc.tensors)],
        operands=[f"opmath_t {name}" for name in ufunc.tensors],
        arguments=[names.get(name, name) for name in inputs],
        **common,
    )


def _cuda_loop(ufunc: UfuncPlan, scalars: Scalars, inputs: list[str], **common: Value) -> str:
    names = _value_names(ufunc, scalars)
    is_binary = len(ufunc.tensors) == 2
    type_ = "opmath_t" if is_binary else "scalar_t"
    members = [
        f"  {'opmath_t' if is_scalar else p.type} {names[p.name]};" for p, is_scalar in scalars
    ]
    fields = [
        f"{p.name}.to<at::opmath_type<scalar_t>>()" if is_scalar else p.name
        for p, is_scalar in scalars
    ]
    operands = {n: n if is_binary else f"static_cast<opmath_t>({n})" for n in ufunc.tensors}
    return fill(
        _CUDA_LOOP,
        functor=f"{common['loop']}_functor",
        members=members,
        type=type_,
        operands=[f"{type_} {name}" for name in ufunc.tensors],
        arguments=[{**names, **operands}[name] for name in inputs],
        values=_checks(scalars),
        kernel="opmath_gpu_kernel_with_scalars<scalar_t>" if is_binary else "gpu_kernel",
        fields=fields,
        **common,
    )


def _kernel(namespace: str, op: OperatorPlan, plan: StructuredPlan, device: str) -> str:
    ufunc = plan.ufunc
    assert ufunc is not None
    class_ = next(k.name for k in plan.kernels if k.keys == (device,))
    arguments = ", ".join(["*this", *(p.name for p, _ in _scalars(plan, ufunc))])
    space = f"torchext::generated::{namespace}"
    cases = [
        f"      AT_DISPATCH_CASE(at::ScalarType::{dtype}, [&] {{\n"
        f"        {space}::{_loop_name(op, function)}<scalar_t>({arguments});\n"
        f"      }})"
        for dtype, function in _dtypes(ufunc, device)
    ]
    return fill(
        _KERNEL,
        prototype=plan.impl.prototype(f"{class_}::impl"),
        name=f"{namespace}::{op.operator.name.base}",
        cases="\n".join(cases),
    )
