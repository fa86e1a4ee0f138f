// SPDX-License-Identifier: BSD-3-Clause

#include "pointwise.h"

#include <ATen/Dispatch.h>
#include <myns/kernels/add.h>

namespace {

void fill(myns::native::Pointwise& operands, const at::Scalar& alpha) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(
      at::kComplexHalf,
      at::kHalf,
      at::kBFloat16,
      at::kBool,
      operands.common_dtype(),
      "myns::add",
      [&] {
        using Acc = at::opmath_type<scalar_t>;
        (void)alpha.to<scalar_t>(); // refuses what the dtype cannot hold, as at::add does
        const auto factor = alpha.to<Acc>();
        const auto sum = [factor](Acc a, Acc b) { return static_cast<Acc>(a + factor * b); };
        myns::native::binary_kernel<scalar_t>(operands, sum, myns::native::ScalarOperand::kRounded);
      });
}

} // namespace

at::Tensor myns::native::add_cpu(
    const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  Pointwise operands(torchext::Promote::kCommon, self, other);
  torchext::check_alpha("myns::add", operands.common_dtype(), alpha);
  fill(operands, alpha);
  return operands.output();
}
