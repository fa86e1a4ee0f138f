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

} // namespace

void myns::native::structured_muladd_cuda::impl(
    const at::Tensor& a, const at::Tensor& b, const at::Scalar& c, const at::Tensor& out) {
  if (is_promoted_by_addend(a, b, c)) {
    at::Tensor sum = out;
    at::add_out(sum, at::mul(a, b), at::native::wrapped_scalar_tensor(c));
    return;
  }
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(
      at::kComplexHalf, at::kHalf, at::kBFloat16, at::kBool, common_dtype(), "myns::muladd", [&] {
        using Acc = at::opmath_type<scalar_t>;
        at::native::opmath_symmetric_gpu_kernel_with_scalars<scalar_t>(
            *this, MultiplyAdd<Acc>{converted_addend<Acc>(c)});
      });
}
