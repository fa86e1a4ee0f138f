// SPDX-License-Identifier: BSD-3-Clause
//
// The autocast kernels: torch's own policies, on its own cached casts. Boxed: they serve every
// schema, and run only while autocast is on.
#pragma once

#include <c10/core/DeviceType.h>
#include <torch/library.h>

namespace torchext {
inline namespace v1 {

/// The dtype that floating point arguments other than float64 are cast to.
enum class AutocastPolicy {
  kLowerPrecisionFp, ///< autocast's own: float16 or bfloat16
  kFp32,             ///< float32
  kPromote,          ///< float32 where one of them has it, autocast's own otherwise
};

torch::CppFunction autocast_kernel(AutocastPolicy policy, c10::DeviceType device);

} // namespace v1
} // namespace torchext
