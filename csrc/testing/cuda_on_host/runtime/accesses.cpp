// SPDX-License-Identifier: BSD-3-Clause
#include "accesses.h"

#include "architecture.h"
#include "host_memory.h"
#include "test_device.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <link.h>

namespace torchext::cuda_on_host {
namespace {

// What it counts for a turn to have read what others may write: it may be a loop that waits for it.
constexpr uint64_t kPollTurn = 64;
// What an atomic operation takes at most, within which nobody else comes.
constexpr uint64_t kAtomicSteps = 64;
// Of the stack of a thread, which the error that says so needs as well.
constexpr size_t kStackReserve = 96 << 10;

struct OpenBlock {
  const char* data;
  size_t nbytes;
  bool is_of_the_device; // that the launch is on
  int device;
};

struct Segment {
  const char* begin;
  const char* end;
  bool is_code;
};

// A word that was read across the end of an allocation.
struct Peek {
  const char* address;
  const void* code;
  uint3 block;
  uint3 thread;
};

std::vector<OpenBlock> opened;
std::vector<Segment> segments; // of loaded objects: constants and variables of the program
std::vector<Peek> peeks;
size_t last = 0;
int launch_device = 0;
Traffic moved;

inline void poll() {
  if (__builtin_expect(current != nullptr, 0)) {
    current->shorten_turn(kPollTurn);
  }
}

// Of the device's memory. What a thread read and changed is to be lost where others may change it too.
void count(size_t nbytes, bool writes, bool is_atomic) {
  moved.read += is_atomic || !writes ? nbytes : 0;
  moved.written += is_atomic || writes ? nbytes : 0;
  Block& block = *current->block;
  if (writes && !is_atomic && block.writes_left != 0 && current->number == block.interrupted &&
      --block.writes_left == 0) {
    machine().give_way();
  }
}

int add_segments(dl_phdr_info* info, size_t /*size*/, void* /*data*/) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type == PT_LOAD) {
      const char* begin = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
      segments.push_back({begin, begin + header.p_memsz, (header.p_flags & PF_X) != 0});
    }
  }
  return 0;
}

const Segment* segment_of(const char* address) {
  static Segment found{nullptr, nullptr, false}; // the last, which is the next as a rule
  const auto find = [&]() -> const Segment* {
    const auto is_behind = [](const char* at, const Segment& segment) { return at < segment.begin; };
    const auto next = std::upper_bound(segments.begin(), segments.end(), address, is_behind);
    if (next == segments.begin() || address >= std::prev(next)->end) {
      return nullptr;
    }
    found = *std::prev(next);
    return &found;
  };
  if (found.begin <= address && address < found.end) {
    return &found;
  }
  if (const Segment* known = find()) {
    return known;
  }
  segments.clear(); // a library may have come since
  dl_iterate_phdr(&add_segments, nullptr);
  std::sort(segments.begin(), segments.end(), [](const Segment& a, const Segment& b) {
    return a.begin < b.begin;
  });
  return find();
}

// A kernel that is launched through a pointer is read from where the host has that.
bool is_pointer_to_code(const char* address, size_t nbytes) {
  const char* value = nullptr;
  if (nbytes != sizeof(value)) {
    return false;
  }
  std::memcpy(&value, address, sizeof(value));
  const Segment* segment = segment_of(value);
  return segment != nullptr && segment->is_code;
}

const char* verb(bool writes) {
  return writes ? "writes " : "reads ";
}

[[noreturn]] void fail_out_of_bounds(
    const OpenBlock& block, const char* address, size_t nbytes, bool writes, const void* code) {
  std::ostringstream what;
  what << verb(writes) << nbytes << " bytes ";
  const auto offset = address - block.data;
  if (offset < 0) {
    what << -offset << " before the begin";
  } else if (static_cast<size_t>(offset) >= block.nbytes) {
    what << static_cast<size_t>(offset) - block.nbytes << " behind the end";
  } else {
    what << "across the end";
  }
  what << " of an allocation of " << block.nbytes << " bytes";
  machine().fail_at(what.str(), code);
}

// Every allocation of a device is of whole words: what is smaller is changed by atomic operations on
// the word around it (ATen/cuda/Atomic.cuh), which is read before.
constexpr size_t kWord = 4;
constexpr size_t kMostPeeks = 4096;

