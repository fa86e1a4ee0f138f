// SPDX-License-Identifier: BSD-3-Clause
//
// Looks at what kernels read and write. They are compiled with -fsanitize=thread and
// -fsanitize-coverage=trace-pc and are not linked with what these want: the compiler calls a function
// before each access and in each basic block, and here they are.
#pragma once

#include "machine.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace torchext::cuda_on_host {

/// Opens no memory of the device yet: each allocation is when a kernel first touches it.
void begin_accesses();

/// Closes what was opened.
void end_accesses();

/// What threads of a launch asked of the device's memory, in bytes: a byte counts as often as it is
/// read or written, and one that an atomic operation changes as both.
struct Traffic {
  uint64_t read = 0;
  uint64_t written = 0;
};

/// Of the launch that runs, or that was the last.
Traffic traffic();

/// What a launch that ended did wrong, or nothing: words of which the first bytes alone are
/// allocated, which it read and did not change by an atomic operation.
std::string peek_error();

/// Fails where a thread may not touch this.
void look_at(const void* address, size_t nbytes, bool writes, bool is_atomic, const void* code);

} // namespace torchext::cuda_on_host
