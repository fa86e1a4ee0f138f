// SPDX-License-Identifier: BSD-3-Clause

#include "pointwise.h"

#include "../meta/neg.h"

#include <ATen/Dispatch.h>
#include <myns/kernels/neg.h>
#include <torchext/elementwise.h>

namespace {

void fill(at::TensorIteratorBase& iter) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(
      at::kHalf, at::kBFloat16, iter.common_dtype(), "myns::neg", [&] {
        using Acc = at::opmath_type<scalar_t>;
        myns::native::unary_kernel<scalar_t>(iter, [](Acc a) { return static_cast<Acc>(-a); });
      });
}

} // namespace

at::Tensor myns::native::neg_cpu(const at::Tensor& self) {
  check_neg(self);
  auto iter = torchext::pointwise_iterator(torchext::Promote::kCommon, at::Tensor(), self);
  fill(iter);
  return iter.output();
}
