// SPDX-License-Identifier: BSD-3-Clause
//
// What kernels call: torchext/cuda_on_host/threads.h.
#include "accesses.h"
#include "architecture.h"
#include "machine.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

namespace torchext::cuda_on_host {

uint3 thread_index() {
  return running("threadIdx").index;
}

uint3 block_index() {
  return running("blockIdx").block->index;
}

uint3 block_size() {
  running("blockDim");
  return machine().configuration().block;
}

uint3 grid_size() {
  running("gridDim");
  return machine().grid();
}

unsigned lane() {
  return running("a lane").lane();
}

void check_launch_bounds(size_t most_threads, const char* file, int line) {
  running("__launch_bounds__");
  const dim3 block = machine().configuration().block;
  const size_t threads = size_t{block.x} * block.y * block.z;
  if (threads > most_threads) {
    machine().fail(
        "has blocks of " + std::to_string(threads) + " threads, and its __launch_bounds__ says " +
            std::to_string(most_threads),
        Place{file, line});
  }
}

bool is_in_kernel() {
  return current != nullptr;
}

Counted barrier(const char* name, bool condition, const char* file, int line) {
  Thread& thread = running(name);
  thread.name = name;
  thread.place = {file, line};
  thread.condition = condition;
  machine().arrive(thread);
  machine().suspend();
  const auto count = static_cast<unsigned>(thread.bits);
  return {static_cast<int>(count), count == thread.block->size};
}

void grid_barrier(const char* file, int line) {
  Thread& thread = running("grid.sync");
  thread.name = "grid.sync";
  thread.place = {file, line};
  if (!machine().configuration().is_cooperative) {
    machine().fail("waits for the grid, and the launch is not a cooperative one", thread.place);
  }
  machine().arrive_at_grid_barrier(thread);
  machine().suspend();
}

namespace {

Thread& meet(
    const char* name,
    Meeting meeting,
    unsigned mask,
    uint64_t bits,
    const char* file,
    int line,
    unsigned source = 0,
    bool condition = false,
    uint64_t* gathered = nullptr) {
  Thread& thread = running(name);
  thread.name = name;
  thread.meeting = meeting;
  thread.mask = mask;
  thread.bits = bits;
  thread.place = {file, line};
  thread.source = source;
  thread.condition = condition;
  thread.gathered = gathered;
  machine().meet(thread);
  machine().suspend();
  return thread;
}

} // namespace

void warp_barrier(unsigned mask, const char* file, int line) {
  meet("__syncwarp", Meeting::kBarrier, mask, 0, file, line);
}

uint64_t exchange(
    const char* name, unsigned mask, uint64_t bits, unsigned source, const char* file, int line) {
  return meet(name, Meeting::kExchange, mask, bits, file, line, source).bits;
}

unsigned ballot(const char* name, unsigned mask, bool condition, const char* file, int line) {
  return static_cast<unsigned>(
      meet(name, Meeting::kBallot, mask, 0, file, line, 0, condition).bits);
}

unsigned gather(
    const char* name,
    unsigned mask,
    uint64_t bits,
    uint64_t (&given)[kWarpSize],
    const char* file,
    int line) {
  return static_cast<unsigned>(
      meet(name, Meeting::kGather, mask, bits, file, line, 0, false, given).bits);
}

unsigned active_lanes(const char* file, int line) {
  Thread& thread = running("__activemask");
  thread.name = "__activemask";
  thread.place = {file, line};
  thread.wait = Wait::kActive;
  thread.warp().active |= 1u << thread.lane();
  thread.block->active_warps |= 1u << thread.number / kWarpSize;
  machine().suspend();
  return static_cast<unsigned>(thread.bits);
}

void sleep() {
  Thread& thread = running("__nanosleep()");
  ++thread.steps;
  machine().check_steps(__builtin_return_address(0));
  machine().give_way();
}

void* shared_variable(const void* key, size_t nbytes, size_t alignment) {
  Thread& thread = running("shared memory");
  SharedLayout& layout = machine().shared_layout();
  SharedMemory& shared = thread.block->shared;
  for (const SharedLayout::Variable& variable : layout.variables) {
    if (variable.key == key) {
      return shared.data() + variable.offset;
    }
  }
  const size_t offset = layout.add(key, nbytes, alignment);
  const size_t dynamic = machine().configuration().shared_bytes;
  const size_t own = layout.nbytes - dynamic;
  const Architecture& limits = architecture();
  if (own > limits.shared_per_block || layout.nbytes > limits.shared_per_block_optin) {
    machine().fail(
        "has " + std::to_string(own) + " bytes of shared variables and a launch with " +
        std::to_string(dynamic) + " more: a block has " + std::to_string(limits.shared_per_block) +
        ", and " + std::to_string(limits.shared_per_block_optin) + " with what a launch gives it");
  }
  shared.poison(offset, nbytes);
  return shared.data() + offset;
}

void* dynamic_shared() {
  return running("shared memory").block->shared.data() +
         machine().shared_layout().variables.front().offset;
}

size_t dynamic_shared_bytes() {
  running("shared memory");
  return machine().configuration().shared_bytes;
}

void fail(const char* what, const char* file, int line) {
  if (current == nullptr) {
    TORCH_CHECK(false, what, ", at ", text_of({file, line}));
  }
  machine().fail(what, Place{file, line});
}

namespace {

// An expression, with the variables of a thread as its author wrote them.
std::string as_written(std::string text) {
  constexpr const char* kWritten[][2] = {
      {"::torchext::cuda_on_host::thread_index()", "threadIdx"},
      {"::torchext::cuda_on_host::block_index()", "blockIdx"},
      {"dim3(::torchext::cuda_on_host::block_size())", "blockDim"},
      {"dim3(::torchext::cuda_on_host::grid_size())", "gridDim"},
  };
  for (const auto& [found, written] : kWritten) {
    for (size_t at = 0; (at = text.find(found, at)) != std::string::npos;) {
      text.replace(at, std::strlen(found), written);
    }
  }
  return text;
}

} // namespace

void assertion_failed(
    const char* condition, const char* file, unsigned line, const char* function) {
  if (current != nullptr) {
    machine().fail(
        "an assertion failed: " + as_written(condition), Place{file, static_cast<int>(line)});
  }
  fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, condition);
  std::abort();
}

