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
// A build may leave some of them out, as TORCHEXT_CPU_CAPABILITIES says: then TORCHEXT_WITHOUT_<name>
// is defined.
#pragma once

#include <ATen/Version.h>
#include <c10/util/Exception.h>

#include <string>

#if !defined(__x86_64__) && !defined(_M_X64)
#ifndef TORCHEXT_WITHOUT_AVX2
#define TORCHEXT_WITHOUT_AVX2
#endif
#ifndef TORCHEXT_WITHOUT_AVX512
#define TORCHEXT_WITHOUT_AVX512
#endif
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
        "this library was built for other instruction sets than ",
        name,
        " (TORCHEXT_CPU_CAPABILITIES), which the processor, or ATEN_CPU_CAPABILITY, has chosen");
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

#define TORCHEXT_IF_CAPABILITY(capability, ...) \
  ::torchext::cpu_capability() == ::torchext::CpuCapability::capability ? &capability::__VA_ARGS__:

// Each is `condition ? address :`, or nothing where there is none; at the end stands the least.
#ifdef TORCHEXT_WITHOUT_AVX512
#define TORCHEXT_IF_AVX512(...)
#else
#define TORCHEXT_IF_AVX512(...) TORCHEXT_IF_CAPABILITY(AVX512, __VA_ARGS__)
#endif
#ifdef TORCHEXT_WITHOUT_AVX2
#define TORCHEXT_IF_AVX2(...)
#else
#define TORCHEXT_IF_AVX2(...) TORCHEXT_IF_CAPABILITY(AVX2, __VA_ARGS__)
#endif
#ifdef TORCHEXT_WITHOUT_DEFAULT
#define TORCHEXT_ELSE(...) nullptr
#else
#define TORCHEXT_ELSE(...) &DEFAULT::__VA_ARGS__
#endif

/// The address of a function, or of a variable, that is for this machine.
#define TORCHEXT_VECTORIZED(...) \
  (TORCHEXT_IF_AVX512(__VA_ARGS__) TORCHEXT_IF_AVX2(__VA_ARGS__) TORCHEXT_ELSE(__VA_ARGS__))
