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

// Before a function: compile it for several instruction sets, and let the loader choose. It holds
// a whole loop, and what it calls must be inlined.
#if defined(__linux__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MYNS_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define MYNS_VECTOR_CLONES
#endif
