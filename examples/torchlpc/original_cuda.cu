// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels of the package for CUDA, in its own files as they are.
#include "skip_registration.h"

#include "cuda/linear_recurrence.cu"
#include "cuda/lpc.cu"

#include <torchlpc/kernels.h>

// Of nothing the package's kernels launch no block, an error that the next call of CUDA reports.
at::Tensor torchlpc::native::lpc_cuda(
    const at::Tensor& x, const at::Tensor& a, const at::Tensor& zi) {
  if (a.numel() == 0) {
    return at::clone(x);
  }
  return ::lpc_cuda_wrapper(x, a, zi);
}

at::Tensor torchlpc::native::scan_cuda(
    const at::Tensor& input, const at::Tensor& weights, const at::Tensor& initials) {
  if (input.numel() == 0) {
    return at::empty_like(input);
  }
  return ::scan_cuda_wrapper(input, weights, initials.contiguous());
}
