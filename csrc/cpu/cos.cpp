// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/cpu_loops.h> // first

#include <ATen/Dispatch.h>
#include <myns/kernels/cos.h>

#include <cmath>

void myns::native::structured_cos_cpu::impl(const at::Tensor& /*self*/, const at::Tensor& /*out*/) {
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(
      at::kHalf, at::kBFloat16, common_dtype(), "myns::cos", [&] {
        using Acc = at::opmath_type<scalar_t>;
        torchext::unary_kernel<scalar_t>(*this, [](Acc a) { return std::cos(a); });
      });
}
