// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of operators that change how a tensor is held: dtype, device, sparse or nested
// layout.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Layout.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/core/TensorOptions.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradient of `self` in a conversion to a sparse layout, in the layout (and of the block size)
/// that `self` has.
at::Tensor to_sparse_backward(
    const at::Tensor& grad,
    const c10::Layout self_layout,
    const c10::OptionalArrayRef<c10::SymInt>& self_blocksize);

/// Gradient of `self` in sparse_mask(self, mask): that of the elements in `mask`, dense where
/// `self` is.
at::Tensor sparse_mask_backward(
    const at::Tensor& grad, const at::Tensor& mask, c10::Layout self_layout);

/// Gradient of `self` in a copy to another dtype or device: its real part where only the copy is
/// complex.
at::Tensor _to_copy_backward(const at::Tensor& grad, const c10::TensorOptions& self_options);

/// Gradient of the padded tensor `input` that a nested one was made of, with its dimensions 1 and 2
/// exchanged and the last two joined if `do_transform_0213`.
at::Tensor _nested_from_padded_backward(
    const at::Tensor& grad, const at::Tensor& input, const bool do_transform_0213);

/// The gradient as it is, with a warning.
at::Tensor warn_backwards(const at::Tensor& grad_output);

} // namespace derivatives
} // namespace v1
} // namespace torchext
