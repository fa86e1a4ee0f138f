// SPDX-License-Identifier: BSD-3-Clause
//
// The CPU fallback of whole backends, and what Python asks of the fallbacks of all libraries.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace torchext::runtime {

/// Runs operators without a kernel for a device type on the CPU; nothing where that is so already.
/// Throws std::invalid_argument for a name that is none or has no fallback, and c10::Error where
/// another fallback stands there.
void enable_fallback(const std::string& device_type);

/// Ends it; nothing where it was not enabled.
void disable_fallback(const std::string& device_type);

/// push_fallback_mode of a mode's name; throws std::invalid_argument for what is none.
int64_t push_fallback_mode_of(const std::string& name);

/// Calls, bytes to the CPU, bytes to the device and nanoseconds of each operator that fell back.
std::map<std::string, std::tuple<int64_t, int64_t, int64_t, int64_t>> fallback_counts();

/// Makes the warnings of the fallbacks of all libraries Python's.
void use_python_warnings();

/// Forgets the counts, and of whom was warned.
void reset_fallback_counts();

} // namespace torchext::runtime
