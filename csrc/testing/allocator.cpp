// SPDX-License-Identifier: BSD-3-Clause
//
// Allocations of the test device, labelled with the device that was current.
#include "device.h"
#include "memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torchext/platform.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include <unistd.h>

namespace torchext::testing {
namespace {

using c10::CachingDeviceAllocator::DeviceStats;
constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

// What every device has given out. Each has as much as the machine has.
struct Usage {
  std::mutex mutex;
  DeviceStats devices[kDeviceCount];
};

Usage& usage() {
  static auto* all = new Usage; // never destroyed: tensors may outlive static objects
  return *all;
}

const bool usage_forks_safely =
    hold_while_forking([] { usage().mutex.lock(); }, [] { usage().mutex.unlock(); });

std::atomic<size_t> addresses{0}; // that may be given out besides, for what is hardly written

size_t capacity() {
  const auto pages = static_cast<size_t>(sysconf(_SC_PHYS_PAGES));
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + addresses;
}

// Calls a function with each sum of bytes that an allocation is part of, and each number of such.
template <typename Function>
void for_each_stat(DeviceStats& stats, const Function& function) {
  for (auto* bytes :
       {&stats.allocated_bytes,
        &stats.active_bytes,
        &stats.reserved_bytes,
        &stats.requested_bytes}) {
    function((*bytes)[kAll], /*is_bytes=*/true);
  }
  function(stats.allocation[kAll], /*is_bytes=*/false);
  function(stats.active[kAll], /*is_bytes=*/false);
}

// Whether the device has as much left, which is then taken.
bool take(Allocation allocation) {
  Usage& all = usage();
  const std::lock_guard lock(all.mutex);
  DeviceStats& stats = all.devices[allocation.device];
  if (allocation.nbytes > capacity() - static_cast<size_t>(stats.allocated_bytes[kAll].current)) {
    ++stats.num_ooms;
    return false;
  }
  for_each_stat(
      stats, [&](auto& stat, bool is_bytes) { stat.increase(is_bytes ? allocation.nbytes : 1); });
  return true;
}

void give_back(Allocation allocation) {
  Usage& all = usage();
  const std::lock_guard lock(all.mutex);
  for_each_stat(all.devices[allocation.device], [&](auto& stat, bool is_bytes) {
    stat.decrease(is_bytes ? allocation.nbytes : 1);
  });
}

void release(void* data) {
  if (data != nullptr) {
    give_back(release_pages(data));
  }
}

[[noreturn]] void throw_out_of_memory(Allocation allocation) {
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      false,
      "torchext: out of memory on ",
      c10::Device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(allocation.device)),
      ": of ",
      capacity(),
      " bytes too few are left for ",
      allocation.nbytes);
}

struct PageAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t nbytes) override {
    const c10::Device device(c10::kPrivateUse1, current_device());
    const Allocation allocation{nbytes, device.index()};
    if (nbytes == 0) {
      return {nullptr, nullptr, &release, device};
    }
    if (!take(allocation)) {
      throw_out_of_memory(allocation);
    }
    // Not under the lock of the counts: a fork takes that of the pages first.
    try {
      void* data = allocate_pages(allocation);
      return {data, data, &release, device};
    } catch (const std::bad_alloc&) {
      give_back(allocation);
      throw_out_of_memory(allocation);
    } catch (...) {
      give_back(allocation);
      throw;
    }
  }

  bool initialized() override {
    return true;
  }

  void emptyCache(c10::MempoolId_t /*mempool_id*/) override {}

  // Work is done when a call returns.
  void recordStream(const c10::DataPtr& /*ptr*/, c10::Stream /*stream*/) override {}

  DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    Usage& all = usage();
    const std::lock_guard lock(all.mutex);
    return all.devices[checked_index(device)];
  }

  void resetAccumulatedStats(c10::DeviceIndex device) override {
    Usage& all = usage();
    const std::lock_guard lock(all.mutex);
    for_each_stat(
        all.devices[checked_index(device)], [](auto& stat, bool) { stat.reset_accumulated(); });
  }

  void resetPeakStats(c10::DeviceIndex device) override {
    Usage& all = usage();
    const std::lock_guard lock(all.mutex);
    for_each_stat(all.devices[checked_index(device)], [](auto& stat, bool) { stat.reset_peak(); });
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const auto used = getDeviceStats(device).allocated_bytes[kAll].current;
    return {capacity() - static_cast<size_t>(used), capacity()};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return &release;
  }

  void copy_data(void* dest, const void* src, size_t count) const override {
    const OpenPages open_dest(dest);
    const OpenPages open_src(src);
    std::memcpy(dest, src, count);
  }
};

