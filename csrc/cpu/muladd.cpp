// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/cpu_loops.h> // first

#include "../meta/muladd.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <myns/kernels/muladd.h>

void myns::native::structured_muladd_cpu::impl(
    const at::Tensor& a, const at::Tensor& b, const at::Scalar& c, const at::Tensor& out) {
  if (is_promoted_by_addend(a, b, c)) {
    at::Tensor sum = out;
    at::add_out(sum, at::mul(a, b), at::native::wrapped_scalar_tensor(c));
    return;
  }
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(
      at::kComplexHalf, at::kHalf, at::kBFloat16, at::kBool, common_dtype(), "myns::muladd", [&] {
        using Acc = at::opmath_type<scalar_t>;
        const auto addend = converted_addend<Acc>(c);
        torchext::binary_kernel<scalar_t>(
            *this, [addend](Acc a, Acc b) { return static_cast<Acc>(a * b + addend); });
      });
}
