// SPDX-License-Identifier: BSD-3-Clause
#include "memory.h"

#include <torchext/platform.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>

#include <sys/mman.h>
#include <unistd.h>

namespace torchext::testing {
namespace {

// One range of addresses for all allocations, so that a signal handler knows them. It takes no memory,
// and is smaller where the process may not have so many addresses.
constexpr size_t kMostReserved = size_t{1} << 40;
constexpr size_t kLeastReserved = size_t{1} << 30;
constexpr size_t kMostFilled = size_t{1} << 32;

// The pages of an allocation, which ends where they end: behind them lies one that is never opened.
struct Block {
  size_t size;
  char* data;
  Allocation allocation;
  bool is_new = true;
  int open = 0;
};

struct Memory {
  std::mutex mutex;
  std::map<char*, Block> blocks;
  std::map<size_t, std::deque<char*>> released; // by size; the oldest is used first
  char* next = nullptr;
};

// Set before the handler is installed, and never again.
char* base = nullptr;
size_t reserved = 0;
struct sigaction previous_action;

// Says what has happened, and leaves the rest to whoever was there before: the access is repeated.
void explain_fault(int /*signal*/, siginfo_t* info, void* /*context*/) {
  const auto* address = static_cast<const char*>(info->si_addr);
  if (base <= address && address < base + reserved) {
    constexpr char kMessage[] =
        "torchext: memory of the test device was touched outside of the device's own kernels: a "
        "kernel of the CPU was given a tensor of the device, or the tensor is gone\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  }
  sigaction(SIGSEGV, &previous_action, nullptr);
}

Memory& memory() {
  static auto* all = new Memory; // never destroyed: tensors may outlive static objects
  return *all;
}

// Gets the addresses before the first allocation; the mutex is held.
void reserve(Memory& all) {
  if (base != nullptr) {
    return;
  }
  void* found = MAP_FAILED;
  size_t size = 2 * kMostReserved;
  while (found == MAP_FAILED && size > kLeastReserved) {
    size /= 2;
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    found = mmap(nullptr, size, PROT_NONE, kFlags, /*fd=*/-1, 0);
  }
  if (found == MAP_FAILED) {
    throw std::runtime_error(
        "torchext: the test device needs a gibibyte of addresses, and the process may not have "
        "them (ulimit -v)");
  }
  reserved = size;
  base = static_cast<char*>(found);
  all.next = base;
  struct sigaction action = {};
  action.sa_sigaction = &explain_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous_action);
}

// A child must not find the mutex held by a thread that it has not.
const bool memory_forks_safely =
    hold_while_forking([] { memory().mutex.lock(); }, [] { memory().mutex.unlock(); });

size_t page_size() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// A power of two, so that released pages serve others again.
size_t size_class(size_t nbytes) {
  size_t size = page_size();
  while (size < nbytes) {
    size *= 2;
  }
  return size;
}

// As every allocator of torch does.
size_t aligned(size_t nbytes) {
  constexpr size_t kAlignment = 64;
  return (nbytes + kAlignment - 1) / kAlignment * kAlignment;
}

void protect(char* data, size_t size, int protection) {
  if (mprotect(data, size, protection) != 0) {
    throw std::bad_alloc();
  }
}

// The allocation that an address lies in; the mutex is held.
std::map<char*, Block>::iterator find(Memory& all, const void* data) {
  auto* address = static_cast<char*>(const_cast<void*>(data));
  auto found = all.blocks.upper_bound(address);
  if (found == all.blocks.begin()) {
    return all.blocks.end();
  }
  --found;
  return address < found->first + found->second.size ? found : all.blocks.end();
}

} // namespace

void* allocate_pages(Allocation allocation) {
  if (allocation.nbytes == 0) {
    return nullptr;
  }
  if (allocation.nbytes > kMostReserved / 2) {
    throw std::bad_alloc();
  }
  const size_t size = size_class(allocation.nbytes);
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  reserve(all);
  std::deque<char*>& released = all.released[size];
  char* start = nullptr;
  if (!released.empty()) {
    start = released.front();
    released.pop_front();
  } else if (size + page_size() <= static_cast<size_t>(base + reserved - all.next)) {
    start = all.next;
    all.next += size + page_size();
  } else {
    throw std::bad_alloc();
  }
  char* data = start + size - aligned(allocation.nbytes);
  all.blocks.emplace(start, Block{size, data, allocation});
  return data;
}

Allocation release_pages(void* data) noexcept {
  if (data == nullptr) {
    return {};
  }
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = find(all, data);
  const auto [start, block] = *found;
  madvise(start, block.size, MADV_DONTNEED);
  mprotect(start, block.size, PROT_NONE);
  all.blocks.erase(found);
  all.released[block.size].push_back(start);
  return block.allocation;
}

void open_pages(const void* data) {
  if (data == nullptr) {
    return;
  }
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = find(all, data);
  if (found == all.blocks.end()) {
    throw std::invalid_argument("torchext: this is no memory of the test device");
  }
  auto& [start, block] = *found;
  if (block.open == 0) {
    protect(start, block.size, PROT_READ | PROT_WRITE);
  }
  if (block.is_new) {
    // Fresh memory of a real device holds anything; of floating point these are nan. What is larger
    // than the machine may have stays addresses, until it is written.
    if (block.size <= kMostFilled) {
      std::memset(block.data, 0xff, static_cast<size_t>(start + block.size - block.data));
    }
    block.is_new = false;
  }
  ++block.open;
}

bool find_allocation(const void* address, const void*& data, Allocation& found) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto* wanted = static_cast<const char*>(address);
  if (base == nullptr || wanted < base || base + reserved <= wanted) {
    return false;
  }
  data = nullptr;
  found = {};
  const auto after = all.blocks.upper_bound(const_cast<char*>(wanted));
  if (after != all.blocks.begin()) {
    const auto& [start, block] = *std::prev(after);
    if (wanted < start + block.size + page_size()) {
      data = block.data;
      found = block.allocation;
    }
  }
  return true;
}

void close_pages(const void* data) noexcept {
  if (data == nullptr) {
    return;
  }
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = find(all, data);
  // what was open may be gone, and these pages another's
  const bool is_open = found != all.blocks.end() && found->second.open > 0;
  if (is_open && --found->second.open == 0) {
    mprotect(found->first, found->second.size, PROT_NONE);
  }
}

} // namespace torchext::testing
