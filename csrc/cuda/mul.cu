// SPDX-License-Identifier: BSD-3-Clause

#include <ATen/Dispatch.h>
#include <ATen/native/cuda/Loops.cuh>
#include <myns/kernels/mul.h>
#include <torchext/elementwise.h>

namespace {

template <typename Acc>
struct Multiply {
  __device__ __forceinline__ Acc operator()(Acc a, Acc b) const {
    return a * b;
  }
};

void fill(at::TensorIteratorBase& iter) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(
      at::kComplexHalf, at::kHalf, at::kBFloat16, at::kBool, iter.common_dtype(), "myns::mul", [&] {
        using Acc = at::opmath_type<scalar_t>;
        at::native::opmath_symmetric_gpu_kernel_with_scalars<scalar_t>(iter, Multiply<Acc>());
      });
}

} // namespace

at::Tensor myns::native::mul_cuda(const at::Tensor& self, const at::Tensor& other) {
  auto iter = torchext::pointwise_iterator(torchext::Promote::kCommon, at::Tensor(), self, other);
  fill(iter);
  return iter.output();
}
