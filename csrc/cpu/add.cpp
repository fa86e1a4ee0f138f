// SPDX-License-Identifier: BSD-3-Clause

#include "pointwise.h"

#include <ATen/Dispatch.h>
#include <myns/kernels/add.h>
#include <torchext/elementwise.h>

namespace {

void fill(at::TensorIteratorBase& iter, const at::Scalar& alpha) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(
      at::kComplexHalf, at::kHalf, at::kBFloat16, at::kBool, iter.common_dtype(), "myns::add", [&] {
        using Acc = at::opmath_type<scalar_t>;
        const auto factor = alpha.to<Acc>();
        // Not binary_kernel: at::add rounds a scalar beside float16 to float16 first.
        myns::native::binary_loop<scalar_t>(
            iter, [factor](Acc a, Acc b) { return static_cast<Acc>(a + factor * b); });
      });
}

} // namespace

at::Tensor myns::native::add_cpu(
    const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  auto iter = torchext::pointwise_iterator(torchext::Promote::kCommon, at::Tensor(), self, other);
  torchext::check_alpha("myns::add", iter.common_dtype(), alpha);
  fill(iter, alpha);
  return iter.output();
}