bool is_in_the_last_word(const OpenBlock& block, const char* address, size_t nbytes, bool writes) {
  const bool is_word = nbytes == kWord && reinterpret_cast<uintptr_t>(address) % kWord == 0;
  return is_word && !writes && block.data <= address && address < block.data + block.nbytes;
}

// What is neither of the device, nor shared, nor on the thread's stack, nor opened before.
void look_at_other(
    const char* address, size_t nbytes, bool writes, bool is_atomic, const void* code) {
  for (size_t i = 0; i < opened.size(); ++i) {
    const OpenBlock& block = opened[i];
    if (block.data <= address && address + nbytes <= block.data + block.nbytes) {
      last = i;
      count(nbytes, writes, is_atomic);
      return;
    }
  }
  TestDevice::Block found;
  if (test_device().find(address, found)) {
    const OpenBlock block{
        static_cast<const char*>(found.data),
        found.nbytes,
        found.device == launch_device,
        found.device};
    if (found.nbytes == 0) {
      machine().fail_at(
          std::string(verb(writes)) + "memory of the device that is not allocated, or no longer",
          code);
    }
    if (address < block.data || address + nbytes > block.data + block.nbytes) {
      if (!is_in_the_last_word(block, address, nbytes, writes && !is_atomic)) {
        fail_out_of_bounds(block, address, nbytes, writes, code);
      }
      look_at_other(address, 1, writes, is_atomic, code); // opens it
      if (is_atomic) {
        const auto is_same = [&](const Peek& peek) { return peek.address == address; };
        peeks.erase(std::remove_if(peeks.begin(), peeks.end(), is_same), peeks.end());
      } else if (peeks.size() < kMostPeeks) {
        peeks.push_back({address, code, current->block->index, current->index});
      }
      return;
    }
    if (!block.is_of_the_device) {
      machine().fail_at(
          std::string(verb(writes)) + "memory of device " + std::to_string(found.device) +
              " in a launch on device " + std::to_string(launch_device),
          code);
    }
    test_device().open(block.data);
    last = opened.size();
    opened.push_back(block);
    count(nbytes, writes, is_atomic);
    return;
  }
  const auto given_to_both = host_memory().find(address);
  const auto fail_behind_it = [&] {
    const OpenBlock block{given_to_both->begin, given_to_both->nbytes, false, 0};
    fail_out_of_bounds(block, address, nbytes, writes, code);
  };
  if (given_to_both.has_value() && address < given_to_both->begin + given_to_both->nbytes) {
    if (address + nbytes > given_to_both->begin + given_to_both->nbytes) {
      fail_behind_it();
    }
    return;
  }
  const Range parameters = machine().parameters();
  const auto* given = static_cast<const char*>(parameters.data);
  if (given <= address && address < given + parameters.nbytes) {
    return;
  }
  const bool is_of_the_launch = !writes && machine().is_on_host_stack(address);
  if (is_of_the_launch ? is_pointer_to_code(address, nbytes) : segment_of(address) != nullptr) {
    return;
  }
  if (given_to_both.has_value()) {
    fail_behind_it();
  }
  for (const auto& thread : current->block->threads) {
    if (thread.stack.contains(address) && thread.wait != Wait::kEnded) {
      machine().fail_at(std::string(verb(writes)) + "a variable of another thread", code);
    }
  }
  machine().fail_at(
      address == nullptr || reinterpret_cast<uintptr_t>(address) < 4096
          ? std::string(verb(writes)) + std::to_string(nbytes) + " bytes through a null pointer"
          : std::string(verb(writes)) + std::to_string(nbytes) +
                " bytes of memory that is not the device's",
      code);
}

// What a kernel allocates is the device's, and is there until a kernel frees it.
void* allocate_in_kernel(size_t nbytes) {
  return c10::GetAllocator(c10::kPrivateUse1)->raw_allocate(nbytes);
}

void free_in_kernel(void* data, const void* code) {
  TestDevice::Block found;
  if (!test_device().find(data, found) || found.data != data) {
    machine().fail_at("frees memory that no kernel allocated", code);
  }
  const auto is_same = [&](const OpenBlock& block) { return block.data == data; };
  const auto open = std::find_if(opened.begin(), opened.end(), is_same);
  if (open != opened.end()) {
    test_device().close(data);
    opened.erase(open);
    last = 0;
  }
  c10::GetAllocator(c10::kPrivateUse1)->raw_deallocate(data);
}

} // namespace

