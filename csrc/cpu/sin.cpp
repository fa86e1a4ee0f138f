// SPDX-License-Identifier: BSD-3-Clause

#include "pointwise.h"

#include <ATen/Dispatch.h>
#include <myns/kernels/sin.h>
#include <torchext/elementwise.h>

#include <cmath>

namespace {

void fill(at::TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(
      at::kHalf, at::kBFloat16, iter.common_dtype(), "myns::sin", [&] {
        using Acc = at::opmath_type<scalar_t>;
        myns::native::unary_kernel<scalar_t>(iter, [](Acc a) { return std::sin(a); });
      });
}

} // namespace

at::Tensor myns::native::sin_cpu(const at::Tensor& self) {
  auto iter = torchext::pointwise_iterator(torchext::Promote::kFloat, at::Tensor(), self);
  fill(iter);
  return iter.output();
}
