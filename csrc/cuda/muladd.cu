// SPDX-License-Identifier: BSD-3-Clause

#include "../meta/muladd.h"

#include <ATen/Dispatch.h>
#include <ATen/native/cuda/Loops.cuh>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <myns/kernels/muladd.h>

namespace {

template <typename Acc>
struct MultiplyAdd {
  Acc c;

  __device__ __forceinline__ Acc operator()(Acc a, Acc b) const {
    return a * b + c;
  }
};

void fill(at::TensorIteratorBase& iter, const at::Scalar& c) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(
      at::kComplexHalf,
      at::kHalf,
      at::kBFloat16,
      at::kBool,
      iter.common_dtype(),
      "myns::muladd",
      [&] {
        using Acc = at::opmath_type<scalar_t>;
        at::native::opmath_symmetric_gpu_kernel_with_scalars<scalar_t>(
            iter, MultiplyAdd<Acc>{myns::native::converted_addend<Acc>(c)});
      });
}

} // namespace

at::Tensor myns::native::muladd_cuda(
    const at::Tensor& a, const at::Tensor& b, const at::Scalar& c) {
  if (is_promoted_by_addend(a, b, c)) {
    return at::add(at::mul(a, b), c);
  }
  auto iter = torchext::pointwise_iterator(torchext::Promote::kCommon, at::Tensor(), a, b);
  fill(iter, c);
  return iter.output();
}
