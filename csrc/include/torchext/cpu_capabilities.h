// SPDX-License-Identifier: BSD-3-Clause
//
// Functions that are compiled once for each instruction set, of which the one for this machine is
// called, as ATen does for its own. The files that setup.py names in `cpu_capabilities` define them in
// the namespace CPU_CAPABILITY, which is DEFAULT, AVX2 and AVX512 in turn:
//
//   TORCHEXT_DECLARE_VECTORIZED(void, scale, (float* x, int64_t n)) // in a header
//   namespace CPU_CAPABILITY { void scale(float* x, int64_t n) { ... } } // in such a file
//   TORCHEXT_VECTORIZED(scale)(x, n); // in a kernel
//
// What else such a file defines stands in an unnamed namespace: code of one instruction set must not
// take the place of another's.
#pragma once

#include <ATen/Version.h>

#include <string>

namespace torchext {
inline namespace v1 {

enum class CpuCapability { DEFAULT, AVX2, AVX512 };

/// What this machine has, or ATEN_CPU_CAPABILITY says, for which code is compiled.
inline CpuCapability cpu_capability() {
#if defined(__x86_64__) || defined(_M_X64)
  static const std::string name = at::get_cpu_capability();
  static const CpuCapability found = name == "AVX512" ? CpuCapability::AVX512
                                     : name == "AVX2" ? CpuCapability::AVX2
                                                      : CpuCapability::DEFAULT;
  return found;
#else
  return CpuCapability::DEFAULT;
#endif
}

} // namespace v1
} // namespace torchext

#if defined(__x86_64__) || defined(_M_X64)
/// Declares a function: its result, its name, and its parameters in parentheses.
#define TORCHEXT_DECLARE_VECTORIZED(result, name, parameters) \
  namespace DEFAULT {                                         \
  result name parameters;                                     \
  }                                                           \
  namespace AVX2 {                                            \
  result name parameters;                                     \
  }                                                           \
  namespace AVX512 {                                          \
  result name parameters;                                     \
  }

/// The address of a function, or of a variable, that is for this machine.
#define TORCHEXT_VECTORIZED(name)                                                    \
  (::torchext::cpu_capability() == ::torchext::CpuCapability::AVX512 ? &AVX512::name \
   : ::torchext::cpu_capability() == ::torchext::CpuCapability::AVX2 ? &AVX2::name   \
                                                                     : &DEFAULT::name)
#else
#define TORCHEXT_DECLARE_VECTORIZED(result, name, parameters) \
  namespace DEFAULT {                                         \
  result name parameters;                                     \
  }
#define TORCHEXT_VECTORIZED(name) (&DEFAULT::name)
#endif
