// SPDX-License-Identifier: BSD-3-Clause
//
// What several of the linalg helpers ask of their arguments; all inline.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Whether `B`, a right-hand side or a solution of the systems of `A`, is a vector or a batch of
/// them: the rule of at::linalg_solve and at::linalg_lstsq.
inline bool has_vector_rhs(const at::Tensor& A, const at::Tensor& B) {
  return B.dim() == 1 ||
         (A.dim() - 1 == B.dim() && A.sym_sizes().slice(0, A.dim() - 1).equals(B.sym_sizes()));
}

/// Whether what is computed from `x` may be differentiated again, so that results of factorizations
/// that have no derivative of their own must not stand for `x`.
inline bool may_be_differentiated(const at::Tensor& x) {
  return c10::GradMode::is_enabled() || x._fw_grad(/*level=*/0).defined();
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
