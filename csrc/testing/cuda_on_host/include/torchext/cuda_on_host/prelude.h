// SPDX-License-Identifier: BSD-3-Clause
//
// What every file of kernels begins with: CUDA's language, and macros that torch defines where nvcc
// reads its headers. These are read as by the compiler of the host, which this is.
#pragma once

#include <c10/macros/Macros.h>
#include <cuda_runtime.h>

#define C10_LAUNCH_BOUNDS_0
#define C10_LAUNCH_BOUNDS_1(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks)
