# SPDX-License-Identifier: BSD-3-Clause
"""What each emitter writes for a spec of a few operators, whole.

To accept a change after reading it: EXPECTTEST_ACCEPT=1 python -m pytest tests/codegen/test_emit_goldens.py
"""

import unittest

from expecttest import TestCase

from codegen.analysis.library import plan_library
from codegen.emit import (
    autograd,
    batching,
    dispatch,
    functionalize,
    kernels,
    library,
    nodes,
    operator_table,
    ops,
    python_nodes,
    rules,
    schema,
    ufunc,
)
from codegen.errors import Errors
from codegen.output import FileSet
from codegen.spec.load import load_derivatives, load_operators

# A formula for each tensor, tangents, a fallback, a guarded kernel; a list, an optional and a mask; an
# in-place form that inherits its formulas; a view; a composite operator with an argument whose name is a C++ keyword;
# structured operators: a ufunc over an iterator, and a class that hands values to its kernels; a
# rule of results, with an out= form, rows, a layout and dtypes for each device; what is written to in
# a layout; samples.
NATIVE_FUNCTIONS = """\
- func: mul.Tensor(Tensor self, Tensor other) -> Tensor
  tags: pointwise
  dispatch:
    CPU, Meta: mul
    CUDA: mul_cuda
    PrivateUse1: cpu_fallback
  doc: Multiplies `self` by `other`.

- func: blend(Tensor[] parts, Tensor? weight=None, SymInt[2] size=1, *, float eps=1e-6) -> (Tensor blended, Tensor total)
  device_check: NoCheck
  dispatch:
    CPU: blend_symint
    XPU: other::blend

- func: mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
  dispatch:
    CPU: mul_

- func: halves(Tensor(a) self) -> Tensor(a)[]
  pt2_compliant: False
  dispatch:
    CompositeExplicitAutograd: halves

- func: halve(Tensor self, *, bool default=True) -> Tensor

- func: scale(Tensor self, Scalar factor) -> Tensor
  samples:
    - {self: [2, 3], factor: 0.5}
    - {self: {size: [], dtype: float64, low: -.inf}, factor: 2-1.5j}
  device_check: NoCheck
  structured_delegate: scale.out

- func: scale_(Tensor(a!) self, Scalar factor) -> Tensor(a!)
  device_check: NoCheck
  structured_delegate: scale.out

- func: scale.out(Tensor self, Scalar factor, *, Tensor(a!) out) -> Tensor(a!)
  device_check: NoCheck
  structured: True
  structured_inherits: TensorIteratorBase
  ufunc_inner_loop: scale (Float, Double)
  dtypes: Floating
  vmap: pointwise

- func: extremes(Tensor self, Tensor? weight, int dim) -> (Tensor least, Tensor most)
  structured_delegate: extremes.out

- func: extremes.out(Tensor self, Tensor? weight, int dim, *, Tensor(a!) least, Tensor(b!) most) -> (Tensor(a!) least, Tensor(b!) most)
  structured: True
  precomputed:
    - dim -> int dim, int size
  dispatch:
    CPU: extremes_cpu
    XPU: extremes_xpu
    CUDA: cpu_fallback

- func: halved(Tensor self, Tensor? weight, SymInt n) -> Tensor
  autogen: halved.out
  meta:
    check:
      - weight.shape == self.shape[-1:]
    size: self.shape[:-1] + (self.shape[-1] // n,)
    dtype: self
  vmap: leading
  layout:
    self: last_dim_contiguous
  dispatch:
    CPU: halved_cpu
    CUDA: halved_symint
  dtypes:
    CPU: Floating
    CUDA: {self: [Floating, float16, bfloat16], weight: float32}

- func: swap(Tensor(a!) first, Tensor(b!) second) -> (Tensor(a!), Tensor(b!))
  layout:
    first: contiguous
  dispatch:
    CUDA: swap

- func: fill(Tensor(a!) self) -> Tensor
  layout:
    self: contiguous
  dispatch:
    CPU: fill
"""

DERIVATIVES = """\
- headers: goldens/formulas.h

- name: mul.Tensor(Tensor self, Tensor other) -> Tensor
  self: grad * other
  other: grad * self
  result: other_t * self_p + self_t * other_p

- name: blend(Tensor[] parts, Tensor? weight=None, SymInt[2] size=1, *, float eps=1e-6) -> (Tensor blended, Tensor total)
  output_differentiability: [True, False]
  parts, weight: goldens::formulas::blend_backward(grad_blended, parts, weight, total, eps, grad_input_mask)
  blended: weight_t * total
"""


def generate(folder, emitter):
    """Everything that one emitter writes, as `=== path` and text."""
    specs = {"native_functions.yaml": NATIVE_FUNCTIONS, "derivatives.yaml": DERIVATIVES}
    for name, text in specs.items():
        (folder / name).write_text(text)
    errors = Errors()
    loaded = load_operators(folder / "native_functions.yaml", "native_functions.yaml", errors)
    formulas = load_derivatives(folder / "derivatives.yaml", "derivatives.yaml", errors)
    plan = plan_library("goldens", tuple(specs), loaded, formulas, errors)
    errors.raise_if_any()
    files = FileSet()
    files.add(emitter.emit(plan))
    return "".join(f"=== {path}\n{file.text}" for path, file in sorted(files.files.items()))


