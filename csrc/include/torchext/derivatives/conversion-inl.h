// SPDX-License-Identifier: BSD-3-Clause
//
// The definitions of conversion.h.
#pragma once

#include <torchext/derivatives/conversion.h>

#include <ATen/Functions.h>
#include <c10/util/Exception.h>
#include <torchext/derivatives/basic.h>

#include <optional>

namespace torchext {
inline namespace v1 {
namespace derivatives {

at::Tensor to_sparse_backward(
    const at::Tensor& grad,
    const c10::Layout self_layout,
    const c10::OptionalArrayRef<c10::SymInt>& self_blocksize) {
  if (self_layout == grad.layout() && !self_blocksize.has_value()) {
    return grad;
  }
  if (self_layout == c10::kStrided) {
    return grad.to_dense();
  }
  at::OptionalIntArrayRef blocksize;
  if (self_blocksize.has_value()) {
    blocksize = C10_AS_INTARRAYREF_SLOW(*self_blocksize);
  }
  return grad.to_sparse(self_layout, blocksize);
}

at::Tensor sparse_mask_backward(
    const at::Tensor& grad, const at::Tensor& mask, c10::Layout self_layout) {
  const at::Tensor kept = grad.sparse_mask(mask);
  return self_layout == c10::kStrided ? kept.to_dense() : kept;
}

at::Tensor _to_copy_backward(const at::Tensor& grad, const c10::TensorOptions& self_options) {
  // Taken before the conversion, which would warn of the imaginary part that it drops.
  const auto dtype = c10::typeMetaToScalarType(self_options.dtype());
  return handle_r_to_c(dtype, grad).to(self_options);
}

at::Tensor _nested_from_padded_backward(
    const at::Tensor& grad, const at::Tensor& input, const bool do_transform_0213) {
  if (!do_transform_0213) {
    return grad.to_padded_tensor_symint(0, input.sym_sizes());
  }
  // The input is [batch, heads, length, width], a component of the nested tensor [length, heads *
  // width].
  const c10::SymInt batch = input.sym_size(0);
  const c10::SymInt heads = input.sym_size(1);
  const c10::SymInt length = input.sym_size(2);
  const c10::SymInt width = input.sym_size(3);
  const std::vector<c10::SymInt> padded_sizes{batch, length, heads * width};
  return grad.to_padded_tensor_symint(0, c10::SymIntArrayRef(padded_sizes))
      .reshape_symint({batch, length, heads, width})
      .transpose(1, 2);
}

at::Tensor warn_backwards(const at::Tensor& grad_output) {
  TORCH_WARN("a warning from a backward pass");
  return grad_output;
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
