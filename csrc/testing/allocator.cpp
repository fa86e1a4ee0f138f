// SPDX-License-Identifier: BSD-3-Clause
//
// Allocations of the test device, labelled with the device that was current.
#include "device.h"
#include "memory.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torchext/platform.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace torchext::testing {
namespace {

void release(void* data) {
  release_pages(data);
}

struct PageAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t nbytes) override {
    void* data = allocate_pages(nbytes);
    return {data, data, &release, c10::Device(c10::kPrivateUse1, current_device())};
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
