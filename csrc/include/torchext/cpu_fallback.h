// SPDX-License-Identifier: BSD-3-Clause
//
// The kernel of a dispatch key that names `cpu_fallback`: runs the operator's CPU kernel.
#pragma once

#include <ATen/native/CPUFallback.h>

namespace torchext {
inline namespace v1 {

/// Copies the tensors to the CPU, calls the operator there, and copies results and mutations back.
/// Boxed: it serves every schema. A result that would be a view of an argument is refused.
inline void cpu_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

} // namespace v1
} // namespace torchext
