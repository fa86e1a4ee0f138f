// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/precompiled.h>

#include <myns/kernels/zero_out.h>

// `out` is contiguous.
void myns::native::zero_out_cpu(const at::Tensor& input, const at::Tensor& out) {
  out.zero_();
  if (out.numel() > 0) {
    out.view(-1)[0].copy_(input.flatten()[0]);
  }
}
