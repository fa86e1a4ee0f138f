// SPDX-License-Identifier: BSD-3-Clause
//
// The ADInplaceOrView kernels, boxed: version counters of what is written to, and results that are
// views of arguments, as ATen's own operators have them.
#pragma once

#include <torch/library.h>

namespace torchext {
inline namespace v1 {

/// How autograd sees the results of an operator that are views.
enum class Views {
  kNone, // the operator returns none
  kDifferentiable, // by formulas: made again from its base where that was written to
  kRefused,        // there is no derivative: writing to one is refused
  kIgnored,        // they never require grad
};

/// Of operators that write to arguments or return views.
torch::CppFunction tracked_aliases(Views kind);

} // namespace v1
} // namespace torchext