PageAllocator page_allocator;

// Pinned memory is plain memory of the host that is known by its addresses.
struct Pinned {
  std::mutex mutex;
  std::map<const char*, size_t> blocks;
};

Pinned& pinned() {
  static auto* all = new Pinned; // never destroyed: tensors may outlive static objects
  return *all;
}

const bool forks_safely =
    hold_while_forking([] { pinned().mutex.lock(); }, [] { pinned().mutex.unlock(); });

void release_pinned(void* data) {
  {
    Pinned& all = pinned();
    const std::lock_guard lock(all.mutex);
    all.blocks.erase(static_cast<const char*>(data));
  }
  c10::free_cpu(data);
}

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t nbytes) override {
    void* data = c10::alloc_cpu(nbytes);
    if (data != nullptr) {
      Pinned& all = pinned();
      const std::lock_guard lock(all.mutex);
      all.blocks.emplace(static_cast<const char*>(data), nbytes);
    }
    return {data, data, &release_pinned, c10::Device(c10::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return &release_pinned;
  }

  void copy_data(void* dest, const void* src, size_t count) const override {
    std::memcpy(dest, src, count);
  }
};

PinnedAllocator pinned_allocator;

// Storages that are made without a kernel (torch.UntypedStorage) find the allocator here.
REGISTER_ALLOCATOR(c10::kPrivateUse1, &page_allocator)

} // namespace

c10::Allocator* device_allocator() noexcept {
  return &page_allocator;
}

c10::Allocator* pinned_memory_allocator() noexcept {
  return &pinned_allocator;
}

bool is_pinned(const void* data) {
  const auto* address = static_cast<const char*>(data);
  Pinned& all = pinned();
  const std::lock_guard lock(all.mutex);
  auto found = all.blocks.upper_bound(address);
  return found != all.blocks.begin() && address < (--found)->first + found->second;
}

void resize_storage(const c10::Storage& storage, size_t nbytes) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  TORCH_CHECK(impl->resizable(), "torchext: this storage of the test device is not resizable");
  const c10::DeviceGuard guard(storage.device());
  c10::DataPtr data = page_allocator.allocate(nbytes);
  const size_t kept = std::min(nbytes, storage.nbytes());
  if (kept != 0) {
    page_allocator.copy_data(data.get(), storage.data(), kept);
  }
  impl->set_data_ptr_noswap(std::move(data));
  impl->set_nbytes(nbytes);
}

} // namespace torchext::testing

int torchext_test_device_open(const void* data) {
  try {
    torchext::testing::open_pages(data);
    return 0;
  } catch (...) {
    return -1;
  }
}

void torchext_test_device_close(const void* data) {
  torchext::testing::close_pages(data);
}

int torchext_test_device_find(const void* address, const void** data, size_t* nbytes, int* index) {
  torchext::testing::Allocation found;
  if (!torchext::testing::find_allocation(address, *data, found)) {
    return -1;
  }
  *nbytes = found.nbytes;
  *index = found.device;
  return 0;
}

extern "C" void torchext_test_device_addresses(size_t nbytes) {
  torchext::testing::addresses = nbytes;
}
