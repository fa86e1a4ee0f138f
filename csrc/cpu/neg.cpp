// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/cpu_loops.h> // first

#include <ATen/Dispatch.h>
#include <myns/kernels/neg.h>

void myns::native::structured_neg_cpu::impl(const at::Tensor& /*self*/, const at::Tensor& /*out*/) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(
      at::kHalf, at::kBFloat16, common_dtype(), "myns::neg", [&] {
        using Acc = at::opmath_type<scalar_t>;
        torchext::unary_kernel<scalar_t>(*this, [](Acc a) { return static_cast<Acc>(-a); });
      });
}
