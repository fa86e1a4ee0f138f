// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torchext/cpu_capabilities.h>

#include <cstdint>

/// Adds to each number how many of them a vector has, and returns that.
TORCHEXT_DECLARE_VECTORIZED(int64_t, add_lanes, (float* values, int64_t size))
