// SPDX-License-Identifier: BSD-3-Clause

#include <ATen/Dispatch.h>
#include <ATen/native/cuda/Loops.cuh>
#include <c10/util/complex.h>
#include <myns/kernels/sigmoid.h>

namespace {

template <typename T>
struct Sigmoid {
  __device__ __forceinline__ T operator()(T a) const {
    using Acc = at::opmath_type<T>;
    return static_cast<T>(Acc(1) / (Acc(1) + std::exp(-static_cast<Acc>(a))));
  }
};

} // namespace

void myns::native::structured_sigmoid_cuda::impl(
    const at::Tensor& /*self*/, const at::Tensor& /*out*/) {
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(
      at::kHalf, at::kBFloat16, common_dtype(), "myns::sigmoid", [&] {
        at::native::gpu_kernel(*this, Sigmoid<scalar_t>());
      });
}
