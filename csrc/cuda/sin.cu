// SPDX-License-Identifier: BSD-3-Clause

#include <ATen/Dispatch.h>
#include <ATen/native/cuda/Loops.cuh>
#include <c10/util/complex.h>
#include <myns/kernels/sin.h>

namespace {

template <typename T>
struct Sine {
  __device__ __forceinline__ T operator()(T a) const {
    using Acc = at::opmath_type<T>;
    return static_cast<T>(std::sin(static_cast<Acc>(a)));
  }
};

} // namespace

void myns::native::structured_sin_cuda::impl(
    const at::Tensor& /*self*/, const at::Tensor& /*out*/) {
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(
      at::kHalf, at::kBFloat16, common_dtype(), "myns::sin", [&] {
        at::native::gpu_kernel(*this, Sine<scalar_t>());
      });
}
