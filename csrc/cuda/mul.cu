// SPDX-License-Identifier: BSD-3-Clause

#include <ATen/Dispatch.h>
#include <ATen/native/cuda/Loops.cuh>
#include <myns/kernels/mul.h>

namespace {

template <typename Acc>
struct Multiply {
  __device__ __forceinline__ Acc operator()(Acc a, Acc b) const {
    return a * b;
  }
};

} // namespace

void myns::native::structured_mul_cuda::impl(
    const at::Tensor& /*self*/, const at::Tensor& /*other*/, const at::Tensor& /*out*/) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(
      at::kComplexHalf, at::kHalf, at::kBFloat16, at::kBool, common_dtype(), "myns::mul", [&] {
        using Acc = at::opmath_type<scalar_t>;
        at::native::opmath_symmetric_gpu_kernel_with_scalars<scalar_t>(*this, Multiply<Acc>());
      });
}
