// SPDX-License-Identifier: BSD-3-Clause
//
// Whether torch.compile or torch.export traces the call.
#pragma once

#include <ATen/functorch/DynamicLayer.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

namespace torchext {
inline namespace v1 {

/// Whether what is written to becomes another tensor in a graph.
inline bool is_functionalized() {
  using c10::impl::TorchDispatchModeKey;
  using c10::impl::TorchDispatchModeTLS;
  return TorchDispatchModeTLS::any_modes_set() &&
         TorchDispatchModeTLS::get_mode(TorchDispatchModeKey::FUNCTIONAL).has_value();
}

/// The same, below all transforms of torch.func.
inline bool is_functionalized_here() {
  return is_functionalized() && !at::functorch::maybeCurrentDynamicLayer().has_value();
}

} // namespace v1
} // namespace torchext
