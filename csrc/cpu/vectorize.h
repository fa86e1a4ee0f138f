// SPDX-License-Identifier: BSD-3-Clause
//
// To be included before anything else by kernels whose loops the compiler is to vectorise.
#pragma once

// GCC assumes by default that comparing or converting floats may trap, and then turns no branch
// on them into a selection: that keeps it from vectorising exp and float16 conversions (a factor
// of ten here). Clang does not, and PyTorch itself is built with the same option.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif
