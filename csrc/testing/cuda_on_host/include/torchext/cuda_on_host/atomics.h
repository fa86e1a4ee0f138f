// SPDX-License-Identifier: BSD-3-Clause
//
// Atomic operations, on the types that CUDA has them for. Threads of a launch run one at a time, so
// plain reads and writes are atomic here; they are only looked at as such.
#pragma once

#include <torchext/cuda_on_host/half_functions.h>
#include <torchext/cuda_on_host/threads.h>
#include <torchext/cuda_on_host/types.h>

#include <type_traits>

namespace torchext::cuda_on_host {

/// T, which is not deduced from the argument.
template <typename T>
using Same = std::common_type_t<T>;

template <typename T, typename... Types>
constexpr bool kIsOneOf = (std::is_same_v<T, Types> || ...);

template <typename T, typename... Types>
using IfOneOf = std::enable_if_t<kIsOneOf<T, Types...>, T>;

/// Writes what `change` makes of the value there, and returns that.
template <typename T, typename Change>
__attribute__((noinline, no_sanitize("thread"))) T update(T* at, Change change) {
  atomic_access(at, sizeof(T), __builtin_return_address(0));
  const T before = *at;
  *at = change(before);
  return before;
}

} // namespace torchext::cuda_on_host

#define TORCHEXT_ATOMIC(name, expression, ...)                                                  \
  template <typename T>                                                                         \
  inline __attribute__((always_inline)) ::torchext::cuda_on_host::IfOneOf<T, __VA_ARGS__> name( \
      T* at, ::torchext::cuda_on_host::Same<T> b) {                                             \
    return ::torchext::cuda_on_host::update(at, [&](const T& a) { return T(expression); });     \
  }
#define TORCHEXT_ATOMICS(name, expression, ...)          \
  TORCHEXT_ATOMIC(name, expression, __VA_ARGS__)         \
  TORCHEXT_ATOMIC(name##_block, expression, __VA_ARGS__) \
  TORCHEXT_ATOMIC(name##_system, expression, __VA_ARGS__)

TORCHEXT_ATOMICS(
    atomicAdd,
    a + b,
    int,
    unsigned,
    unsigned long long,
    float,
    double,
    __half,
    __half2,
    __nv_bfloat16,
    __nv_bfloat162)
TORCHEXT_ATOMICS(atomicSub, a - b, int, unsigned)
TORCHEXT_ATOMICS(atomicExch, b, int, unsigned, unsigned long long, float)
TORCHEXT_ATOMICS(atomicMin, a < b ? a : b, int, unsigned, unsigned long long, long long)
TORCHEXT_ATOMICS(atomicMax, a > b ? a : b, int, unsigned, unsigned long long, long long)
TORCHEXT_ATOMICS(atomicInc, a >= b ? 0u : a + 1, unsigned)
TORCHEXT_ATOMICS(atomicDec, a == 0 || a > b ? b : a - 1, unsigned)
TORCHEXT_ATOMICS(atomicAnd, a& b, int, unsigned, unsigned long long)
TORCHEXT_ATOMICS(atomicOr, a | b, int, unsigned, unsigned long long)
TORCHEXT_ATOMICS(atomicXor, a ^ b, int, unsigned, unsigned long long)
#undef TORCHEXT_ATOMICS
#undef TORCHEXT_ATOMIC

#define TORCHEXT_CAS(name)                                          \
  template <typename T>                                             \
  inline __attribute__((always_inline)) ::torchext::cuda_on_host::  \
      IfOneOf<T, int, unsigned, unsigned long long, unsigned short> \
      name(                                                         \
          T* at,                                                    \
          ::torchext::cuda_on_host::Same<T> expected,               \
          ::torchext::cuda_on_host::Same<T> value) {                \
    return ::torchext::cuda_on_host::update(                        \
        at, [&](const T& a) { return a == expected ? value : a; }); \
  }
TORCHEXT_CAS(atomicCAS)
TORCHEXT_CAS(atomicCAS_block)
TORCHEXT_CAS(atomicCAS_system)
#undef TORCHEXT_CAS

// In pieces, each of which is atomic.
inline float2 atomicAdd(float2* at, float2 b) {
  return {atomicAdd(&at->x, b.x), atomicAdd(&at->y, b.y)};
}
inline float4 atomicAdd(float4* at, float4 b) {
  return {
      atomicAdd(&at->x, b.x),
      atomicAdd(&at->y, b.y),
      atomicAdd(&at->z, b.z),
      atomicAdd(&at->w, b.w)};
}
