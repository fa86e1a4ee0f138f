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
//
// TORCHEXT_WITHOUT_<name> is defined where a build leaves one out, as TORCHEXT_CPU_CAPABILITIES and the
// processor say.
#pragma once

#include <ATen/Version.h>
#include <c10/util/Exception.h>

#include <string>

// What follows is an operand of `?:`, and then what is chosen where there is none.
#ifdef TORCHEXT_WITHOUT_DEFAULT
#define TORCHEXT_IF_DEFAULT(chosen)
#else
#define TORCHEXT_IF_DEFAULT(chosen) \
  ::torchext::cpu_capability() == ::torchext::CpuCapability::DEFAULT ? chosen:
#endif
#ifdef TORCHEXT_WITHOUT_AVX2
#define TORCHEXT_IF_AVX2(chosen)
#else
#define TORCHEXT_IF_AVX2(chosen) \
  ::torchext::cpu_capability() == ::torchext::CpuCapability::AVX2 ? chosen:
#endif
#ifdef TORCHEXT_WITHOUT_AVX512
#define TORCHEXT_IF_AVX512(chosen)
#else
#define TORCHEXT_IF_AVX512(chosen) \
  ::torchext::cpu_capability() == ::torchext::CpuCapability::AVX512 ? chosen:
#endif

namespace torchext {
inline namespace v1 {

enum class CpuCapability { DEFAULT, AVX2, AVX512 };

/// The best that this machine has, or ATEN_CPU_CAPABILITY says, of those that code is compiled for.
inline CpuCapability cpu_capability() {
  static const CpuCapability found = [] {
    [[maybe_unused]] const std::string name = at::get_cpu_capability();
#ifndef TORCHEXT_WITHOUT_AVX512
    if (name == "AVX512") {
      return CpuCapability::AVX512;
    }
#endif
#ifndef TORCHEXT_WITHOUT_AVX2
    if (name == "AVX512" || name == "AVX2") {
      return CpuCapability::AVX2;
    }
#endif
#ifdef TORCHEXT_WITHOUT_DEFAULT
    TORCH_CHECK(
        false,
        "this library was built for other processors than one of ",
        name,
        ", as TORCHEXT_CPU_CAPABILITIES said; build it without that");
#endif
    return CpuCapability::DEFAULT;
  }();
  return found;
}

} // namespace v1
} // namespace torchext

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
#define TORCHEXT_VECTORIZED(name)                                  \
  (TORCHEXT_IF_AVX512(&AVX512::name) TORCHEXT_IF_AVX2(&AVX2::name) \
       TORCHEXT_IF_DEFAULT(&DEFAULT::name) nullptr)
