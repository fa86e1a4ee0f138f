// SPDX-License-Identifier: BSD-3-Clause
//
// The gate and the other half of rows that hold both.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace myns::native {

/// Views of the two halves of the last dimension. By narrow() and not by chunk(): torch's lazy
/// device leaves a list of results on the CPU.
inline std::pair<at::Tensor, at::Tensor> halves_of(const at::Tensor& rows) {
  const c10::SymInt half = rows.sym_size(-1) / 2;
  return {rows.narrow_symint(-1, 0, half), rows.narrow_symint(-1, half, half)};
}

} // namespace myns::native
