// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/cpu_loops.h> // first

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

} // namespace

void myns::native::structured_sigmoid_cpu::impl(
    const at::Tensor& /*self*/, const at::Tensor& /*out*/) {
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(
      at::kHalf, at::kBFloat16, common_dtype(), "myns::sigmoid", [&] {
        using Acc = at::opmath_type<scalar_t>;
        torchext::unary_kernel<scalar_t>(*this, [](Acc a) { return sigmoid(a); });
      });
}
