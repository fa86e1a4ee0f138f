// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace sample_ops {
inline constexpr double kOne = 1.0;
}
