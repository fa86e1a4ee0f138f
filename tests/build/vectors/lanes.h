// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torchext/cpu_capabilities.h>

#include <cstdint>

/// Adds to each number which instruction set this is compiled for: 1 is AVX2, and 2 is AVX-512.
TORCHEXT_DECLARE_VECTORIZED(void, add_capability, (float* values, int64_t size))
