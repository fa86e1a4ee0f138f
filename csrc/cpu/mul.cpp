// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/cpu_loops.h> // first

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

} // namespace

void myns::native::structured_mul_cpu::impl(
    const at::Tensor& /*self*/, const at::Tensor& /*other*/, const at::Tensor& /*out*/) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(
      at::kComplexHalf, at::kHalf, at::kBFloat16, at::kBool, common_dtype(), "myns::mul", [&] {
        using Acc = at::opmath_type<scalar_t>;
        torchext::binary_kernel<scalar_t>(*this, [](Acc a, Acc b) { return product(a, b); });
      });
}