void begin_accesses() {
  opened.clear();
  last = 0;
  moved = {};
  launch_device = test_device().current();
}

void end_accesses() {
  for (const OpenBlock& block : opened) {
    test_device().close(block.data);
  }
  opened.clear();
  peeks.clear();
}

std::string peek_error() {
  if (peeks.empty()) {
    return "";
  }
  const Peek& first = peeks.front();
  return machine().described(
      ", block " + text_of(first.block) + ", thread " + text_of(first.thread),
      "reads " + std::to_string(kWord) + " bytes across the end of an allocation",
      "at " + place_of_code(first.code));
}

Traffic traffic() {
  return moved;
}

void look_at(const void* data, size_t nbytes, bool writes, bool is_atomic, const void* code) {
  Thread& thread = *current;
  const auto* address = static_cast<const char*>(data);
  if (thread.stack.contains(address)) {
    return;
  }
  if (last < opened.size()) {
    const OpenBlock& block = opened[last];
    if (block.data <= address && address + nbytes <= block.data + block.nbytes) {
      count(nbytes, writes, is_atomic);
      return;
    }
  }
  SharedMemory& shared = thread.block->shared;
  if (shared.contains(address)) {
    shared.check(thread, address, nbytes, writes, is_atomic, code);
    return;
  }
  look_at_other(address, nbytes, writes, is_atomic, code);
}

void atomic_access(const void* address, size_t nbytes, const void* code) {
  if (current == nullptr) {
    return;
  }
  if (reinterpret_cast<uintptr_t>(address) % nbytes != 0) {
    machine().fail_at(
        "an atomic operation on " + std::to_string(nbytes) + " bytes that are not aligned", code);
  }
  poll();
  Thread& thread = *current;
  if (thread.steps >= thread.turn_end) {
    machine().check_steps(code);
    machine().give_way();
  }
  thread.turn_end = std::max(thread.turn_end, thread.steps + kAtomicSteps);
  look_at(address, nbytes, /*writes=*/true, /*is_atomic=*/true, code);
}

namespace {

inline void look(const void* address, size_t nbytes, bool writes, const void* code) {
  if (__builtin_expect(current != nullptr, 0)) {
    look_at(address, nbytes, writes, /*is_atomic=*/false, code);
  }
}

inline void look_aligned(const void* address, size_t nbytes, bool writes, const void* code) {
  if (__builtin_expect(current != nullptr, 0)) {
    if (__builtin_expect(reinterpret_cast<uintptr_t>(address) % nbytes != 0, 0)) {
      machine().fail_at(
          std::string(verb(writes)) + std::to_string(nbytes) +
              " bytes at once from an address that is not aligned to them",
          code);
    }
    look_at(address, nbytes, writes, /*is_atomic=*/false, code);
  }
}

} // namespace
} // namespace torchext::cuda_on_host

using namespace torchext::cuda_on_host;

// The names are GCC's: what a compiler emits for -fsanitize=thread.
#define TORCHEXT_HOOK extern "C" __attribute__((visibility("default")))

TORCHEXT_HOOK void __sanitizer_cov_trace_pc() {
  Thread* thread = current;
  if (__builtin_expect(thread == nullptr, 1)) {
    return;
  }
  if (__builtin_expect(++thread->steps >= thread->turn_end, 0)) {
    machine().check_steps(__builtin_return_address(0));
    machine().give_way();
  }
}

TORCHEXT_HOOK void __tsan_init() {}

TORCHEXT_HOOK void __tsan_func_entry(void* /*caller*/) {
  Thread* thread = current;
  if (__builtin_expect(thread == nullptr, 1)) {
    return;
  }
  const auto* here = static_cast<const char*>(__builtin_frame_address(0));
  if (__builtin_expect(here < thread->stack.low + kStackReserve, 0)) {
    machine().fail_at(
        "calls functions without end: its stack is used up", __builtin_return_address(0));
  }
}

TORCHEXT_HOOK void __tsan_func_exit() {}
TORCHEXT_HOOK void __tsan_vptr_update(void** /*at*/, void* /*value*/) {}
TORCHEXT_HOOK void __tsan_vptr_read(void** /*at*/) {}

