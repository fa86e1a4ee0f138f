// SPDX-License-Identifier: BSD-3-Clause
//
// The Conjugate and Negative kernels of operators that write to more than one tensor that is their
// first result, which torch's own fallbacks refuse or take for that result. What has the bit is given
// as a copy without it; what was written to the copy is copied back. Boxed: they serve every schema.
#pragma once

#include <c10/core/DispatchKey.h>
#include <torch/library.h>

namespace torchext {
inline namespace v1 {

/// key: the one whose bit says that the values of a tensor are conjugated, or negated.
torch::CppFunction without_bit(c10::DispatchKey key);

} // namespace v1
} // namespace torchext
