// SPDX-License-Identifier: BSD-3-Clause

#include "pointwise.h"

#include <ATen/Dispatch.h>
#include <myns/kernels/mul.h>

#include <type_traits>

namespace {

template <typename T>
T product(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a && b;
  } else {
    return a * b;
  }
}

void fill(myns::native::Pointwise& operands) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(
      at::kComplexHalf,
      at::kHalf,
      at::kBFloat16,
      at::kBool,
      operands.common_dtype(),
      "myns::mul",
      [&] {
        using Acc = at::opmath_type<scalar_t>;
        myns::native::binary_kernel<scalar_t>(operands, [](Acc a, Acc b) { return product(a, b); });
      });
}

} // namespace

at::Tensor myns::native::mul_cpu(const at::Tensor& self, const at::Tensor& other) {
  Pointwise operands(torchext::Promote::kCommon, self, other);
  fill(operands);
  return operands.output();
}
