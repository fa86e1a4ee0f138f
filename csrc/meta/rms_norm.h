// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "checks.h"

#include <optional>

namespace myns::native {

inline bool has_weight(const std::optional<at::Tensor>& weight) {
  return weight.has_value() && weight->defined();
}

/// What rms_norm and its backward ask of the arguments that both have.
inline void check_rms_norm(
    const char* op, const at::Tensor& input, const std::optional<at::Tensor>& weight) {
  check_has_rows(op, "input", input);
  check_floating(op, "input", input);
  if (has_weight(weight)) {
    check_floating(op, "weight", *weight);
    check_shape(op, "weight", *weight, input.sym_sizes().slice(input.dim() - 1));
  }
}

} // namespace myns::native
