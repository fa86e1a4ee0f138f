// SPDX-License-Identifier: BSD-3-Clause

#include "pointwise.h"

#include "../meta/muladd.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <myns/kernels/muladd.h>

namespace {

void fill(myns::native::Pointwise& operands, const at::Scalar& c) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(
      at::kComplexHalf,
      at::kHalf,
      at::kBFloat16,
      at::kBool,
      operands.common_dtype(),
      "myns::muladd",
      [&] {
        using Acc = at::opmath_type<scalar_t>;
        const auto addend = myns::native::converted_addend<Acc>(c);
        myns::native::binary_kernel<scalar_t>(
            operands, [addend](Acc a, Acc b) { return static_cast<Acc>(a * b + addend); });
      });
}

} // namespace

at::Tensor myns::native::muladd_cpu(const at::Tensor& a, const at::Tensor& b, const at::Scalar& c) {
  if (is_promoted_by_addend(a, b, c)) {
    return at::add(at::mul(a, b), c);
  }
  Pointwise operands(torchext::Promote::kCommon, a, b);
  fill(operands, c);
  return operands.output();
}
