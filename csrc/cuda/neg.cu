// SPDX-License-Identifier: BSD-3-Clause

#include <ATen/Dispatch.h>
#include <ATen/native/cuda/Loops.cuh>
#include <myns/kernels/neg.h>

namespace {

template <typename T>
struct Negate {
  __device__ __forceinline__ T operator()(T a) const {
    return -a;
  }
};

} // namespace

void myns::native::structured_neg_cuda::impl(
    const at::Tensor& /*self*/, const at::Tensor& /*out*/) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(
      at::kHalf, at::kBFloat16, common_dtype(), "myns::neg", [&] {
        at::native::gpu_kernel(*this, Negate<scalar_t>());
      });
}