#define TORCHEXT_ACCESS(nbytes)                                                   \
  TORCHEXT_HOOK void __tsan_read##nbytes(void* address) {                         \
    look_aligned(address, nbytes, /*writes=*/false, __builtin_return_address(0)); \
  }                                                                               \
  TORCHEXT_HOOK void __tsan_write##nbytes(void* address) {                        \
    look_aligned(address, nbytes, /*writes=*/true, __builtin_return_address(0));  \
  }                                                                               \
  TORCHEXT_HOOK void __tsan_volatile_read##nbytes(void* address) {                \
    poll();                                                                       \
    look_aligned(address, nbytes, /*writes=*/false, __builtin_return_address(0)); \
  }                                                                               \
  TORCHEXT_HOOK void __tsan_volatile_write##nbytes(void* address) {               \
    look_aligned(address, nbytes, /*writes=*/true, __builtin_return_address(0));  \
  }                                                                               \
  TORCHEXT_HOOK void __tsan_unaligned_read##nbytes(void* address) {               \
    look(address, nbytes, /*writes=*/false, __builtin_return_address(0));         \
  }                                                                               \
  TORCHEXT_HOOK void __tsan_unaligned_write##nbytes(void* address) {              \
    look(address, nbytes, /*writes=*/true, __builtin_return_address(0));          \
  }

TORCHEXT_ACCESS(1)
TORCHEXT_ACCESS(2)
TORCHEXT_ACCESS(4)
TORCHEXT_ACCESS(8)
TORCHEXT_ACCESS(16)

TORCHEXT_HOOK void __tsan_read_range(void* address, size_t nbytes) {
  look(address, nbytes, /*writes=*/false, __builtin_return_address(0));
}

TORCHEXT_HOOK void __tsan_write_range(void* address, size_t nbytes) {
  look(address, nbytes, /*writes=*/true, __builtin_return_address(0));
}

// Of -fsanitize=alignment and -fsanitize=bounds, as GCC describes a place and what is wrong there. The
// linker puts these in place of the compiler's own, which a program may have loaded (-Wl,--wrap).
struct Mismatch {
  const char* file;
  uint32_t line;
  uint32_t column;
  const void* type;
  unsigned char log_alignment;
};

// Where the description names a header of ours, what is wrong is in what uses it.
[[noreturn]] void fail_of_mismatch(
    const Mismatch& described, const std::string& what, const void* code) {
  const Place place{described.file, static_cast<int>(described.line)};
  if (is_of_torch(place)) {
    machine().fail_at(what, code);
  }
  machine().fail(what, place);
}

TORCHEXT_HOOK void __wrap___ubsan_handle_type_mismatch_v1(const Mismatch* what, uintptr_t address) {
  const uintptr_t alignment = uintptr_t{1} << what->log_alignment;
  if (current != nullptr && address % alignment != 0) {
    fail_of_mismatch(
        *what,
        "accesses an object at an address that is not aligned to " + std::to_string(alignment) +
            " bytes, as its type is",
        __builtin_return_address(0));
  }
}

TORCHEXT_HOOK void __wrap___ubsan_handle_divrem_overflow(
    const Mismatch* what, uintptr_t /*dividend*/, uintptr_t /*divisor*/) {
  if (current != nullptr) {
    fail_of_mismatch(
        *what,
        "divides an integer by zero, of which nobody knows the result",
        __builtin_return_address(0));
  }
}

TORCHEXT_HOOK void __wrap___ubsan_handle_out_of_bounds(const Mismatch* what, intptr_t index) {
  if (current != nullptr) {
    fail_of_mismatch(
        *what,
        "indexes an array out of its bounds, with " + std::to_string(index),
        __builtin_return_address(0));
  }
}

// What is called where it is compiled with -fsanitize=thread in place of the builtin of that name. On
// the host the order is the strongest there is.
#define TORCHEXT_ATOMIC_OPERATION(T, bits, name)                                         \
  TORCHEXT_HOOK T __tsan_atomic##bits##_##name(volatile T* at, T value, int /*order*/) { \
    look_at_atomic(at, sizeof(T), __builtin_return_address(0));                          \
    return __atomic_##name(at, value, __ATOMIC_SEQ_CST);                                 \
  }

