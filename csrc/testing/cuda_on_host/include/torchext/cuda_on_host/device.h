// SPDX-License-Identifier: BSD-3-Clause
//
// The language of CUDA's C++ for an ordinary compiler: qualifiers, barriers, warps, and what a device
// has of functions (CUDA C++ Programming Guide, "C++ Language Extensions"; CUDA Math API). `__shared__`,
// launches and the variables of a thread are not here: they are rewritten.
#pragma once

#include <torchext/cuda_on_host/atomics.h>
#include <torchext/cuda_on_host/integers.h>
#include <torchext/cuda_on_host/launch.h>
#include <torchext/cuda_on_host/math.h>
#include <torchext/cuda_on_host/shared.h>
#include <torchext/cuda_on_host/threads.h>
#include <torchext/cuda_on_host/types.h>
#include <torchext/cuda_on_host/warp.h>

#include <cassert>

#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 0

// What nvcc says of a lambda's type: those of the host are those of the device.
#define __nv_is_extended_device_lambda_closure_type(T) true
#define __nv_is_extended_host_device_lambda_closure_type(T) true
#define __nv_is_extended_device_lambda_with_preserved_return_type(T) true

#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __constant__
#define __managed__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __block_size__(...)
#define __maxnreg__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) alignas(n)

// The C library's name, so that assert() and torch's own macros end the launch and not the process.
#define __assert_fail ::torchext::cuda_on_host::assertion_failed

inline void __syncthreads(TORCHEXT_HERE) {
  ::torchext::cuda_on_host::barrier("__syncthreads", true, file, line);
}
inline int __syncthreads_count(int condition, TORCHEXT_HERE) {
  return ::torchext::cuda_on_host::barrier("__syncthreads_count", condition != 0, file, line).count;
}
inline int __syncthreads_and(int condition, TORCHEXT_HERE) {
  return ::torchext::cuda_on_host::barrier("__syncthreads_and", condition != 0, file, line).all;
}
inline int __syncthreads_or(int condition, TORCHEXT_HERE) {
  return ::torchext::cuda_on_host::barrier("__syncthreads_or", condition != 0, file, line).count >
         0;
}

// One thread runs at a time, so memory is as each of them left it.
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

inline long long clock64() {
  return ::torchext::cuda_on_host::clock_now();
}
inline long long globaltimer() {
  return ::torchext::cuda_on_host::clock_now();
}
inline void __nanosleep(unsigned /*nanoseconds*/) {
  ::torchext::cuda_on_host::sleep();
}
[[noreturn]] inline void __trap(TORCHEXT_HERE) {
  ::torchext::cuda_on_host::fail("calls __trap()", file, line);
}
inline void __brkpt() {}

// Loads and stores with hints for caches, which change nothing else.
#define TORCHEXT_LOAD(name)                                     \
  template <typename T>                                         \
  inline __attribute__((always_inline)) T name(const T* from) { \
    return *from;                                               \
  }
TORCHEXT_LOAD(__ldg)
TORCHEXT_LOAD(__ldca)
TORCHEXT_LOAD(__ldcg)
TORCHEXT_LOAD(__ldcs)
TORCHEXT_LOAD(__ldlu)
TORCHEXT_LOAD(__ldcv)
#undef TORCHEXT_LOAD

#define TORCHEXT_STORE(name)                            \
  template <typename T>                                 \
  inline __attribute__((always_inline)) void name(      \
      T* to, ::torchext::cuda_on_host::Same<T> value) { \
    *to = value;                                        \
  }
TORCHEXT_STORE(__stwb)
TORCHEXT_STORE(__stcg)
TORCHEXT_STORE(__stcs)
TORCHEXT_STORE(__stwt)
#undef TORCHEXT_STORE

inline unsigned __isShared(const void*) {
  return 1;
}
inline unsigned __isGlobal(const void*) {
  return 1;
}
