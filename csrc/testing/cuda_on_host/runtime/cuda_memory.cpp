// SPDX-License-Identifier: BSD-3-Clause
//
// CUDA's runtime on the test device: its memory, and the host's that kernels may use.
#include "errors.h"
#include "host_memory.h"
#include "test_device.h"

#include <c10/core/Allocator.h>
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>

namespace torchext::cuda_on_host {
namespace {

// Runs what may throw, of a function that returns an error.
template <typename F>
cudaError_t attempt(cudaError_t error, const F& f) {
  try {
    f();
    return cudaSuccess;
  } catch (const std::exception&) {
    return failed(error);
  }
}

c10::Allocator* allocator() {
  return c10::GetAllocator(c10::kPrivateUse1);
}

bool is_of_the_device(const void* data) {
  TestDevice::Block found;
  return data != nullptr && test_device().find(data, found) && found.data != nullptr;
}

// Opens memory of the device while it lives; the host's is open.
class OpenMemory {
 public:
  explicit OpenMemory(const void* data) : data_(is_of_the_device(data) ? data : nullptr) {
    if (data_ != nullptr) {
      test_device().open(data_);
    }
  }
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
  ~OpenMemory() {
    if (data_ != nullptr) {
      test_device().close(data_);
    }
  }

 private:
  const void* data_;
};

bool is_inside(const void* data, size_t nbytes) {
  TestDevice::Block found;
  if (!test_device().find(data, found)) {
    const auto known = host_memory().find(data);
    const auto* at = static_cast<const char*>(data);
    const bool overruns = known.has_value() && at < known->begin + known->nbytes &&
                          at + nbytes > known->begin + known->nbytes;
    return (data != nullptr || nbytes == 0) && !overruns;
  }
  const auto* begin = static_cast<const char*>(found.data);
  const auto* address = static_cast<const char*>(data);
  return begin != nullptr && begin <= address && address + nbytes <= begin + found.nbytes;
}

} // namespace

cudaError_t copy_symbol(
    void* symbol,
    size_t size,
    void* to,
    const void* from,
    size_t nbytes,
    size_t offset,
    cudaMemcpyKind kind) {
  if (offset > size || nbytes > size - offset) {
    return failed(cudaErrorInvalidValue);
  }
  char* inside = static_cast<char*>(symbol) + offset;
  return to == nullptr ? runtime::cudaMemcpy(inside, from, nbytes, kind)
                       : runtime::cudaMemcpy(to, inside, nbytes, kind);
}

namespace runtime {

cudaError_t cudaMalloc(void** data, size_t nbytes) {
  return attempt(cudaErrorMemoryAllocation, [&] { *data = allocator()->raw_allocate(nbytes); });
}

cudaError_t cudaMallocAsync(void** data, size_t nbytes, cudaStream_t /*stream*/) {
  return cudaMalloc(data, nbytes);
}

cudaError_t cudaFree(void* data) {
  const auto known = host_memory().find(data);
  if (known.has_value() && known->begin == data && known->kind == HostMemory::Kind::kManaged) {
    host_memory().remove(data);
    std::free(data);
    return cudaSuccess;
  }
  if (data != nullptr && !is_of_the_device(data)) {
    return failed(cudaErrorInvalidValue);
  }
  allocator()->raw_deallocate(data);
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t /*stream*/) {
  return cudaFree(data);
}

cudaError_t cudaMallocPitch(void** data, size_t* pitch, size_t width, size_t height) {
  constexpr size_t kPitch = 512;
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return cudaMalloc(data, *pitch * height);
}

cudaError_t cudaMallocHost(void** data, size_t nbytes) {
  return cudaHostAlloc(data, nbytes, cudaHostAllocDefault);
}

cudaError_t cudaHostAlloc(void** data, size_t nbytes, unsigned /*flags*/) {
  *data = std::malloc(nbytes);
  if (*data == nullptr) {
    return failed(cudaErrorMemoryAllocation);
  }
  host_memory().add(*data, nbytes, HostMemory::Kind::kPinned);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* data) {
  const auto known = host_memory().find(data);
  const bool is_own =
      known.has_value() && known->begin == data && known->kind == HostMemory::Kind::kPinned;
  if (data != nullptr && !is_own) {
    return failed(cudaErrorInvalidValue);
  }
  host_memory().remove(data);
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* data, size_t nbytes, unsigned /*flags*/) {
  if (data == nullptr || nbytes == 0) {
    return failed(cudaErrorInvalidValue);
  }
  return host_memory().add(data, nbytes, HostMemory::Kind::kRegistered)
             ? cudaSuccess
             : failed(cudaErrorHostMemoryAlreadyRegistered);
}

cudaError_t cudaHostUnregister(void* data) {
  return host_memory().remove(data).has_value() ? cudaSuccess
                                                : failed(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaHostGetDevicePointer(void** of_device, void* of_host, unsigned /*flags*/) {
  if (!host_memory().find(of_host).has_value()) {
    return failed(cudaErrorInvalidValue);
  }
  *of_device = of_host;
  return cudaSuccess;
}

cudaError_t cudaMallocManaged(void** data, size_t nbytes, unsigned /*flags*/) {
  *data = std::malloc(nbytes);
  if (*data == nullptr) {
    return failed(cudaErrorMemoryAllocation);
  }
  host_memory().add(*data, nbytes, HostMemory::Kind::kManaged);
  return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) {
  return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int /*device*/) {
  return cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) {
  return cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(const void*, size_t, int /*device*/, cudaStream_t) {
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t nbytes, cudaMemcpyKind /*kind*/) {
  if (nbytes == 0) {
    return cudaSuccess;
  }
  if (!is_inside(to, nbytes) || !is_inside(from, nbytes)) {
    return failed(cudaErrorInvalidValue);
  }
  const OpenMemory open_to(to);
  const OpenMemory open_from(from);
  std::memmove(to, from, nbytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t nbytes, cudaMemcpyKind kind, cudaStream_t /*stream*/) {
  return cudaMemcpy(to, from, nbytes, kind);
}

cudaError_t cudaMemcpyPeer(
    void* to, int /*to_device*/, const void* from, int /*from_device*/, size_t nbytes) {
  return cudaMemcpy(to, from, nbytes, cudaMemcpyDefault);
}

cudaError_t cudaMemcpyPeerAsync(
    void* to,
    int to_device,
    const void* from,
    int from_device,
    size_t nbytes,
    cudaStream_t /*stream*/) {
  return cudaMemcpyPeer(to, to_device, from, from_device, nbytes);
}

cudaError_t cudaMemcpy2D(
    void* to,
    size_t to_pitch,
    const void* from,
    size_t from_pitch,
    size_t width,
    size_t height,
    cudaMemcpyKind kind) {
  if (width > to_pitch || width > from_pitch) {
    return failed(cudaErrorInvalidPitchValue);
  }
  for (size_t row = 0; row < height; ++row) {
    const cudaError_t error = cudaMemcpy(
        static_cast<char*>(to) + row * to_pitch,
        static_cast<const char*>(from) + row * from_pitch,
        width,
        kind);
    if (error != cudaSuccess) {
      return error;
    }
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(
    void* to,
    size_t to_pitch,
    const void* from,
    size_t from_pitch,
    size_t width,
    size_t height,
    cudaMemcpyKind kind,
    cudaStream_t /*stream*/) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

cudaError_t cudaMemset(void* data, int value, size_t nbytes) {
  if (!is_inside(data, nbytes)) {
    return failed(cudaErrorInvalidValue);
  }
  const OpenMemory open(data);
  std::memset(data, value, nbytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* data, int value, size_t nbytes, cudaStream_t /*stream*/) {
  return cudaMemset(data, value, nbytes);
}

cudaError_t cudaMemset2D(void* data, size_t pitch, int value, size_t width, size_t height) {
  if (width > pitch) {
    return failed(cudaErrorInvalidPitchValue);
  }
  for (size_t row = 0; row < height; ++row) {
    if (const auto error = cudaMemset(static_cast<char*>(data) + row * pitch, value, width)) {
      return error;
    }
  }
  return cudaSuccess;
}

cudaError_t cudaMemset2DAsync(
    void* data, size_t pitch, int value, size_t width, size_t height, cudaStream_t /*stream*/) {
  return cudaMemset2D(data, pitch, value, width, height);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  TestDevice::Block found;
  const bool is_device = test_device().find(data, found) && found.data != nullptr;
  const auto known = host_memory().find(data);
  const bool is_managed = known.has_value() && known->kind == HostMemory::Kind::kManaged;
  attributes->type = is_device           ? cudaMemoryTypeDevice
                     : is_managed        ? cudaMemoryTypeManaged
                     : known.has_value() ? cudaMemoryTypeHost
                                         : cudaMemoryTypeUnregistered;
  attributes->device = is_device ? found.device : 0;
  attributes->devicePointer = is_device || known.has_value() ? const_cast<void*>(data) : nullptr;
  attributes->hostPointer = is_device ? nullptr : const_cast<void*>(data);
  return cudaSuccess;
}

} // namespace runtime
} // namespace torchext::cuda_on_host
