// SPDX-License-Identifier: BSD-3-Clause
//
// The PrivateUse1 test device: two devices whose memory is pages of the host that nobody else may
// touch, and whose work is done when a call returns, on whichever stream, but for copies to the CPU
// that do not block. It exists so that device guards, same-device checks and CPU fallbacks are tested
// without a GPU. No production library links it; what others may call stands at the end, as C.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>

namespace torchext::testing {

constexpr c10::DeviceIndex kDeviceCount = 2;

// The current device belongs to the thread, as CUDA's does; it is 0 in a new thread.
c10::DeviceIndex current_device() noexcept;

// The index as a number, that of the current device for -1; throws where no device has it.
size_t checked_index(c10::DeviceIndex index);

// Makes `index` current and returns what was; the index must be in [0, kDeviceCount).
c10::DeviceIndex exchange_device(c10::DeviceIndex index);

// The stream that the thread's work on a device goes to.
c10::Stream current_stream(c10::DeviceIndex index);

// Allocates on the current device.
c10::Allocator* device_allocator() noexcept;

// Allocates memory of the host that counts as pinned, and tells whether an address lies in such.
c10::Allocator* pinned_memory_allocator() noexcept;
bool is_pinned(const void* data);

// Gives the storage `nbytes` bytes on its own device and keeps what fits of the old contents.
void resize_storage(const c10::Storage& storage, size_t nbytes);

// A CPU tensor on the memory of `tensor`, with its sizes, strides, dtype, conj and neg bits; a CPU
// tensor is its own. The memory is open while the result lives, which keeps `tensor`.
// Beside the allocator, this is the only way in which this library reads or writes device memory.
at::Tensor host_view(const at::Tensor& tensor);

// The generator that a device draws from where none is given.
const at::Generator& default_generator(c10::DeviceIndex index);

// One of its own, with the default seed.
at::Generator new_generator(c10::DeviceIndex index);

} // namespace torchext::testing

#define TORCHEXT_TEST_DEVICE_API __attribute__((visibility("default")))

extern "C" {
TORCHEXT_TEST_DEVICE_API int torchext_test_device_count();
TORCHEXT_TEST_DEVICE_API int torchext_test_device_current();

// The previous device, or -1 where the index is not a device: no exception crosses a C function.
TORCHEXT_TEST_DEVICE_API int torchext_test_device_exchange(int index);

// Runs a backward of one tensor on a device, which fails where autograd has no thread for it;
// nullptr, or the error, which lives until the thread's next call. No Python object is part of the
// graph: autograd's thread may let go of it while Python ends, and must not wait for its lock then.
TORCHEXT_TEST_DEVICE_API const char* torchext_test_device_backward(int index);

// Lets the CPU touch the allocation that an address lies in, until as many calls of close; -1 where
// it is no memory of the device. torchext/testing/host_access.h calls them.
TORCHEXT_TEST_DEVICE_API int torchext_test_device_open(const void* data);
TORCHEXT_TEST_DEVICE_API void torchext_test_device_close(const void* data);

// Whether an address is of a device's memory, and the allocation that it lies in or right behind of:
// none where `*data` is nullptr. -1 where it is no memory of a device.
TORCHEXT_TEST_DEVICE_API int torchext_test_device_find(
    const void* address, const void** data, size_t* nbytes, int* index);

// Lets each device give out so many bytes more than the machine has, for what is hardly written.
TORCHEXT_TEST_DEVICE_API void torchext_test_device_addresses(size_t nbytes);

// The default generator of a device: its seed, and the bytes of its state, as many as the first
// returns; -1 where the index is no device, or the bytes are no state.
TORCHEXT_TEST_DEVICE_API int torchext_test_device_seed(int index, uint64_t seed);
TORCHEXT_TEST_DEVICE_API int64_t torchext_test_device_rng_state_size();
TORCHEXT_TEST_DEVICE_API int torchext_test_device_get_rng_state(int index, void* state);
TORCHEXT_TEST_DEVICE_API int torchext_test_device_set_rng_state(int index, const void* state);
}