long long clock_now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

void run(
    const char* kernel,
    const Configuration& configuration,
    void (*call)(void*),
    void* data,
    Range parameters) {
  if (current != nullptr) {
    machine().fail(
        "launches a kernel, and kernels that do are not covered",
        Place{configuration.file, configuration.line});
  }
  machine().run(kernel, configuration, call, data, parameters);
}

} // namespace torchext::cuda_on_host

// What tests choose: torchext.testing.cuda_on_host.
extern "C" TORCHEXT_CUDA_ON_HOST_API void torchext_cuda_on_host_configure(
    int64_t order,
    uint64_t most_blocks,
    uint64_t most_steps,
    int finds_races,
    int may_read_absent_lanes,
    int may_leave_before_barriers) {
  auto& options = torchext::cuda_on_host::machine().options;
  options.order = order;
  options.most_blocks = most_blocks;
  options.most_steps = most_steps;
  options.finds_races = finds_races != 0;
  options.may_read_absent_lanes = may_read_absent_lanes != 0;
  options.may_leave_before_barriers = may_leave_before_barriers != 0;
}

// How many launches there were.
extern "C" TORCHEXT_CUDA_ON_HOST_API uint64_t torchext_cuda_on_host_launches() {
  return torchext::cuda_on_host::machine().launches();
}

// Who hears of each launch; null: nobody.
extern "C" TORCHEXT_CUDA_ON_HOST_API void torchext_cuda_on_host_record(
    void (*recorder)(const torchext::cuda_on_host::Ran*)) {
  torchext::cuda_on_host::machine().recorder = recorder;
}
