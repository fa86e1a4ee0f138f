// SPDX-License-Identifier: BSD-3-Clause
//
// What the bindings of this folder share; they are compiled as one file.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

/// An operator's optional tensor as the helpers take it: undefined where there is none.
inline at::Tensor or_undefined(const std::optional<at::Tensor>& tensor) {
  return tensor.value_or(at::Tensor());
}

/// The same for each of a list.
inline std::vector<at::Tensor> or_undefined(const c10::List<std::optional<at::Tensor>>& list) {
  std::vector<at::Tensor> tensors;
  for (const std::optional<at::Tensor> tensor : list) {
    tensors.push_back(or_undefined(tensor));
  }
  return tensors;
}
