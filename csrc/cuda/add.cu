// SPDX-License-Identifier: BSD-3-Clause

#include <ATen/Dispatch.h>
#include <ATen/native/cuda/Loops.cuh>
#include <myns/kernels/add.h>
#include <torchext/elementwise.h>

namespace {

template <typename Acc>
struct AddScaled {
  Acc alpha;

  __device__ __forceinline__ Acc operator()(Acc a, Acc b) const {
    return a + alpha * b;
  }
};

void fill(at::TensorIteratorBase& iter, const at::Scalar& alpha) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(
      at::kComplexHalf, at::kHalf, at::kBFloat16, at::kBool, iter.common_dtype(), "myns::add", [&] {
        using Acc = at::opmath_type<scalar_t>;
        at::native::opmath_gpu_kernel_with_scalars<scalar_t>(iter, AddScaled<Acc>{alpha.to<Acc>()});
      });
}

} // namespace

at::Tensor myns::native::add_cuda(
    const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  auto iter = torchext::pointwise_iterator(torchext::Promote::kCommon, at::Tensor(), self, other);
  torchext::check_alpha("myns::add", iter.common_dtype(), alpha);
  fill(iter, alpha);
  return iter.output();
}
