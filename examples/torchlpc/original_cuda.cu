// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels of the package for CUDA, in its own files as they are.
#include "skip_registration.h"

#include "cuda/linear_recurrence.cu"
#include "cuda/lpc.cu"

#include <torchlpc/kernels.h>

at::Tensor torchlpc::native::lpc_cuda(
    const at::Tensor& x, const at::Tensor& a, const at::Tensor& zi) {
  return ::lpc_cuda_wrapper(x, a, zi);
}

at::Tensor torchlpc::native::scan_cuda(
    const at::Tensor& input, const at::Tensor& weights, const at::Tensor& initials) {
  return ::scan_cuda_wrapper(input, weights, initials.contiguous());
}
