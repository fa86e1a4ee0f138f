// SPDX-License-Identifier: BSD-3-Clause

#include "pointwise.h"

#include "../meta/neg.h"

#include <ATen/Dispatch.h>
#include <myns/kernels/neg.h>

namespace {

void fill(myns::native::Pointwise& operands) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(
      at::kHalf, at::kBFloat16, operands.common_dtype(), "myns::neg", [&] {
        using Acc = at::opmath_type<scalar_t>;
        myns::native::unary_kernel<scalar_t>(operands, [](Acc a) { return static_cast<Acc>(-a); });
      });
}

} // namespace

at::Tensor myns::native::neg_cpu(const at::Tensor& self) {
  check_neg(self);
  Pointwise operands(torchext::Promote::kCommon, self);
  fill(operands);
  return operands.output();
}
