// SPDX-License-Identifier: BSD-3-Clause
//
// The PrivateUse1 test device: two devices whose memory is host memory and whose work is done when a
// call returns. It exists so that device guards, same-device checks and CPU fallbacks are tested
// without a GPU. No production library links it; what others may call stands at the end, as C.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <cstddef>

namespace torchext::testing {

constexpr c10::DeviceIndex kDeviceCount = 2;

// The current device belongs to the thread, as CUDA's does; it is 0 in a new thread.
c10::DeviceIndex current_device() noexcept;

// Makes `index` current and returns what was; the index must be in [0, kDeviceCount).
c10::DeviceIndex exchange_device(c10::DeviceIndex index);

// Allocates on the current device.
c10::Allocator* device_allocator() noexcept;

// Gives the storage `nbytes` bytes on its own device and keeps what fits of the old contents.
void resize_storage(const c10::Storage& storage, size_t nbytes);

// A CPU tensor on the memory of `tensor`, with its sizes, strides, dtype, conj and neg bits; a CPU
// tensor is its own. It must not outlive `tensor`. Beside resize_storage, this is the only way in
// which this library reads or writes device memory.
at::Tensor host_view(const at::Tensor& tensor);

} // namespace torchext::testing

#define TORCHEXT_TEST_DEVICE_API __attribute__((visibility("default")))

extern "C" {
TORCHEXT_TEST_DEVICE_API int torchext_test_device_count();
TORCHEXT_TEST_DEVICE_API int torchext_test_device_current();

// The previous device, or -1 where the index is not a device: no exception crosses a C function.
TORCHEXT_TEST_DEVICE_API int torchext_test_device_exchange(int index);
}