class TestGoldens(TestCase):
    def generated(self, emitter):
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory() as folder:
            return generate(Path(folder), emitter)

    def test_library(self):
        self.assertExpectedInline(
            self.generated(library),
            """\
=== include/goldens/library.h
// Generated by codegen.emit.library from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/library.h>

namespace torchext::generated::goldens {

/// What this shared object registers in namespace `goldens`.
OperatorLibrary& library();

} // namespace torchext::generated::goldens
=== src/library.cpp
// Generated by codegen.emit.library from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#include <goldens/library.h>
#include <torchext/generated/compile_cache.h>

TORCHEXT_DEFINE_LIBRARY(goldens);
TORCHEXT_TAG_COMPILE_CACHE(goldens);
""",
        )

    def test_kernels(self):
        self.assertExpectedInline(
            self.generated(kernels),
            """\
=== include/goldens/kernels.h
// Generated by codegen.emit.kernels from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <goldens/kernels/blend.h>
#include <goldens/kernels/extremes.h>
#include <goldens/kernels/fill.h>
#include <goldens/kernels/halve.h>
#include <goldens/kernels/halved.h>
#include <goldens/kernels/halves.h>
#include <goldens/kernels/mul.h>
#include <goldens/kernels/scale.h>
#include <goldens/kernels/swap.h>
=== include/goldens/kernels/blend.h
// Generated by codegen.emit.kernels from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator_types.h>

namespace goldens::native {

// native_functions.yaml:9: CPU: blend
::std::tuple<at::Tensor, at::Tensor> blend_symint(
    at::TensorList parts,
    const ::std::optional<at::Tensor>& weight,
    c10::SymIntArrayRef size,
    double eps);

} // namespace goldens::native

namespace other::native {

// native_functions.yaml:9: XPU: blend
::std::tuple<at::Tensor, at::Tensor> blend(
    at::TensorList parts,
    const ::std::optional<at::Tensor>& weight,
    at::IntArrayRef size,
    double eps);

} // namespace other::native
=== include/goldens/kernels/extremes.h
// Generated by codegen.emit.kernels from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator_types.h>
#include <torchext/meta_base.h>

namespace goldens::meta {

// native_functions.yaml:48: the meta function of extremes.out(Tensor self, Tensor? weight, int dim,
//     *, Tensor(a!) least, Tensor(b!) most) -> (Tensor(a!) least, Tensor(b!) most)
struct structured_extremes : public torchext::MetaBase {
  struct precomputed_values {
    int64_t dim{};
    int64_t size{};
  };

  /// What `meta` returns; each value is set once, by its function.
  template <bool has_dim = false, bool has_size = false>
  struct precompute_out : public precomputed_values {
    precompute_out<true, has_size> set_dim(int64_t value) const {
      static_assert(!has_dim, "dim is set already");
      precompute_out<true, has_size> next{*this};
      next.dim = ::std::move(value);
      return next;
    }

    precompute_out<has_dim, true> set_size(int64_t value) const {
      static_assert(!has_size, "size is set already");
      precompute_out<has_dim, true> next{*this};
      next.size = ::std::move(value);
      return next;
    }
  };

  using meta_return_ty = precompute_out<true, true>;
  meta_return_ty meta(const at::Tensor& self, at::OptionalTensorRef weight, int64_t dim);
};

} // namespace goldens::meta

namespace goldens::native {

// native_functions.yaml:48: the CPU kernel of extremes.out(Tensor self, Tensor? weight, int dim, *,
//     Tensor(a!) least, Tensor(b!) most) -> (Tensor(a!) least, Tensor(b!) most)
struct structured_extremes_cpu : public ::goldens::meta::structured_extremes {
  void impl(
      const at::Tensor& self,
      at::OptionalTensorRef weight,
      int64_t dim,
      int64_t size,
      const at::Tensor& least,
      const at::Tensor& most);
};

// native_functions.yaml:48: the XPU kernel of extremes.out(Tensor self, Tensor? weight, int dim, *,
//     Tensor(a!) least, Tensor(b!) most) -> (Tensor(a!) least, Tensor(b!) most)
struct structured_extremes_xpu : public ::goldens::meta::structured_extremes {
  void impl(
      const at::Tensor& self,
      at::OptionalTensorRef weight,
      int64_t dim,
      int64_t size,
      const at::Tensor& least,
      const at::Tensor& most);
};

} // namespace goldens::native
=== include/goldens/kernels/fill.h
// Generated by codegen.emit.kernels from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator_types.h>

namespace goldens::native {

// native_functions.yaml:80: CPU: fill
at::Tensor fill(at::Tensor& self);

} // namespace goldens::native
=== include/goldens/kernels/halve.h
// Generated by codegen.emit.kernels from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator_types.h>

namespace goldens::native {

// native_functions.yaml:24: CompositeImplicitAutograd: halve
at::Tensor halve(const at::Tensor& self, bool default_);

} // namespace goldens::native
=== include/goldens/kernels/halved.h
// Generated by codegen.emit.kernels from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator_types.h>

namespace goldens::native {

// native_functions.yaml:57: CPU: halved, halved.out
void halved_cpu(
    const at::Tensor& self,
    const ::std::optional<at::Tensor>& weight,
    int64_t n,
    const at::Tensor& out);

// native_functions.yaml:57: CUDA: halved, halved.out
void halved_symint(
    const at::Tensor& self,
    const ::std::optional<at::Tensor>& weight,
    c10::SymInt n,
    const at::Tensor& out);

} // namespace goldens::native
=== include/goldens/kernels/halves.h
// Generated by codegen.emit.kernels from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator_types.h>

namespace goldens::native {

// native_functions.yaml:19: CompositeExplicitAutograd: halves
::std::vector<at::Tensor> halves(const at::Tensor& self);

} // namespace goldens::native
=== include/goldens/kernels/mul.h
// Generated by codegen.emit.kernels from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator_types.h>

namespace goldens::native {

// native_functions.yaml:1: CPU: mul.Tensor
// native_functions.yaml:1: Meta: mul.Tensor
at::Tensor mul(const at::Tensor& self, const at::Tensor& other);

// native_functions.yaml:1: CUDA: mul.Tensor
at::Tensor mul_cuda(const at::Tensor& self, const at::Tensor& other);

// native_functions.yaml:15: CPU: mul_.Tensor
at::Tensor& mul_(at::Tensor& self, const at::Tensor& other);

} // namespace goldens::native
=== include/goldens/kernels/scale.h
// Generated by codegen.emit.kernels from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator_types.h>
#include <torchext/iterator_base.h>

namespace goldens::meta {

// native_functions.yaml:37: the meta function of scale.out(Tensor self, Scalar factor, *,
//     Tensor(a!) out) -> Tensor(a!)
struct structured_scale : public at::TensorIteratorBase {
  void meta(const at::Tensor& self, const at::Scalar& factor);
};

} // namespace goldens::meta

namespace goldens::native {

// native_functions.yaml:37: the CPU kernel of scale.out(Tensor self, Scalar factor, *, Tensor(a!)
//     out) -> Tensor(a!)
struct structured_ufunc_scale_CPU : public ::goldens::meta::structured_scale {
  void impl(const at::Tensor& self, const at::Scalar& factor, const at::Tensor& out);
};

// native_functions.yaml:37: the CUDA kernel of scale.out(Tensor self, Scalar factor, *, Tensor(a!)
//     out) -> Tensor(a!)
struct structured_ufunc_scale_CUDA : public ::goldens::meta::structured_scale {
  void impl(const at::Tensor& self, const at::Scalar& factor, const at::Tensor& out);
};

} // namespace goldens::native
=== include/goldens/kernels/swap.h
// Generated by codegen.emit.kernels from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator_types.h>

namespace goldens::native {

// native_functions.yaml:74: CUDA: swap
::std::tuple<at::Tensor&, at::Tensor&> swap(at::Tensor& first, at::Tensor& second);

} // namespace goldens::native
""",
        )

    def test_ufunc(self):
        self.assertExpectedInline(
            self.generated(ufunc),
            """\
=== src/cuda/ufunc_scale.cu
// Generated by codegen.emit.ufunc from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#include <ATen/Dispatch.h>
#include <ATen/native/cuda/Loops.cuh>
#include <goldens/kernels/scale.h>
#include <ufunc/scale.h>

namespace torchext::generated::goldens {
namespace {

// native_functions.yaml:37: scale.out(Tensor self, Scalar factor, *, Tensor(a!) out) -> Tensor(a!)
template <typename scalar_t>
struct scale_out_scale_functor {
  using opmath_t = at::opmath_type<scalar_t>;
  opmath_t factor_value;

  __device__ __forceinline__ scalar_t operator()(scalar_t self) const {
    return static_cast<scalar_t>(
        ::goldens::native::ufunc::scale(static_cast<opmath_t>(self), factor_value));
  }
};

template <typename scalar_t>
void scale_out_scale(at::TensorIteratorBase& iter, const at::Scalar& factor) {
  (void)factor.to<scalar_t>(); // refuses what the dtype cannot hold
  at::native::gpu_kernel(
      iter, scale_out_scale_functor<scalar_t>{factor.to<at::opmath_type<scalar_t>>()});
}

} // namespace
} // namespace torchext::generated::goldens

void goldens::native::structured_ufunc_scale_CUDA::impl(
    const at::Tensor& self, const at::Scalar& factor, const at::Tensor& out) {
  AT_DISPATCH_SWITCH(
      common_dtype(),
      "goldens::scale",
      AT_DISPATCH_CASE(at::ScalarType::Float, [&] {
        torchext::generated::goldens::scale_out_scale<scalar_t>(*this, factor);
      })
      AT_DISPATCH_CASE(at::ScalarType::Double, [&] {
        torchext::generated::goldens::scale_out_scale<scalar_t>(*this, factor);
      }));
}
=== src/ufunc_scale.cpp
// Generated by codegen.emit.ufunc from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#include <torchext/cpu_loops.h> // first

#include <ATen/Dispatch.h>
#include <goldens/kernels/scale.h>
#include <ufunc/scale.h>

namespace torchext::generated::goldens {
namespace {

// native_functions.yaml:37: scale.out(Tensor self, Scalar factor, *, Tensor(a!) out) -> Tensor(a!)
template <typename scalar_t>
void scale_out_scale(at::TensorIteratorBase& iter, const at::Scalar& factor) {
  using opmath_t = at::opmath_type<scalar_t>;
  (void)factor.to<scalar_t>(); // refuses what the dtype cannot hold
  const auto factor_value = factor.to<opmath_t>();
  unary_kernel<scalar_t>(iter, [=](opmath_t self) {
    return static_cast<opmath_t>(::goldens::native::ufunc::scale(self, factor_value));
  });
}

} // namespace
} // namespace torchext::generated::goldens

void goldens::native::structured_ufunc_scale_CPU::impl(
    const at::Tensor& self, const at::Scalar& factor, const at::Tensor& out) {
  AT_DISPATCH_SWITCH(
      common_dtype(),
      "goldens::scale",
      AT_DISPATCH_CASE(at::ScalarType::Float, [&] {
        torchext::generated::goldens::scale_out_scale<scalar_t>(*this, factor);
      })
      AT_DISPATCH_CASE(at::ScalarType::Double, [&] {
        torchext::generated::goldens::scale_out_scale<scalar_t>(*this, factor);
      }));
}
""",
        )

    def test_rules(self):
        self.assertExpectedInline(
            self.generated(rules),
            """\
=== include/goldens/rules_0.h
// Generated by codegen.emit.rules from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <torchext/meta_base.h>

namespace torchext::generated::goldens::rules {

// native_functions.yaml:57: the rule of halved(Tensor self, Tensor? weight, SymInt n) -> Tensor
struct rule_halved : public MetaBase {
  void meta(const at::Tensor& self, const ::std::optional<at::Tensor>& weight, c10::SymInt n);
};

} // namespace torchext::generated::goldens::rules
=== src/rules_0.cpp
// Generated by codegen.emit.rules from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#include <torchext/shape.h>
#include <goldens/rules_0.h>

namespace torchext::generated::goldens::rules {

// native_functions.yaml:57: halved(Tensor self, Tensor? weight, SymInt n) -> Tensor
void rule_halved::meta(
    const at::Tensor& self, const ::std::optional<at::Tensor>& weight, c10::SymInt n) {
  [[maybe_unused]] constexpr auto op = "goldens::halved";
  if (shape::is_there(weight)) {
    shape::check_shape(op, "weight", *weight, shape::slice(self.sym_sizes(), -1, std::nullopt));
  }
  set_output_contiguous_symint(
      0,
      shape::result_sizes(
          op,
          "out",
          shape::concat(
              shape::slice(self.sym_sizes(), std::nullopt, -1),
              c10::SymDimVector{
                  shape::floor_divide(
                      shape::size(self.sym_sizes(), -1, op, "self.shape"),
                      n,
                      op,
                      "self.shape[-1] // n")})),
      shape::options(self.scalar_type(), self, weight));
}

} // namespace torchext::generated::goldens::rules
""",
        )

    def test_batching(self):
        self.assertExpectedInline(
            self.generated(batching),
            """\
=== src/batching_0.cpp
// Generated by codegen.emit.batching from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#include <goldens/library.h>
#include <torchext/generated/batching.h>
#include <torchext/generated/declared_forms.h>

namespace torchext::generated::goldens {
namespace {

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::FuncTorchBatched) {
  m.impl("mul.Tensor", each_example());
  m.impl("blend", each_example());
  m.impl("mul_.Tensor", each_example());
  m.impl("halves", each_example());
  m.impl("scale", pointwise_rule());
  m.impl("scale_", pointwise_rule());
  m.impl("scale.out", out_form_of("goldens::scale", ""));
  m.impl("extremes", each_example());
  m.impl("extremes.out", out_form_of("goldens::extremes", ""));
  m.impl("halved", leading_rule({"self"}, nullptr, {.least_ranks = {{"self", 1}}}));
  m.impl("halved.out", out_form_of("goldens::halved", ""));
  m.impl("swap", each_example());
  m.impl("fill", each_example());
  m.impl("swap.functional", each_example());
  m.impl("halves_scatter", each_example());
  m.impl("halves_copy", each_example());
}

} // namespace
} // namespace torchext::generated::goldens
""",
        )

    def test_functionalize(self):
        self.assertExpectedInline(
            self.generated(functionalize),
            """\
=== src/functionalize_0.cpp
// Generated by codegen.emit.functionalize from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#include <goldens/library.h>
#include <torchext/generated/functional_views.h>
#include <torchext/generated/functionalization.h>

namespace torchext::generated::goldens {
namespace {

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::Functionalize) {
  m.impl("mul_.Tensor", functionalized_by("goldens::mul", "Tensor"));
  m.impl(
      "halves",
      functionalized_view(
          {"goldens::halves", "", "goldens::halves_scatter", "", "goldens::halves_copy", ""}));
  m.impl("scale_", functionalized_by("goldens::scale", ""));
  m.impl("scale.out", functionalized_by("goldens::scale", ""));
  m.impl("extremes.out", functionalized_by("goldens::extremes", ""));
  m.impl("halved.out", functionalized_by("goldens::halved", ""));
  m.impl("swap", functionalized_on_copies_by("goldens::swap", "functional"));
  m.impl("swap.functional", functionalized_on_copies_by("goldens::swap", "functional"));
}

} // namespace
} // namespace torchext::generated::goldens
""",
        )

    def test_ops(self):
        self.assertExpectedInline(
            self.generated(ops),
            """\
=== include/goldens/ops.h
// Generated by codegen.emit.ops from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <goldens/ops/blend.h>
#include <goldens/ops/extremes.h>
#include <goldens/ops/fill.h>
#include <goldens/ops/halve.h>
#include <goldens/ops/halved.h>
#include <goldens/ops/halves.h>
#include <goldens/ops/mul.h>
#include <goldens/ops/scale.h>
#include <goldens/ops/swap.h>
=== include/goldens/ops/blend.h
// Generated by codegen.emit.ops from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/fixed_list.h>
#include <torchext/generated/operator.h>

namespace torchext::generated::goldens::operators {

// native_functions.yaml:9: blend(Tensor[] parts, Tensor? weight=None, SymInt[2] size=1, *, float
//     eps=1e-6) -> (Tensor blended, Tensor total)
struct TORCHEXT_API blend
    : Operator<blend, ::std::tuple<at::Tensor, at::Tensor>(
        at::TensorList, const ::std::optional<at::Tensor>&, c10::SymIntArrayRef, double)> {
  static constexpr auto name = "goldens::blend", overload_name = "";
};

} // namespace torchext::generated::goldens::operators

namespace goldens {

/// blend(Tensor[] parts, Tensor? weight=None, SymInt[2] size=1, *, float eps=1e-6) -> (Tensor
//     blended, Tensor total)
inline ::std::tuple<at::Tensor, at::Tensor> blend(
    at::TensorList parts,
    const ::std::optional<at::Tensor>& weight = {},
    c10::SymIntArrayRef size = {c10::SymInt(1), c10::SymInt(1)},
    double eps = 1e-6) {
  return ::torchext::generated::goldens::operators::blend::call(
      parts, weight, torchext::fixed_list<2>(size), eps);
}

/// blend(Tensor[] parts, Tensor? weight=None, SymInt[2] size=1, *, float eps=1e-6) -> (Tensor
//     blended, Tensor total)
inline ::std::tuple<at::Tensor, at::Tensor> blend_symint(
    at::TensorList parts,
    const ::std::optional<at::Tensor>& weight = {},
    c10::SymIntArrayRef size = {c10::SymInt(1), c10::SymInt(1)},
    double eps = 1e-6) {
  return ::torchext::generated::goldens::operators::blend::call(
      parts, weight, torchext::fixed_list<2>(size), eps);
}

} // namespace goldens
=== include/goldens/ops/extremes.h
// Generated by codegen.emit.ops from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator.h>

namespace torchext::generated::goldens::operators {

// native_functions.yaml:45: extremes(Tensor self, Tensor? weight, int dim) -> (Tensor least, Tensor
//     most)
struct TORCHEXT_API extremes
    : Operator<extremes, ::std::tuple<at::Tensor, at::Tensor>(
        const at::Tensor&, const ::std::optional<at::Tensor>&, int64_t)> {
  static constexpr auto name = "goldens::extremes", overload_name = "";
};

// native_functions.yaml:48: extremes.out(Tensor self, Tensor? weight, int dim, *, Tensor(a!) least,
//     Tensor(b!) most) -> (Tensor(a!) least, Tensor(b!) most)
struct TORCHEXT_API extremes_out
    : Operator<extremes_out, ::std::tuple<at::Tensor&, at::Tensor&>(
        const at::Tensor&, const ::std::optional<at::Tensor>&, int64_t, at::Tensor&, at::Tensor&)> {
  static constexpr auto name = "goldens::extremes", overload_name = "out";
};

} // namespace torchext::generated::goldens::operators

namespace goldens {

/// extremes(Tensor self, Tensor? weight, int dim) -> (Tensor least, Tensor most)
inline ::std::tuple<at::Tensor, at::Tensor> extremes(
    const at::Tensor& self, const ::std::optional<at::Tensor>& weight, int64_t dim) {
  return ::torchext::generated::goldens::operators::extremes::call(self, weight, dim);
}

/// extremes.out(Tensor self, Tensor? weight, int dim, *, Tensor(a!) least, Tensor(b!) most) ->
//     (Tensor(a!) least, Tensor(b!) most)
inline ::std::tuple<at::Tensor&, at::Tensor&> extremes_out(
    at::Tensor& least,
    at::Tensor& most,
    const at::Tensor& self,
    const ::std::optional<at::Tensor>& weight,
    int64_t dim) {
  return ::torchext::generated::goldens::operators::extremes_out::call(
      self, weight, dim, least, most);
}

} // namespace goldens
=== include/goldens/ops/fill.h
// Generated by codegen.emit.ops from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator.h>

namespace torchext::generated::goldens::operators {

// native_functions.yaml:80: fill(Tensor(a!) self) -> Tensor
struct TORCHEXT_API fill : Operator<fill, at::Tensor(at::Tensor&)> {
  static constexpr auto name = "goldens::fill", overload_name = "";
};

} // namespace torchext::generated::goldens::operators

namespace goldens {

/// fill(Tensor(a!) self) -> Tensor
inline at::Tensor fill(at::Tensor& self) {
  return ::torchext::generated::goldens::operators::fill::call(self);
}

} // namespace goldens
=== include/goldens/ops/halve.h
// Generated by codegen.emit.ops from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator.h>

namespace torchext::generated::goldens::operators {

// native_functions.yaml:24: halve(Tensor self, *, bool default=True) -> Tensor
struct TORCHEXT_API halve : Operator<halve, at::Tensor(const at::Tensor&, bool)> {
  static constexpr auto name = "goldens::halve", overload_name = "";
};

} // namespace torchext::generated::goldens::operators

namespace goldens {

/// halve(Tensor self, *, bool default=True) -> Tensor
inline at::Tensor halve(const at::Tensor& self, bool default_ = true) {
  return ::torchext::generated::goldens::operators::halve::call(self, default_);
}

} // namespace goldens
=== include/goldens/ops/halved.h
// Generated by codegen.emit.ops from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator.h>

namespace torchext::generated::goldens::operators {

// native_functions.yaml:57: halved(Tensor self, Tensor? weight, SymInt n) -> Tensor
struct TORCHEXT_API halved
    : Operator<halved, at::Tensor(
        const at::Tensor&, const ::std::optional<at::Tensor>&, c10::SymInt)> {
  static constexpr auto name = "goldens::halved", overload_name = "";
};

// native_functions.yaml:57: halved.out(Tensor self, Tensor? weight, SymInt n, *, Tensor(a!) out) ->
//     Tensor(a!)
struct TORCHEXT_API halved_out
    : Operator<halved_out, at::Tensor&(
        const at::Tensor&, const ::std::optional<at::Tensor>&, c10::SymInt, at::Tensor&)> {
  static constexpr auto name = "goldens::halved", overload_name = "out";
};

} // namespace torchext::generated::goldens::operators

namespace goldens {

/// halved(Tensor self, Tensor? weight, SymInt n) -> Tensor
inline at::Tensor halved(
    const at::Tensor& self, const ::std::optional<at::Tensor>& weight, c10::SymInt n) {
  return ::torchext::generated::goldens::operators::halved::call(self, weight, n);
}

/// halved(Tensor self, Tensor? weight, SymInt n) -> Tensor
inline at::Tensor halved_symint(
    const at::Tensor& self, const ::std::optional<at::Tensor>& weight, c10::SymInt n) {
  return ::torchext::generated::goldens::operators::halved::call(self, weight, n);
}

/// halved.out(Tensor self, Tensor? weight, SymInt n, *, Tensor(a!) out) -> Tensor(a!)
inline at::Tensor& halved_out(
    at::Tensor& out,
    const at::Tensor& self,
    const ::std::optional<at::Tensor>& weight,
    c10::SymInt n) {
  return ::torchext::generated::goldens::operators::halved_out::call(self, weight, n, out);
}

/// halved.out(Tensor self, Tensor? weight, SymInt n, *, Tensor(a!) out) -> Tensor(a!)
inline at::Tensor& halved_out_symint(
    at::Tensor& out,
    const at::Tensor& self,
    const ::std::optional<at::Tensor>& weight,
    c10::SymInt n) {
  return ::torchext::generated::goldens::operators::halved_out::call(self, weight, n, out);
}

} // namespace goldens
=== include/goldens/ops/halves.h
// Generated by codegen.emit.ops from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator.h>

namespace torchext::generated::goldens::operators {

// native_functions.yaml:19: halves(Tensor(a) self) -> Tensor(a)[]
struct TORCHEXT_API halves : Operator<halves, ::std::vector<at::Tensor>(const at::Tensor&)> {
  static constexpr auto name = "goldens::halves", overload_name = "";
};

// native_functions.yaml:19: halves_scatter(Tensor self, Tensor src, int number=0) -> Tensor
struct TORCHEXT_API halves_scatter
    : Operator<halves_scatter, at::Tensor(const at::Tensor&, const at::Tensor&, int64_t)> {
  static constexpr auto name = "goldens::halves_scatter", overload_name = "";
};

// native_functions.yaml:19: halves_copy(Tensor self) -> Tensor[]
struct TORCHEXT_API halves_copy
    : Operator<halves_copy, ::std::vector<at::Tensor>(const at::Tensor&)> {
  static constexpr auto name = "goldens::halves_copy", overload_name = "";
};

} // namespace torchext::generated::goldens::operators

namespace goldens {

/// halves(Tensor(a) self) -> Tensor(a)[]
inline ::std::vector<at::Tensor> halves(const at::Tensor& self) {
  return ::torchext::generated::goldens::operators::halves::call(self);
}

} // namespace goldens
=== include/goldens/ops/mul.h
// Generated by codegen.emit.ops from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator.h>

namespace torchext::generated::goldens::operators {

// native_functions.yaml:1: mul.Tensor(Tensor self, Tensor other) -> Tensor
struct TORCHEXT_API mul_Tensor
    : Operator<mul_Tensor, at::Tensor(const at::Tensor&, const at::Tensor&)> {
  static constexpr auto name = "goldens::mul", overload_name = "Tensor";
};

// native_functions.yaml:15: mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
struct TORCHEXT_API mul__Tensor
    : Operator<mul__Tensor, at::Tensor&(at::Tensor&, const at::Tensor&)> {
  static constexpr auto name = "goldens::mul_", overload_name = "Tensor";
};

} // namespace torchext::generated::goldens::operators

namespace goldens {

/// Multiplies `self` by `other`.
inline at::Tensor mul(const at::Tensor& self, const at::Tensor& other) {
  return ::torchext::generated::goldens::operators::mul_Tensor::call(self, other);
}

/// mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
inline at::Tensor& mul_(at::Tensor& self, const at::Tensor& other) {
  return ::torchext::generated::goldens::operators::mul__Tensor::call(self, other);
}

} // namespace goldens
=== include/goldens/ops/scale.h
// Generated by codegen.emit.ops from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator.h>

namespace torchext::generated::goldens::operators {

// native_functions.yaml:26: scale(Tensor self, Scalar factor) -> Tensor
struct TORCHEXT_API scale : Operator<scale, at::Tensor(const at::Tensor&, const at::Scalar&)> {
  static constexpr auto name = "goldens::scale", overload_name = "";
};

// native_functions.yaml:33: scale_(Tensor(a!) self, Scalar factor) -> Tensor(a!)
struct TORCHEXT_API scale_ : Operator<scale_, at::Tensor&(at::Tensor&, const at::Scalar&)> {
  static constexpr auto name = "goldens::scale_", overload_name = "";
};

// native_functions.yaml:37: scale.out(Tensor self, Scalar factor, *, Tensor(a!) out) -> Tensor(a!)
struct TORCHEXT_API scale_out
    : Operator<scale_out, at::Tensor&(const at::Tensor&, const at::Scalar&, at::Tensor&)> {
  static constexpr auto name = "goldens::scale", overload_name = "out";
};

} // namespace torchext::generated::goldens::operators

namespace goldens {

/// scale(Tensor self, Scalar factor) -> Tensor
inline at::Tensor scale(const at::Tensor& self, const at::Scalar& factor) {
  return ::torchext::generated::goldens::operators::scale::call(self, factor);
}

/// scale_(Tensor(a!) self, Scalar factor) -> Tensor(a!)
inline at::Tensor& scale_(at::Tensor& self, const at::Scalar& factor) {
  return ::torchext::generated::goldens::operators::scale_::call(self, factor);
}

/// scale.out(Tensor self, Scalar factor, *, Tensor(a!) out) -> Tensor(a!)
inline at::Tensor& scale_out(at::Tensor& out, const at::Tensor& self, const at::Scalar& factor) {
  return ::torchext::generated::goldens::operators::scale_out::call(self, factor, out);
}

} // namespace goldens
=== include/goldens/ops/swap.h
// Generated by codegen.emit.ops from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/operator.h>

namespace torchext::generated::goldens::operators {

// native_functions.yaml:74: swap(Tensor(a!) first, Tensor(b!) second) -> (Tensor(a!), Tensor(b!))
struct TORCHEXT_API swap
    : Operator<swap, ::std::tuple<at::Tensor&, at::Tensor&>(at::Tensor&, at::Tensor&)> {
  static constexpr auto name = "goldens::swap", overload_name = "";
};

// native_functions.yaml:74: swap.functional(Tensor first, Tensor second) -> (Tensor, Tensor)
struct TORCHEXT_API swap_functional
    : Operator<swap_functional, ::std::tuple<at::Tensor, at::Tensor>(
        const at::Tensor&, const at::Tensor&)> {
  static constexpr auto name = "goldens::swap", overload_name = "functional";
};

} // namespace torchext::generated::goldens::operators

namespace goldens {

/// swap(Tensor(a!) first, Tensor(b!) second) -> (Tensor(a!), Tensor(b!))
inline ::std::tuple<at::Tensor&, at::Tensor&> swap(at::Tensor& first, at::Tensor& second) {
  return ::torchext::generated::goldens::operators::swap::call(first, second);
}

} // namespace goldens
=== src/ops_0.cpp
// Generated by codegen.emit.ops from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#include <torchext/generated/operator_handle.h>

#include <goldens/ops.h>

namespace torchext {
namespace operators = generated::goldens::operators;

template struct DefinitionsOf<
    operators::mul_Tensor, operators::blend, operators::mul__Tensor, operators::halves,
    operators::halve, operators::scale, operators::scale_, operators::scale_out,
    operators::extremes, operators::extremes_out, operators::halved, operators::halved_out,
    operators::swap, operators::fill, operators::swap_functional, operators::halves_scatter,
    operators::halves_copy>;

} // namespace torchext
""",
        )

    def test_schema(self):
        self.assertExpectedInline(
            self.generated(schema),
            """\
=== src/schema_0.cpp
// Generated by codegen.emit.schema from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#include <ATen/core/enum_tag.h>
#include <goldens/library.h>
#include <torchext/compat.h>

namespace torchext::generated::goldens {
namespace {

void register_schemas_0(torch::Library& m) {
  // native_functions.yaml:1
  m.def(
      "mul.Tensor(Tensor self, Tensor other) -> Tensor",
      {at::Tag::pointwise, at::Tag::pt2_compliant_tag});
  // native_functions.yaml:9
  m.def(
      "blend(Tensor[] parts, Tensor? weight=None, SymInt[2] size=1, *, float eps=1e-6) -> (Tensor "
      "blended, Tensor total)",
      {at::Tag::pt2_compliant_tag});
  // native_functions.yaml:15
  m.def(
      "mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
      {TORCHEXT_TAG_INPLACE at::Tag::pt2_compliant_tag});
  // native_functions.yaml:19
  m.def("halves(Tensor(a) self) -> Tensor(a)[](a)", {});
  // native_functions.yaml:24
  m.def("halve(Tensor self, *, bool default=True) -> Tensor", {at::Tag::pt2_compliant_tag});
  // native_functions.yaml:26
  m.def("scale(Tensor self, Scalar factor) -> Tensor", {at::Tag::pt2_compliant_tag});
  // native_functions.yaml:33
  m.def(
      "scale_(Tensor(a!) self, Scalar factor) -> Tensor(a!)",
      {TORCHEXT_TAG_INPLACE at::Tag::pt2_compliant_tag});
  // native_functions.yaml:37
  m.def(
      "scale.out(Tensor self, Scalar factor, *, Tensor(a!) out) -> Tensor(a!)",
      {at::Tag::pt2_compliant_tag});
  // native_functions.yaml:45
  m.def(
      "extremes(Tensor self, Tensor? weight, int dim) -> (Tensor least, Tensor most)",
      {at::Tag::cudagraph_unsafe, at::Tag::pt2_compliant_tag});
  // native_functions.yaml:48
  m.def(
      "extremes.out(Tensor self, Tensor? weight, int dim, *, Tensor(a!) least, Tensor(b!) most) "
      "-> (Tensor(a!) least, Tensor(b!) most)",
      {at::Tag::cudagraph_unsafe, at::Tag::pt2_compliant_tag});
  // native_functions.yaml:57
  m.def("halved(Tensor self, Tensor? weight, SymInt n) -> Tensor", {at::Tag::pt2_compliant_tag});
  // native_functions.yaml:57
  m.def(
      "halved.out(Tensor self, Tensor? weight, SymInt n, *, Tensor(a!) out) -> Tensor(a!)",
      {at::Tag::generated, at::Tag::pt2_compliant_tag});
  // native_functions.yaml:74
  m.def(
      "swap(Tensor(a!) first, Tensor(b!) second) -> (Tensor(a!), Tensor(b!))",
      {at::Tag::pt2_compliant_tag});
  // native_functions.yaml:80
  m.def("fill(Tensor(a!) self) -> Tensor", {at::Tag::pt2_compliant_tag});
  // native_functions.yaml:74
  m.def(
      "swap.functional(Tensor first, Tensor second) -> (Tensor, Tensor)",
      {at::Tag::generated, at::Tag::pt2_compliant_tag});
  // native_functions.yaml:19
  m.def("halves_scatter(Tensor self, Tensor src, int number=0) -> Tensor", {at::Tag::generated});
  // native_functions.yaml:19
  m.def("halves_copy(Tensor self) -> Tensor[]", {at::Tag::generated});
}

TORCHEXT_RUN_FIRST void add_schemas_0() {
  library().add(torch::Library::FRAGMENT, std::nullopt, &register_schemas_0);
}

} // namespace
} // namespace torchext::generated::goldens
""",
        )

    def test_dispatch(self):
        self.assertExpectedInline(
            self.generated(dispatch),
            """\
=== src/dispatch_0.cpp
// Generated by codegen.emit.dispatch from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#include <goldens/library.h>
#include <torchext/cpu_fallback.h>
#include <torchext/generated/argument_checks.h>
#include <torchext/generated/declared_forms.h>
#include <torchext/generated/device.h>
#include <torchext/generated/dtypes.h>
#include <torchext/generated/fixed_list.h>
#include <torchext/generated/layout.h>
#include <torchext/generated/math_bits.h>
#include <torchext/generated/structured.h>
#include <torchext/generated/view_forms.h>
#include <torchext/generated/view_geometry.h>

#include <goldens/kernels.h>
#include <goldens/ops/extremes.h>
#include <goldens/ops/scale.h>
#include <goldens/rules_0.h>

namespace torchext::generated::goldens {
namespace {

namespace native = ::goldens::native;
namespace meta = ::goldens::meta;

constexpr Dtypes dtypes_0{
    at::kFloat, at::kDouble};
constexpr Dtypes dtypes_1{
    at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};
constexpr Dtypes dtypes_2{
    at::kFloat};

// native_functions.yaml:1: mul.Tensor(Tensor self, Tensor other) -> Tensor
template <auto kKernel, Home kHome>
at::Tensor wrapper_mul_Tensor(const at::Tensor& self, const at::Tensor& other) {
  check_defined("goldens::mul.Tensor", "self, other", self, other);
  check_same_device<kHome>("goldens::mul.Tensor", "self, other", self, other);
  const SelectedDevice<kHome> guard(self);
  return kKernel(self, other);
}

// native_functions.yaml:24: halve(Tensor self, *, bool default=True) -> Tensor
at::Tensor wrapper_halve(const at::Tensor& self, bool default_) {
  check_defined("goldens::halve", "self", self);
  return native::halve(self, default_);
}

// native_functions.yaml:26: scale(Tensor self, Scalar factor) -> Tensor
template <typename Kernel, Home kHome>
at::Tensor wrapper_scale(const at::Tensor& self, const at::Scalar& factor) {
  check_defined("goldens::scale", "self", self);
  dtypes_0.check("goldens::scale", "self", self);
  structured::Functional<Kernel, kHome, 1> op("goldens::scale");
  op.meta(self, factor);
  op.impl(self, factor, op.maybe_get_output(0));
  return op.results();
}

// native_functions.yaml:33: scale_(Tensor(a!) self, Scalar factor) -> Tensor(a!)
template <typename Kernel, Home kHome>
at::Tensor& wrapper_scale_(at::Tensor& self, const at::Scalar& factor) {
  check_defined("goldens::scale_", "self", self);
  dtypes_0.check("goldens::scale_", "self", self);
  structured::InPlace<Kernel, kHome, 1> op("goldens::scale_", self);
  op.meta(self, factor);
  op.impl(self, factor, op.maybe_get_output(0));
  op.copy_back();
  return self;
}

// native_functions.yaml:37: scale.out(Tensor self, Scalar factor, *, Tensor(a!) out) -> Tensor(a!)
template <typename Kernel, Home kHome>
at::Tensor& wrapper_scale_out(const at::Tensor& self, const at::Scalar& factor, at::Tensor& out) {
  check_defined("goldens::scale.out", "self, out", self, out);
  dtypes_0.check("goldens::scale.out", "self", self);
  structured::Out<Kernel, kHome, 1> op("goldens::scale", out);
  op.meta(self, factor);
  op.impl(self, factor, op.maybe_get_output(0));
  op.copy_back();
  return out;
}

// native_functions.yaml:45: extremes(Tensor self, Tensor? weight, int dim) -> (Tensor least, Tensor
//     most)
template <typename Kernel, Home kHome>
::std::tuple<at::Tensor, at::Tensor> wrapper_extremes(
    const at::Tensor& self, const ::std::optional<at::Tensor>& weight, int64_t dim) {
  check_defined("goldens::extremes", "self", self);
  check_same_device<kHome>("goldens::extremes", "self, weight", self, weight);
  structured::Functional<Kernel, kHome, 2> op("goldens::extremes");
  const auto precomputed = op.meta(self, as_argument(weight), dim);
  op.impl(
      self,
      as_argument(weight),
      precomputed.dim,
      precomputed.size,
      op.maybe_get_output(0),
      op.maybe_get_output(1));
  return op.results();
}

// native_functions.yaml:48: extremes.out(Tensor self, Tensor? weight, int dim, *, Tensor(a!) least,
//     Tensor(b!) most) -> (Tensor(a!) least, Tensor(b!) most)
template <typename Kernel, Home kHome>
::std::tuple<at::Tensor&, at::Tensor&> wrapper_extremes_out(
    const at::Tensor& self,
    const ::std::optional<at::Tensor>& weight,
    int64_t dim,
    at::Tensor& least,
    at::Tensor& most) {
  check_defined("goldens::extremes.out", "self, least, most", self, least, most);
  check_same_device<kHome>(
      "goldens::extremes.out", "self, weight, least, most", self, weight, least, most);
  structured::Out<Kernel, kHome, 2> op("goldens::extremes", least, most);
  op.reads(at::Tensor(), self, weight);
  const auto precomputed = op.meta(self, as_argument(weight), dim);
  op.impl(
      self,
      as_argument(weight),
      precomputed.dim,
      precomputed.size,
      op.maybe_get_output(0),
      op.maybe_get_output(1));
  op.copy_back();
  return ::std::tuple<at::Tensor&, at::Tensor&>(least, most);
}

// native_functions.yaml:9: blend(Tensor[] parts, Tensor? weight=None, SymInt[2] size=1, *, float
//     eps=1e-6) -> (Tensor blended, Tensor total)
::std::tuple<at::Tensor, at::Tensor> cpu_blend(
    at::TensorList parts,
    const ::std::optional<at::Tensor>& weight,
    c10::SymIntArrayRef size_given,
    double eps) {
  const auto size_as_list = torchext::fixed_list<2>(size_given);
  const c10::SymIntArrayRef size = size_as_list;
  check_length("goldens::blend", "size", size, 2);
  return native::blend_symint(parts, or_missing(weight), size, eps);
}

// native_functions.yaml:15: mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
at::Tensor& cpu_mul__Tensor(at::Tensor& self, const at::Tensor& other) {
  check_defined("goldens::mul_.Tensor", "self, other", self, other);
  return native::mul_(self, other);
}

// native_functions.yaml:57: halved(Tensor self, Tensor? weight, SymInt n) -> Tensor
at::Tensor cpu_halved(
    const at::Tensor& self, const ::std::optional<at::Tensor>& weight, c10::SymInt n) {
  check_defined("goldens::halved", "self", self);
  dtypes_0.check("goldens::halved", "self, weight", self, weight);
  structured::Functional<rules::rule_halved, Home::kCPU, 1> op("goldens::halved");
  op.meta(self, weight, n);
  const auto self_laid_out = laid_out<StridesOf::kLastDimContiguous>(self);
  native::halved_cpu(self_laid_out, or_missing(weight), as_argument(n), op.maybe_get_output(0));
  return op.results();
}

// native_functions.yaml:57: halved.out(Tensor self, Tensor? weight, SymInt n, *, Tensor(a!) out) ->
//     Tensor(a!)
at::Tensor& cpu_halved_out(
    const at::Tensor& self,
    const ::std::optional<at::Tensor>& weight,
    c10::SymInt n,
    at::Tensor& out) {
  check_defined("goldens::halved.out", "self, out", self, out);
  dtypes_0.check("goldens::halved.out", "self, weight", self, weight);
  structured::Out<rules::rule_halved, Home::kCPU, 1> op("goldens::halved", out);
  op.reads(at::Tensor(), self, weight);
  op.meta(self, weight, n);
  const auto self_laid_out = laid_out<StridesOf::kLastDimContiguous>(self);
  native::halved_cpu(self_laid_out, or_missing(weight), as_argument(n), op.maybe_get_output(0));
  op.copy_back();
  return out;
}

// native_functions.yaml:80: fill(Tensor(a!) self) -> Tensor
at::Tensor cpu_fill(at::Tensor& self) {
  check_defined("goldens::fill", "self", self);
  auto self_laid_out = laid_out<StridesOf::kContiguous>(self);
  decltype(auto) result = native::fill(self_laid_out);
  write_back(self, self_laid_out);
  return result;
}

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::CPU) {
  m.impl("mul.Tensor", &wrapper_mul_Tensor<native::mul, Home::kCPU>);
  m.impl("blend", &cpu_blend);
  m.impl("mul_.Tensor", &cpu_mul__Tensor);
  m.impl("scale", &wrapper_scale<native::structured_ufunc_scale_CPU, Home::kCPU>);
  m.impl("scale_", &wrapper_scale_<native::structured_ufunc_scale_CPU, Home::kCPU>);
  m.impl("scale.out", &wrapper_scale_out<native::structured_ufunc_scale_CPU, Home::kCPU>);
  m.impl("extremes", &wrapper_extremes<native::structured_extremes_cpu, Home::kCPU>);
  m.impl("extremes.out", &wrapper_extremes_out<native::structured_extremes_cpu, Home::kCPU>);
  m.impl("halved", &cpu_halved);
  m.impl("halved.out", &cpu_halved_out);
  m.impl("fill", &cpu_fill);
}

// native_functions.yaml:1: mul.Tensor(Tensor self, Tensor other) -> Tensor
at::Tensor meta_mul_Tensor(const at::Tensor& self, const at::Tensor& other) {
  check_defined("goldens::mul.Tensor", "self, other", self, other);
  return native::mul(self, other);
}

// native_functions.yaml:15: mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
at::Tensor& meta_mul__Tensor(at::Tensor& self, const at::Tensor& other) {
  check_defined("goldens::mul_.Tensor", "self, other", self, other);
  check_same_device("goldens::mul_.Tensor", "self, other", self, other);
  return self;
}

// native_functions.yaml:57: halved(Tensor self, Tensor? weight, SymInt n) -> Tensor
at::Tensor meta_halved(
    const at::Tensor& self, const ::std::optional<at::Tensor>& weight, c10::SymInt n) {
  check_defined("goldens::halved", "self", self);
  check_same_device("goldens::halved", "self, weight", self, weight);
  dtypes_1.check("goldens::halved", "self", self);
  dtypes_0.check("goldens::halved", "weight", weight);
  structured::Functional<rules::rule_halved, Home::kMeta, 1> op("goldens::halved");
  op.meta(self, weight, n);
  return op.results();
}

// native_functions.yaml:57: halved.out(Tensor self, Tensor? weight, SymInt n, *, Tensor(a!) out) ->
//     Tensor(a!)
at::Tensor& meta_halved_out(
    const at::Tensor& self,
    const ::std::optional<at::Tensor>& weight,
    c10::SymInt n,
    at::Tensor& out) {
  check_defined("goldens::halved.out", "self, out", self, out);
  check_same_device("goldens::halved.out", "self, weight, out", self, weight, out);
  dtypes_1.check("goldens::halved.out", "self", self);
  dtypes_0.check("goldens::halved.out", "weight", weight);
  structured::Out<rules::rule_halved, Home::kMeta, 1> op("goldens::halved", out);
  op.meta(self, weight, n);
  return out;
}

// native_functions.yaml:74: swap(Tensor(a!) first, Tensor(b!) second) -> (Tensor(a!), Tensor(b!))
::std::tuple<at::Tensor&, at::Tensor&> meta_swap(at::Tensor& first, at::Tensor& second) {
  check_defined("goldens::swap", "first, second", first, second);
  check_same_device("goldens::swap", "first, second", first, second);
  return ::std::tuple<at::Tensor&, at::Tensor&>(first, second);
}

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::Meta) {
  m.impl("mul.Tensor", &meta_mul_Tensor);
  m.impl("mul_.Tensor", &meta_mul__Tensor);
  m.impl("scale", &wrapper_scale<meta::structured_scale, Home::kMeta>);
  m.impl("scale_", &wrapper_scale_<meta::structured_scale, Home::kMeta>);
  m.impl("scale.out", &wrapper_scale_out<meta::structured_scale, Home::kMeta>);
  m.impl("extremes", &wrapper_extremes<meta::structured_extremes, Home::kMeta>);
  m.impl("extremes.out", &wrapper_extremes_out<meta::structured_extremes, Home::kMeta>);
  m.impl("halved", &meta_halved);
  m.impl("halved.out", &meta_halved_out);
  m.impl("swap", &meta_swap);
}

#ifdef TORCHEXT_WITH_CUDA
// native_functions.yaml:57: halved(Tensor self, Tensor? weight, SymInt n) -> Tensor
at::Tensor cuda_halved(
    const at::Tensor& self, const ::std::optional<at::Tensor>& weight, c10::SymInt n) {
  check_defined("goldens::halved", "self", self);
  check_same_device("goldens::halved", "self, weight", self, weight);
  dtypes_1.check("goldens::halved", "self", self);
  dtypes_2.check("goldens::halved", "weight", weight);
  structured::Functional<rules::rule_halved, Home::kCUDA, 1> op("goldens::halved");
  op.meta(self, weight, n);
  const auto self_laid_out = laid_out<StridesOf::kLastDimContiguous>(self);
  native::halved_symint(self_laid_out, or_missing(weight), n, op.maybe_get_output(0));
  return op.results();
}

// native_functions.yaml:57: halved.out(Tensor self, Tensor? weight, SymInt n, *, Tensor(a!) out) ->
//     Tensor(a!)
at::Tensor& cuda_halved_out(
    const at::Tensor& self,
    const ::std::optional<at::Tensor>& weight,
    c10::SymInt n,
    at::Tensor& out) {
  check_defined("goldens::halved.out", "self, out", self, out);
  check_same_device("goldens::halved.out", "self, weight, out", self, weight, out);
  dtypes_1.check("goldens::halved.out", "self", self);
  dtypes_2.check("goldens::halved.out", "weight", weight);
  structured::Out<rules::rule_halved, Home::kCUDA, 1> op("goldens::halved", out);
  op.reads(at::Tensor(), self, weight);
  op.meta(self, weight, n);
  const auto self_laid_out = laid_out<StridesOf::kLastDimContiguous>(self);
  native::halved_symint(self_laid_out, or_missing(weight), n, op.maybe_get_output(0));
  op.copy_back();
  return out;
}

// native_functions.yaml:74: swap(Tensor(a!) first, Tensor(b!) second) -> (Tensor(a!), Tensor(b!))
::std::tuple<at::Tensor&, at::Tensor&> cuda_swap(at::Tensor& first, at::Tensor& second) {
  check_defined("goldens::swap", "first, second", first, second);
  check_same_device("goldens::swap", "first, second", first, second);
  const SelectedDevice<Home::kCUDA> guard(first);
  auto first_laid_out = laid_out<StridesOf::kContiguous>(first);
  check_copied("goldens::swap", "first", first, first_laid_out, second);
  native::swap(first_laid_out, second);
  write_back(first, first_laid_out);
  return ::std::tuple<at::Tensor&, at::Tensor&>(first, second);
}

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::CUDA) {
  m.impl("mul.Tensor", &wrapper_mul_Tensor<native::mul_cuda, Home::kCUDA>);
  m.impl("scale", &wrapper_scale<native::structured_ufunc_scale_CUDA, Home::kCUDA>);
  m.impl("scale_", &wrapper_scale_<native::structured_ufunc_scale_CUDA, Home::kCUDA>);
  m.impl("scale.out", &wrapper_scale_out<native::structured_ufunc_scale_CUDA, Home::kCUDA>);
  m.impl("halved", &cuda_halved);
  m.impl("halved.out", &cuda_halved_out);
  m.impl("swap", &cuda_swap);
}
#endif // TORCHEXT_WITH_CUDA

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::PrivateUse1) {
  m.impl("mul.Tensor", torch::CppFunction::makeFromBoxedFunction<&::torchext::cpu_fallback<>>());
}

// native_functions.yaml:9: blend(Tensor[] parts, Tensor? weight=None, SymInt[2] size=1, *, float
//     eps=1e-6) -> (Tensor blended, Tensor total)
::std::tuple<at::Tensor, at::Tensor> xpu_blend(
    at::TensorList parts,
    const ::std::optional<at::Tensor>& weight,
    at::IntArrayRef size_given,
    double eps) {
  const auto size_as_list = torchext::fixed_list<2>(size_given);
  const at::IntArrayRef size = size_as_list;
  check_length("goldens::blend", "size", size, 2);
  const SelectedDevice<Home::kOther> guard(parts, weight);
  return ::other::native::blend(parts, or_missing(weight), size, eps);
}

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::XPU) {
  m.impl("blend", &xpu_blend);
  m.impl("extremes", &wrapper_extremes<native::structured_extremes_xpu, Home::kOther>);
  m.impl("extremes.out", &wrapper_extremes_out<native::structured_extremes_xpu, Home::kOther>);
}

// native_functions.yaml:19: halves(Tensor(a) self) -> Tensor(a)[]
::std::vector<at::Tensor> compositeexplicitautograd_halves(const at::Tensor& self) {
  check_defined("goldens::halves", "self", self);
  return ::torchext::distinct_view(native::halves(self), self);
}

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::CompositeExplicitAutograd) {
  m.impl("halves", &compositeexplicitautograd_halves);
  m.impl("swap.functional", functional_form_of("goldens::swap", ""));
  m.impl("halves_scatter", scatter_form_of("goldens::halves", ""));
  m.impl("halves_copy", view_copy_of("goldens::halves", ""));
}

// native_functions.yaml:19: halves(Tensor(a) self) -> Tensor(a)[]
::std::vector<at::Tensor> batched_halves(const at::Tensor& self) {
  check_defined("goldens::halves", "self", self);
  return ::torchext::batched_view(native::halves(self), self);
}

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::Batched) {
  m.impl("halves", &batched_halves);
}

TORCHEXT_LIBRARY_IMPL(
    m,
    DispatchKey::CompositeImplicitAutograd,
    DispatchKey::FuncTorchBatchedDecomposition,
    DispatchKey::FuncTorchVmapMode) {
  m.impl("halve", &wrapper_halve);
}

// native_functions.yaml:26: scale(Tensor self, Scalar factor) -> Tensor
at::Tensor compositeexplicitautogradnonfunctional_scale(
    const at::Tensor& self, const at::Scalar& factor) {
  check_defined("goldens::scale", "self", self);
  structured::Functional<meta::structured_scale, Home::kOther, 1> op("goldens::scale");
  op.meta(self, factor);
  operators::scale_out::call(self, factor, op.output(0));
  return op.results();
}

// native_functions.yaml:33: scale_(Tensor(a!) self, Scalar factor) -> Tensor(a!)
at::Tensor& compositeexplicitautogradnonfunctional_scale_(
    at::Tensor& self, const at::Scalar& factor) {
  check_defined("goldens::scale_", "self", self);
  structured::InPlace<meta::structured_scale, Home::kOther, 1> op("goldens::scale_", self);
  op.meta(self, factor);
  operators::scale_out::call(self, factor, self);
  return self;
}

// native_functions.yaml:45: extremes(Tensor self, Tensor? weight, int dim) -> (Tensor least, Tensor
//     most)
::std::tuple<at::Tensor, at::Tensor> compositeexplicitautogradnonfunctional_extremes(
    const at::Tensor& self, const ::std::optional<at::Tensor>& weight, int64_t dim) {
  check_defined("goldens::extremes", "self", self);
  structured::Functional<meta::structured_extremes, Home::kOther, 2> op("goldens::extremes");
  op.meta(self, as_argument(weight), dim);
  operators::extremes_out::call(self, weight, dim, op.output(0), op.output(1));
  return op.results();
}

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::CompositeExplicitAutogradNonFunctional) {
  m.impl("scale", &compositeexplicitautogradnonfunctional_scale);
  m.impl("scale_", &compositeexplicitautogradnonfunctional_scale_);
  m.impl("extremes", &compositeexplicitautogradnonfunctional_extremes);
}

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::CUDA) {
  m.impl("extremes", torch::CppFunction::makeFromBoxedFunction<&::torchext::cpu_fallback<>>());
  m.impl("extremes.out", torch::CppFunction::makeFromBoxedFunction<&::torchext::cpu_fallback<>>());
}

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::Conjugate) {
  m.impl("extremes.out", without_bit(c10::DispatchKey::Conjugate));
  m.impl("swap", without_bit(c10::DispatchKey::Conjugate));
  m.impl("fill", without_bit(c10::DispatchKey::Conjugate));
}

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::Negative) {
  m.impl("extremes.out", without_bit(c10::DispatchKey::Negative));
  m.impl("swap", without_bit(c10::DispatchKey::Negative));
  m.impl("fill", without_bit(c10::DispatchKey::Negative));
}

} // namespace
} // namespace torchext::generated::goldens
""",
        )

    def test_nodes(self):
        self.assertExpectedInline(
            self.generated(nodes),
            """\
=== include/goldens/nodes_0.h
// Generated by codegen.emit.nodes from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/generated/autograd.h>

namespace torchext::generated::goldens {

// derivatives.yaml:3: mul.Tensor(Tensor self, Tensor other) -> Tensor
struct TORCHEXT_API MulBackward0 final : NodeOf<MulBackward0> {
  using NodeOf::NodeOf;
  std::string name() const override;

  torch::autograd::SavedVariable other_;
  torch::autograd::SavedVariable self_;
};

// derivatives.yaml:8: blend(Tensor[] parts, Tensor? weight=None, SymInt[2] size=1, *, float
//     eps=1e-6) -> (Tensor blended, Tensor total)
struct TORCHEXT_API BlendBackward0 final : NodeOf<BlendBackward0> {
  using NodeOf::NodeOf;
  std::string name() const override;

  ::std::vector<torch::autograd::SavedVariable> parts_;
  torch::autograd::SavedVariable weight_;
  double eps;
  torch::autograd::SavedVariable total_;
  size_t parts_size = 0;
};

} // namespace torchext::generated::goldens
=== src/nodes_0.cpp
// Generated by codegen.emit.nodes from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torchext/derivative_helpers.h>
#include <torchext/generated/node_definition.h>

#include <goldens/nodes_0.h>
#line 1 "derivatives.yaml"
#include <goldens/formulas.h>
#line 13 "src/nodes_0.cpp"

// Formulas are written in upstream's language: unqualified functions are ATen's and the helpers'.
namespace torchext::generated::goldens {

using namespace at;
using namespace torchext::derivatives;

// derivatives.yaml:3: mul.Tensor(Tensor self, Tensor other) -> Tensor
static void MulBackward0_gradients(
    Gradients& outputs,
    const variable_list& grads,
    const ::std::array<bool, 2>& needs,
    const at::Tensor& other,
    const at::Tensor& self) {
  const auto& grad = grads[0];
  if (needs[0]) {
#line 4 "derivatives.yaml"
    outputs.store(0, grad * other);
#line 32 "src/nodes_0.cpp"
  }
  if (needs[1]) {
#line 5 "derivatives.yaml"
    outputs.store(1, grad * self);
#line 37 "src/nodes_0.cpp"
  }
}

NodeDefinition<
    &MulBackward0_gradients, Edges<1, 1>, Member<&MulBackward0::other_>,
    Member<&MulBackward0::self_>>
definition_of(const MulBackward0*);

std::string MulBackward0::name() const {
  return "MulBackward0";
}

// derivatives.yaml:8: blend(Tensor[] parts, Tensor? weight=None, SymInt[2] size=1, *, float
//     eps=1e-6) -> (Tensor blended, Tensor total)
static void BlendBackward0_gradients(
    Gradients& outputs,
    const variable_list& grads,
    const ::std::array<bool, 2>& needs,
    size_t parts_size,
    const ::std::vector<at::Tensor>& parts,
    const at::Tensor& weight,
    const double& eps,
    const at::Tensor& total) {
  const auto& grad_blended = grads[0];
  if (needs[0] || needs[1]) {
    const ::std::array<bool, 2> grad_input_mask = {needs[0], needs[1]};
#line 10 "derivatives.yaml"
    const auto computed = ::goldens::formulas::blend_backward(grad_blended, parts, weight, total,
#line 10 "derivatives.yaml"
        eps, grad_input_mask);
#line 10 "derivatives.yaml"
    static_assert(is_list_of_gradients<decltype(::std::get<0>(computed))>,
        "the gradient of 'parts' is a list of tensors, and this formula gives none: it gives "
        "them all, or that of one element by grads[i]");
    if (needs[0]) {
#line 10 "derivatives.yaml"
      outputs.store(0, ::std::get<0>(computed));
    }
    if (needs[1]) {
#line 10 "derivatives.yaml"
      outputs.store(1, ::std::get<1>(computed));
    }
#line 80 "src/nodes_0.cpp"
  }
}

NodeDefinition<
    &BlendBackward0_gradients, Edges<&BlendBackward0::parts_size, 1>,
    Member<&BlendBackward0::parts_size>, Member<&BlendBackward0::parts_>,
    Member<&BlendBackward0::weight_>, Member<&BlendBackward0::eps>, Result<&BlendBackward0::total_>>
definition_of(const BlendBackward0*);

std::string BlendBackward0::name() const {
  return "BlendBackward0";
}

} // namespace torchext::generated::goldens

namespace torchext {

template class NodeOf<generated::goldens::MulBackward0>;
template class NodeOf<generated::goldens::BlendBackward0>;

} // namespace torchext
""",
        )

    def test_autograd(self):
        self.assertExpectedInline(
            self.generated(autograd),
            """\
=== src/autograd_0.cpp
// Generated by codegen.emit.autograd from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#include <goldens/library.h>
#include <torchext/generated/autograd_not_implemented.h>
#include <torchext/generated/view_forms.h>
#include <torchext/generated/fixed_list.h>
#include <torchext/generated/functionalization.h>
#include <torchext/generated/views.h>

#include <goldens/nodes_0.h>
#include <goldens/ops/blend.h>
#include <goldens/ops/mul.h>
#include <ATen/Functions.h>
#include <torchext/derivative_helpers.h>
#line 1 "derivatives.yaml"
#include <goldens/formulas.h>
#line 19 "src/autograd_0.cpp"

namespace torchext::generated::goldens {
namespace {

using namespace at;
using namespace torchext::derivatives;

// derivatives.yaml:3: mul.Tensor(Tensor self, Tensor other) -> Tensor
at::Tensor autograd_mul_Tensor(
    c10::DispatchKeySet keys, const at::Tensor& self, const at::Tensor& other) {
  const bool records = any_requires_grad(self, other);
  const auto node = recorded_node<MulBackward0>(records, self, other);
  if (node) {
    if (node->should_compute_output(0)) {
      node->other_ = save(other);
    }
    if (node->should_compute_output(1)) {
      node->self_ = save(self);
    }
  }
  auto result = below_adinplace_or_view<operators::mul_Tensor>(keys, self, other);
  check_new("goldens::mul.Tensor", result, self, other);
  set_result_history(result, node);
  at::Tensor result_tangent;
  if (has_tangent(self, other) && result.defined()) {
    at::Tensor self_t = tangent_of(self);
    const at::Tensor self_p = primal_of(self);
    at::Tensor other_t = tangent_of(other);
    const at::Tensor other_p = primal_of(other);
#line 6 "derivatives.yaml"
    result_tangent = other_t * self_p + self_t * other_p;
#line 51 "src/autograd_0.cpp"
    set_apart(result_tangent, self, other);
  }
  set_tangent(result, result_tangent);
  return result;
}

// derivatives.yaml:8: blend(Tensor[] parts, Tensor? weight=None, SymInt[2] size=1, *, float
//     eps=1e-6) -> (Tensor blended, Tensor total)
::std::tuple<at::Tensor, at::Tensor> autograd_blend(
    c10::DispatchKeySet keys,
    at::TensorList parts,
    const ::std::optional<at::Tensor>& weight,
    c10::SymIntArrayRef size_given,
    double eps) {
  const auto size_as_list = torchext::fixed_list<2>(size_given);
  const c10::SymIntArrayRef size = size_as_list;
  const bool records = any_requires_grad(parts, weight);
  const auto node = recorded_node<BlendBackward0>(records, parts, weight);
  if (node) {
    node->parts_size = parts.size();
    node->parts_ = save(parts);
    node->weight_ = save(weight);
    node->eps = save_value<double>(eps);
  }
  auto [blended, total] = below_adinplace_or_view<operators::blend>(keys, parts, weight, size, eps);
  check_new("goldens::blend", blended, parts, weight);
  check_new("goldens::blend", total, parts, weight);
  check_apart("goldens::blend", blended, total);
  set_result_history(blended, node);
  at::Tensor blended_tangent;
  if (has_tangent(weight, parts) && blended.defined()) {
    at::Tensor weight_t = tangent_of(weight);
#line 11 "derivatives.yaml"
    blended_tangent = weight_t * total;
#line 86 "src/autograd_0.cpp"
    set_apart(blended_tangent, weight, parts);
  }
  set_tangent(blended, blended_tangent);
  if (node) {
    node->total_ = save(total, true);
  }
  return ::std::tuple<at::Tensor, at::Tensor>(::std::move(blended), ::std::move(total));
}

// derivatives.yaml:3: mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
at::Tensor& autograd_mul__Tensor(
    c10::DispatchKeySet keys, at::Tensor& self, const at::Tensor& other) {
  const bool records = any_requires_grad(self, other);
  torch::autograd::check_inplace(self, records);
  const auto other_before = before_write(has_tangent(self, other), other, self);
  ::std::optional<at::Tensor> original_self;
  if (has_tangent(self, other)) {
    kept(original_self, self);
  }
  const auto node = recorded_node<MulBackward0>(records, self, other);
  if (node) {
    if (node->should_compute_output(0)) {
      node->other_ = save(other);
    }
    if (node->should_compute_output(1)) {
      node->self_ = save(kept(original_self, self));
    }
  }
  below_autograd<operators::mul__Tensor>(keys, self, other);
  rebase_result_history(self, node);
  at::Tensor self_tangent;
  if (has_tangent(self, other)) {
    at::Tensor self_t_raw = raw_tangent_of(self);
    at::Tensor other_t = tangent_of(other_before);
    const at::Tensor other_p = primal_of(other_before);
    at::Tensor original_self_t = writable_tangent_of(original_self);
    const at::Tensor original_self_p = primal_of(original_self);
#line 6 "derivatives.yaml"
    self_tangent =
#line 6 "derivatives.yaml"
        written_tangent(self_t_raw, other_t * original_self_p + original_self_t * other_p);
#line 128 "src/autograd_0.cpp"
    self_tangent = tangent_or_zeros(self_tangent, self);
    set_apart(self_tangent, other);
  }
  set_tangent(self, self_tangent, /*is_inplace=*/true);
  return self;
}

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::Autograd) {
  m.impl("mul.Tensor", &autograd_mul_Tensor);
  m.impl("blend", &autograd_blend);
  m.impl("mul_.Tensor", &autograd_mul__Tensor);
  m.impl("halves", autograd_not_implemented());
  m.impl("scale", autograd_not_implemented());
  m.impl("scale_", autograd_not_implemented());
  m.impl("scale.out", autograd_not_implemented());
  m.impl("extremes", autograd_not_implemented());
  m.impl("extremes.out", autograd_not_implemented());
  m.impl("halved", autograd_not_implemented());
  m.impl("halved.out", autograd_not_implemented());
  m.impl("swap", autograd_not_implemented());
  m.impl("fill", autograd_not_implemented());
  m.impl("swap.functional", autograd_not_implemented());
  m.impl("halves_scatter", scatter_by_parts("goldens::halves", ""));
  m.impl("halves_copy", view_copy_by_parts("goldens::halves", ""));
}

TORCHEXT_LIBRARY_IMPL(m, DispatchKey::ADInplaceOrView) {
  m.impl("mul_.Tensor", tracked_aliases(Views::kNone));
  m.impl("halves", tracked_aliases(Views::kRefused));
  m.impl("scale_", tracked_aliases(Views::kNone));
  m.impl("scale.out", tracked_aliases(Views::kNone));
  m.impl("extremes.out", tracked_aliases(Views::kNone));
  m.impl("halved.out", tracked_aliases(Views::kNone));
  m.impl("swap", traced_on_copies("goldens::swap", "functional"));
  m.impl("fill", tracked_aliases(Views::kNone));
}

} // namespace
} // namespace torchext::generated::goldens
""",
        )

    def test_python_nodes(self):
        self.assertExpectedInline(
            self.generated(python_nodes),
            """\
=== python/module.cpp
// Generated by codegen.emit.python_nodes from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#include <torchext/generated/python_library.h>

namespace torchext::generated::goldens {

void add_node_classes_0(PyObject* classes);

TORCHEXT_DEFINE_PYTHON_LIBRARY(goldens, add_node_classes_0);

} // namespace torchext::generated::goldens
=== python/nodes_0.cpp
// Generated by codegen.emit.python_nodes from native_functions.yaml and derivatives.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#include <torchext/generated/python_nodes.h>

#include <goldens/nodes_0.h>

namespace torchext::generated::goldens {

void add_node_classes_0(PyObject* classes) {
  // derivatives.yaml:3: mul.Tensor(Tensor self, Tensor other) -> Tensor
  add_class<MulBackward0>(classes, "MulBackward0", {
      saved<&MulBackward0::other_>("_saved_other"),
      raw_saved<&MulBackward0::other_>("_raw_saved_other"),
      saved<&MulBackward0::self_>("_saved_self"),
      raw_saved<&MulBackward0::self_>("_raw_saved_self"),
  });
  // derivatives.yaml:8: blend(Tensor[] parts, Tensor? weight=None, SymInt[2] size=1, *, float
  //     eps=1e-6) -> (Tensor blended, Tensor total)
  add_class<BlendBackward0>(classes, "BlendBackward0", {
      saved<&BlendBackward0::parts_>("_saved_parts"),
      raw_saved<&BlendBackward0::parts_>("_raw_saved_parts"),
      saved<&BlendBackward0::weight_>("_saved_weight"),
      raw_saved<&BlendBackward0::weight_>("_raw_saved_weight"),
      saved<&BlendBackward0::eps>("_saved_eps"),
      saved<&BlendBackward0::total_>("_saved_total"),
      raw_saved<&BlendBackward0::total_>("_raw_saved_total"),
  });
}

} // namespace torchext::generated::goldens
""",
        )

    def test_operator_table(self):
        self.assertExpectedInline(
            self.generated(operator_table),
            """\
=== python/operators.json
{"namespace": "goldens", "overrides": [], "beside": ["swap.functional", "halves_scatter", "halves_copy"], "operators": [
{"name": "mul.Tensor", "schema": "mul.Tensor(Tensor self, Tensor other) -> Tensor", "location": "native_functions.yaml:1", "functional": null, "composite": false, "cpu_fallback": ["PrivateUse1"], "gradients": ["self", "other"], "refuses_gradients": false, "own_autograd": false, "shape_rule": false, "dynamic_sizes": false, "tangents": true, "autocast": null, "dtypes": {}, "samples": []},
{"name": "blend", "schema": "blend(Tensor[] parts, Tensor? weight=None, SymInt[2] size=1, *, float eps=1e-6) -> (Tensor blended, Tensor total)", "location": "native_functions.yaml:9", "functional": null, "composite": false, "cpu_fallback": [], "gradients": ["parts", "weight"], "refuses_gradients": false, "own_autograd": false, "shape_rule": false, "dynamic_sizes": false, "tangents": true, "autocast": null, "dtypes": {}, "samples": []},
{"name": "mul_.Tensor", "schema": "mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "location": "native_functions.yaml:15", "functional": "mul.Tensor", "composite": false, "cpu_fallback": [], "gradients": ["self", "other"], "refuses_gradients": false, "own_autograd": false, "shape_rule": false, "dynamic_sizes": false, "tangents": true, "autocast": null, "dtypes": {}, "samples": []},
{"name": "halves", "schema": "halves(Tensor(a) self) -> Tensor(a)[]", "location": "native_functions.yaml:19", "functional": null, "composite": false, "cpu_fallback": [], "gradients": [], "refuses_gradients": true, "own_autograd": false, "shape_rule": false, "dynamic_sizes": false, "tangents": false, "autocast": null, "dtypes": {}, "samples": []},
{"name": "halve", "schema": "halve(Tensor self, *, bool default=True) -> Tensor", "location": "native_functions.yaml:24", "functional": null, "composite": true, "cpu_fallback": [], "gradients": [], "refuses_gradients": false, "own_autograd": false, "shape_rule": false, "dynamic_sizes": false, "tangents": false, "autocast": null, "dtypes": {}, "samples": []},
{"name": "scale", "schema": "scale(Tensor self, Scalar factor) -> Tensor", "location": "native_functions.yaml:26", "functional": null, "composite": false, "cpu_fallback": [], "gradients": [], "refuses_gradients": true, "own_autograd": false, "shape_rule": true, "dynamic_sizes": false, "tangents": false, "autocast": null, "dtypes": {"CPU": {"self": ["float32", "float64"]}, "CUDA": {"self": ["float32", "float64"]}, "Meta": {"self": ["float32", "float64"]}}, "samples": [{"self": {"tensor": {"size": [2, 3]}}, "factor": 0.5}, {"self": {"tensor": {"size": [], "dtype": "float64", "low": {"float": "-inf"}}}, "factor": {"complex": [2.0, -1.5]}}]},
{"name": "scale_", "schema": "scale_(Tensor(a!) self, Scalar factor) -> Tensor(a!)", "location": "native_functions.yaml:33", "functional": "scale", "composite": false, "cpu_fallback": [], "gradients": [], "refuses_gradients": true, "own_autograd": false, "shape_rule": true, "dynamic_sizes": false, "tangents": false, "autocast": null, "dtypes": {"CPU": {"self": ["float32", "float64"]}, "CUDA": {"self": ["float32", "float64"]}, "Meta": {"self": ["float32", "float64"]}}, "samples": [{"self": {"tensor": {"size": [2, 3]}}, "factor": 0.5}, {"self": {"tensor": {"size": [], "dtype": "float64", "low": {"float": "-inf"}}}, "factor": {"complex": [2.0, -1.5]}}]},
{"name": "scale.out", "schema": "scale.out(Tensor self, Scalar factor, *, Tensor(a!) out) -> Tensor(a!)", "location": "native_functions.yaml:37", "functional": "scale", "composite": false, "cpu_fallback": [], "gradients": [], "refuses_gradients": true, "own_autograd": false, "shape_rule": true, "dynamic_sizes": false, "tangents": false, "autocast": null, "dtypes": {"CPU": {"self": ["float32", "float64"]}, "CUDA": {"self": ["float32", "float64"]}, "Meta": {"self": ["float32", "float64"]}}, "samples": [{"self": {"tensor": {"size": [2, 3]}}, "factor": 0.5}, {"self": {"tensor": {"size": [], "dtype": "float64", "low": {"float": "-inf"}}}, "factor": {"complex": [2.0, -1.5]}}]},
{"name": "extremes", "schema": "extremes(Tensor self, Tensor? weight, int dim) -> (Tensor least, Tensor most)", "location": "native_functions.yaml:45", "functional": null, "composite": false, "cpu_fallback": ["CUDA"], "gradients": [], "refuses_gradients": true, "own_autograd": false, "shape_rule": true, "dynamic_sizes": false, "tangents": false, "autocast": null, "dtypes": {}, "samples": []},
{"name": "extremes.out", "schema": "extremes.out(Tensor self, Tensor? weight, int dim, *, Tensor(a!) least, Tensor(b!) most) -> (Tensor(a!) least, Tensor(b!) most)", "location": "native_functions.yaml:48", "functional": "extremes", "composite": false, "cpu_fallback": ["CUDA"], "gradients": [], "refuses_gradients": true, "own_autograd": false, "shape_rule": true, "dynamic_sizes": false, "tangents": false, "autocast": null, "dtypes": {}, "samples": []},
{"name": "halved", "schema": "halved(Tensor self, Tensor? weight, SymInt n) -> Tensor", "location": "native_functions.yaml:57", "functional": null, "composite": false, "cpu_fallback": [], "gradients": [], "refuses_gradients": true, "own_autograd": false, "shape_rule": true, "dynamic_sizes": false, "tangents": false, "autocast": null, "dtypes": {"CPU": {"self": ["float32", "float64"], "weight": ["float32", "float64"]}, "CUDA": {"self": ["float32", "float64", "float16", "bfloat16"], "weight": ["float32"]}, "Meta": {"self": ["float32", "float64", "float16", "bfloat16"], "weight": ["float32", "float64"]}}, "samples": []},
{"name": "halved.out", "schema": "halved.out(Tensor self, Tensor? weight, SymInt n, *, Tensor(a!) out) -> Tensor(a!)", "location": "native_functions.yaml:57", "functional": "halved", "composite": false, "cpu_fallback": [], "gradients": [], "refuses_gradients": true, "own_autograd": false, "shape_rule": true, "dynamic_sizes": false, "tangents": false, "autocast": null, "dtypes": {"CPU": {"self": ["float32", "float64"], "weight": ["float32", "float64"]}, "CUDA": {"self": ["float32", "float64", "float16", "bfloat16"], "weight": ["float32"]}, "Meta": {"self": ["float32", "float64", "float16", "bfloat16"], "weight": ["float32", "float64"]}}, "samples": []},
{"name": "swap", "schema": "swap(Tensor(a!) first, Tensor(b!) second) -> (Tensor(a!), Tensor(b!))", "location": "native_functions.yaml:74", "functional": null, "composite": false, "cpu_fallback": [], "gradients": [], "refuses_gradients": true, "own_autograd": false, "shape_rule": false, "dynamic_sizes": false, "tangents": false, "autocast": null, "dtypes": {}, "samples": []},
{"name": "fill", "schema": "fill(Tensor(a!) self) -> Tensor", "location": "native_functions.yaml:80", "functional": null, "composite": false, "cpu_fallback": [], "gradients": [], "refuses_gradients": true, "own_autograd": false, "shape_rule": false, "dynamic_sizes": false, "tangents": false, "autocast": null, "dtypes": {}, "samples": []}
]}
""",
        )


if __name__ == "__main__":
    unittest.main()
