// SPDX-License-Identifier: BSD-3-Clause

#include "pointwise.h"

#include <ATen/Dispatch.h>
#include <myns/kernels/sin.h>

#include <cmath>

namespace {

void fill(myns::native::Pointwise& operands) {
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(
      at::kHalf, at::kBFloat16, operands.common_dtype(), "myns::sin", [&] {
        using Acc = at::opmath_type<scalar_t>;
        myns::native::unary_kernel<scalar_t>(operands, [](Acc a) { return std::sin(a); });
      });
}

} // namespace

at::Tensor myns::native::sin_cpu(const at::Tensor& self) {
  Pointwise operands(torchext::Promote::kFloat, self);
  fill(operands);
  return operands.output();
}
