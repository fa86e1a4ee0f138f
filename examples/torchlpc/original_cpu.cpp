// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels of the package for the CPU, in its own file as it is.
#include "skip_registration.h"

#include "scan_cpu.cpp"

#include <torchlpc/kernels.h>

at::Tensor torchlpc::native::lpc_cpu(
    const at::Tensor& x, const at::Tensor& a, const at::Tensor& zi) {
  return ::lpc_cpu(x, a, zi);
}

at::Tensor torchlpc::native::scan_cpu(
    const at::Tensor& input, const at::Tensor& weights, const at::Tensor& initials) {
  return ::scan_cpu_wrapper(input, weights, initials);
}
