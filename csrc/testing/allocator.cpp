// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of the test device: host memory, labelled with the device that was current.
#include "device.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace torchext::testing {
namespace {

struct HostMemoryAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t nbytes) override {
    void* data = c10::alloc_cpu(nbytes);
    return {data, data, &c10::free_cpu, c10::Device(c10::kPrivateUse1, current_device())};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return &c10::free_cpu;
  }

  void copy_data(void* dest, const void* src, size_t count) const override {
    std::memcpy(dest, src, count);
  }
};

HostMemoryAllocator host_memory_allocator;

// Storages that are made without a kernel (torch.UntypedStorage) find the allocator here.
REGISTER_ALLOCATOR(c10::kPrivateUse1, &host_memory_allocator)

} // namespace

c10::Allocator* device_allocator() noexcept {
  return &host_memory_allocator;
}

void resize_storage(const c10::Storage& storage, size_t nbytes) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  TORCH_CHECK(impl->resizable(), "torchext: this storage of the test device is not resizable");
  const c10::DeviceGuard guard(storage.device());
  c10::DataPtr data = host_memory_allocator.allocate(nbytes);
  const size_t kept = std::min(nbytes, storage.nbytes());
  if (kept != 0) {
    std::memcpy(data.get(), storage.data(), kept);
  }
  impl->set_data_ptr_noswap(std::move(data));
  impl->set_nbytes(nbytes);
}

} // namespace torchext::testing
