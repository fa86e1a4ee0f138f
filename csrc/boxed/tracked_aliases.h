// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torchext/generated/views.h>

namespace torchext {
inline namespace v1 {
namespace detail {

/// The kernel itself: raises version counters and links views to their bases.
void track_aliases(
    Views kind,
    const c10::OperatorHandle& op,
    c10::DispatchKeySet keys,
    torch::jit::Stack* stack);

} // namespace detail
} // namespace v1
} // namespace torchext
