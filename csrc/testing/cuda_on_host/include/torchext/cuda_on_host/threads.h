// SPDX-License-Identifier: BSD-3-Clause
//
// What a kernel on the host asks of the machine that runs it: which thread it is, barriers, what lanes
// of a warp tell each other, shared memory. Everything here is out of line, in a library of its own:
// the code of a kernel is compiled so that each of its reads and writes is looked at, and this must
// not be. Every function that waits takes the place that it is called from, which errors name.
#pragma once

#include <torchext/cuda_on_host/types.h>

#include <cstddef>
#include <cstdint>

#define TORCHEXT_CUDA_ON_HOST_API __attribute__((visibility("default")))
#define TORCHEXT_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

extern "C" TORCHEXT_CUDA_ON_HOST_API void __sanitizer_cov_trace_pc();

namespace torchext::cuda_on_host {

constexpr unsigned kWarpSize = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// Of the thread that asks: what they return stays the same, so the compiler may ask once.
TORCHEXT_CUDA_ON_HOST_API uint3 thread_index() __attribute__((const));
TORCHEXT_CUDA_ON_HOST_API uint3 block_index() __attribute__((const));
TORCHEXT_CUDA_ON_HOST_API uint3 block_size() __attribute__((const));
TORCHEXT_CUDA_ON_HOST_API uint3 grid_size() __attribute__((const));
TORCHEXT_CUDA_ON_HOST_API unsigned lane() __attribute__((const));

/// What a barrier of the whole block may find out about a condition of each thread.
struct Counted {
  int count;
  bool all;
};

/// Waits for all threads of the block, under the name of the function that the kernel called.
TORCHEXT_CUDA_ON_HOST_API Counted barrier(const char* name, bool condition, TORCHEXT_HERE);

/// Waits for all threads of a cooperative launch.
TORCHEXT_CUDA_ON_HOST_API void grid_barrier(TORCHEXT_HERE);

/// Waits for the lanes of `mask`. Alone of what a warp does it orders accesses to memory.
TORCHEXT_CUDA_ON_HOST_API void warp_barrier(unsigned mask, TORCHEXT_HERE);

/// The bits that the lane `source` gives, once all lanes of `mask` have given theirs.
TORCHEXT_CUDA_ON_HOST_API uint64_t
exchange(const char* name, unsigned mask, uint64_t bits, unsigned source, TORCHEXT_HERE);

/// The lanes of `mask` that give true.
TORCHEXT_CUDA_ON_HOST_API unsigned ballot(
    const char* name, unsigned mask, bool condition, TORCHEXT_HERE);

/// What each lane of `mask` gives; returns the lanes that gave something.
TORCHEXT_CUDA_ON_HOST_API unsigned gather(
    const char* name, unsigned mask, uint64_t bits, uint64_t (&given)[kWarpSize], TORCHEXT_HERE);

/// The lanes that came to this place and wait for no others.
TORCHEXT_CUDA_ON_HOST_API unsigned active_lanes(TORCHEXT_HERE);

/// Fails where a block has more threads than the kernel's __launch_bounds__ says.
TORCHEXT_CUDA_ON_HOST_API void check_launch_bounds(size_t most_threads, TORCHEXT_HERE);

/// Lets others run.
TORCHEXT_CUDA_ON_HOST_API void sleep();

/// Shared memory of the block that belongs to `key`: what it holds first, nobody may read.
TORCHEXT_CUDA_ON_HOST_API void* shared_variable(const void* key, size_t nbytes, size_t alignment);

/// That of the launch's own size.
TORCHEXT_CUDA_ON_HOST_API void* dynamic_shared();
TORCHEXT_CUDA_ON_HOST_API size_t dynamic_shared_bytes();

/// Ends the launch with an error that names kernel, block, thread and place; on the host throws one.
[[noreturn]] TORCHEXT_CUDA_ON_HOST_API void fail(const char* what, TORCHEXT_HERE);

/// Whether a kernel asks.
TORCHEXT_CUDA_ON_HOST_API bool is_in_kernel();

/// Looks at an access of `nbytes`, by the code at an address, that belongs to an operation which
/// nobody else can come between.
TORCHEXT_CUDA_ON_HOST_API void atomic_access(const void* address, size_t nbytes, const void* code);

/// Counts a step of the thread, in loops that have no code in which the compiler would; true.
__attribute__((always_inline)) constexpr bool step() {
  if (!__builtin_is_constant_evaluated()) {
    __sanitizer_cov_trace_pc();
  }
  return true;
}

/// Nanoseconds since some time, as the clocks of a kernel count them.
TORCHEXT_CUDA_ON_HOST_API long long clock_now();

/// What assert() calls.
[[noreturn]] TORCHEXT_CUDA_ON_HOST_API void assertion_failed(
    const char* condition, const char* file, unsigned line, const char* function);

} // namespace torchext::cuda_on_host
