// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace torchext {
inline namespace v1 {

/// Where the tensors of a kernel live: how its results are made, and whether a device is selected.
enum class Home { kCPU, kCUDA, kMeta, kOther };

} // namespace v1
} // namespace torchext
