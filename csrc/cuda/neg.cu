// SPDX-License-Identifier: BSD-3-Clause

#include "../meta/neg.h"

#include <ATen/Dispatch.h>
#include <ATen/native/cuda/Loops.cuh>
#include <myns/kernels/neg.h>
#include <torchext/elementwise.h>

namespace {

template <typename T>
struct Negate {
  __device__ __forceinline__ T operator()(T a) const {
    return -a;
  }
};

void fill(at::TensorIteratorBase& iter) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(
      at::kHalf, at::kBFloat16, iter.common_dtype(), "myns::neg", [&] {
        at::native::gpu_kernel(iter, Negate<scalar_t>());
      });
}

} // namespace

at::Tensor myns::native::neg_cuda(const at::Tensor& self) {
  check_neg(self);
  auto iter = torchext::pointwise_iterator(torchext::Promote::kCommon, at::Tensor(), self);
  fill(iter);
  return iter.output();
}
