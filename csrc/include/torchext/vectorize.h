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
// a whole loop, and what it calls must be inlined. Not with ThreadSanitizer: the loader's choice
// would be instrumented, and is made before the sanitizer is there.
#if defined(__linux__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__)
#define TORCHEXT_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TORCHEXT_VECTOR_CLONES
#endif

// Before a loop whose iterations are independent: where an output may be an input, as in-place
// forms have it, the compiler would leave the loop as it is.
#if defined(__clang__)
#define TORCHEXT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define TORCHEXT_INDEPENDENT _Pragma("GCC ivdep")
#else
#define TORCHEXT_INDEPENDENT
#endif