#define TORCHEXT_ATOMIC(T, bits)                                                                  \
  TORCHEXT_HOOK T __tsan_atomic##bits##_load(const volatile T* at, int /*order*/) {               \
    look_at_atomic(at, sizeof(T), __builtin_return_address(0));                                   \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                 \
  }                                                                                               \
  TORCHEXT_HOOK void __tsan_atomic##bits##_store(volatile T* at, T value, int /*order*/) {        \
    look_at_atomic(at, sizeof(T), __builtin_return_address(0));                                   \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                \
  }                                                                                               \
  TORCHEXT_HOOK T __tsan_atomic##bits##_exchange(volatile T* at, T value, int /*order*/) {        \
    look_at_atomic(at, sizeof(T), __builtin_return_address(0));                                   \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                      \
  }                                                                                               \
  TORCHEXT_ATOMIC_OPERATION(T, bits, fetch_add)                                                   \
  TORCHEXT_ATOMIC_OPERATION(T, bits, fetch_sub)                                                   \
  TORCHEXT_ATOMIC_OPERATION(T, bits, fetch_and)                                                   \
  TORCHEXT_ATOMIC_OPERATION(T, bits, fetch_or)                                                    \
  TORCHEXT_ATOMIC_OPERATION(T, bits, fetch_xor)                                                   \
  TORCHEXT_ATOMIC_OPERATION(T, bits, fetch_nand)                                                  \
  TORCHEXT_HOOK int __tsan_atomic##bits##_compare_exchange_strong(                                \
      volatile T* at, T* expected, T value, int /*order*/, int /*otherwise*/) {                   \
    look_at_atomic(at, sizeof(T), __builtin_return_address(0));                                   \
    return __atomic_compare_exchange_n(                                                           \
        at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                          \
  }                                                                                               \
  TORCHEXT_HOOK int __tsan_atomic##bits##_compare_exchange_weak(                                  \
      volatile T* at, T* expected, T value, int /*order*/, int /*otherwise*/) {                   \
    look_at_atomic(at, sizeof(T), __builtin_return_address(0));                                   \
    return __atomic_compare_exchange_n(                                                           \
        at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                          \
  }                                                                                               \
  TORCHEXT_HOOK T __tsan_atomic##bits##_compare_exchange_val(                                     \
      volatile T* at, T expected, T value, int /*order*/, int /*otherwise*/) {                    \
    look_at_atomic(at, sizeof(T), __builtin_return_address(0));                                   \
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    return expected;                                                                              \
  }

namespace {

void look_at_atomic(const volatile void* address, size_t nbytes, const void* code) {
  if (__builtin_expect(current != nullptr, 0)) {
    poll();
    look_at(const_cast<const void*>(address), nbytes, true, /*is_atomic=*/true, code);
  }
}

} // namespace

TORCHEXT_ATOMIC(uint8_t, 8)
TORCHEXT_ATOMIC(uint16_t, 16)
TORCHEXT_ATOMIC(uint32_t, 32)
TORCHEXT_ATOMIC(uint64_t, 64)

TORCHEXT_HOOK void __tsan_atomic_thread_fence(int /*order*/) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

TORCHEXT_HOOK void __tsan_atomic_signal_fence(int /*order*/) {}

// What the linker puts in place of these (-Wl,--wrap): the compiler calls them for what is long.
TORCHEXT_HOOK void* __wrap_malloc(size_t nbytes) {
  return current == nullptr ? std::malloc(nbytes) : allocate_in_kernel(nbytes);
}

TORCHEXT_HOOK void __wrap_free(void* data) {
  if (current == nullptr) {
    std::free(data);
  } else if (data != nullptr) {
    free_in_kernel(data, __builtin_return_address(0));
  }
}

TORCHEXT_HOOK void* __wrap_memcpy(void* to, const void* from, size_t nbytes) {
  if (nbytes != 0) {
    look(from, nbytes, /*writes=*/false, __builtin_return_address(0));
    look(to, nbytes, /*writes=*/true, __builtin_return_address(0));
  }
  return std::memcpy(to, from, nbytes);
}

TORCHEXT_HOOK void* __wrap_memmove(void* to, const void* from, size_t nbytes) {
  if (nbytes != 0) {
    look(from, nbytes, /*writes=*/false, __builtin_return_address(0));
    look(to, nbytes, /*writes=*/true, __builtin_return_address(0));
  }
  return std::memmove(to, from, nbytes);
}

TORCHEXT_HOOK void* __wrap_memset(void* to, int value, size_t nbytes) {
  if (nbytes != 0) {
    look(to, nbytes, /*writes=*/true, __builtin_return_address(0));
  }
  return std::memset(to, value, nbytes);
}
