// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels of the package for the CPU, in its own file as it is.
#include "skip_registration.h"

#include "scan_cpu.cpp"

#include <torchlpc/kernels.h>

#include <algorithm>

at::Tensor torchlpc::native::lpc_cpu(
    const at::Tensor& x, const at::Tensor& a, const at::Tensor& zi) {
  return ::lpc_cpu(x, a, zi);
}

// The package's kernel keeps two numbers for each element on the stack, and torch.vmap calls it with
// the rows of all examples: it gets as many rows at a time as a stack has room for.
at::Tensor torchlpc::native::scan_cpu(
    const at::Tensor& input, const at::Tensor& weights, const at::Tensor& initials) {
  constexpr int64_t most = 1 << 16;
  const int64_t rows = input.size(0);
  const int64_t step = std::max<int64_t>(1, most / std::max<int64_t>(1, input.size(1)));
  if (rows <= step) {
    return ::scan_cpu_wrapper(input, weights, initials);
  }
  const at::Tensor output = at::empty_like(input);
  for (int64_t row = 0; row < rows; row += step) {
    const auto part = [&](const at::Tensor& tensor) { return tensor.slice(0, row, row + step); };
    part(output).copy_(::scan_cpu_wrapper(part(input), part(weights), part(initials)));
  }
  return output;
}
