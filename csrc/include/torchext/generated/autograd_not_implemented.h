// SPDX-License-Identifier: BSD-3-Clause
//
// The autograd kernels of operators without formulas, boxed: they serve every schema. No gradient
// is dropped silently: backward names the operator, for results, for tensors that are written to
// (returned or not) and for views.
#pragma once

#include <torch/library.h>

namespace torchext {
inline namespace v1 {

/// Of operators whose results never require grad. What they write to must not either: the gradient
/// of the value that is gone would be wrong.
torch::CppFunction autograd_ignored();

/// Of operators without formulas.
torch::CppFunction autograd_not_implemented();

} // namespace v1
} // namespace torchext
