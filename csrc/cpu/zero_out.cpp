// SPDX-License-Identifier: BSD-3-Clause

#include <myns/kernels/zero_out.h>

namespace {

// `out` is contiguous.
void fill(const at::Tensor& input, const at::Tensor& out) {
  out.zero_();
  if (out.numel() > 0) {
    out.view(-1)[0].copy_(input.flatten()[0]);
  }
}

} // namespace

at::Tensor myns::native::zero_out_cpu(const at::Tensor& input) {
  at::Tensor out = zero_out_meta(input);
  fill(input, out);
  return out;
}
