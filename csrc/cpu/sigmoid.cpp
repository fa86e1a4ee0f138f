// SPDX-License-Identifier: BSD-3-Clause

#include "pointwise.h"
#include "vec_math.h"

#include <ATen/Dispatch.h>
#include <myns/kernels/sigmoid.h>

#include <cmath>

namespace {

template <typename T>
T sigmoid(T a) {
  if constexpr (c10::is_complex<T>::value) {
    return T(1) / (T(1) + std::exp(-a));
  } else {
    return myns::native::vec_sigmoid(a);
  }
}

void fill(myns::native::Pointwise& operands) {
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(
      at::kHalf, at::kBFloat16, operands.common_dtype(), "myns::sigmoid", [&] {
        using Acc = at::opmath_type<scalar_t>;
        myns::native::unary_kernel<scalar_t>(operands, [](Acc a) { return sigmoid(a); });
      });
}

} // namespace

at::Tensor myns::native::sigmoid_cpu(const at::Tensor& self) {
  Pointwise operands(torchext::Promote::kFloat, self);
  fill(operands);
  return operands.output();
}
