// SPDX-License-Identifier: BSD-3-Clause
//
// CUDA's runtime on the test device.
#include "accesses.h"
#include "architecture.h"
#include "streams.h"
#include "test_device.h"

#include <c10/core/Allocator.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

namespace torchext::cuda_on_host {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
// That any kernel was given: launches do not know which one they launch.
std::atomic<size_t> most_dynamic_shared{0};

c10::impl::VirtualGuardImpl guard() {
  return c10::impl::VirtualGuardImpl(c10::kPrivateUse1);
}

cudaError_t failed(cudaError_t error) {
  last_error = error;
  return error;
}

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
    return data != nullptr || nbytes == 0;
  }
  const auto* begin = static_cast<const char*>(found.data);
  const auto* address = static_cast<const char*>(data);
  return begin != nullptr && begin <= address && address + nbytes <= begin + found.nbytes;
}

using Event = std::optional<c10::Event>;

Event& event_of(cudaEvent_t event) {
  return *reinterpret_cast<Event*>(event);
}

} // namespace

void check_launchable(const Configuration& configuration, const char* kernel) {
  const Architecture& limits = architecture();
  const size_t asked = configuration.shared_bytes;
  const std::string place =
      std::string("kernel ") + kernel + " at " + text_of({configuration.file, configuration.line});
  TORCH_CHECK(
      asked <= limits.shared_per_block_optin,
      place,
      ": a block has at most ",
      limits.shared_per_block_optin,
      " bytes of shared memory, not ",
      asked);
  TORCH_CHECK(
      asked <= limits.shared_per_block || asked <= most_dynamic_shared,
      place,
      ": more than ",
      limits.shared_per_block,
      " bytes of shared memory, of which ",
      asked,
      " are asked for, need cudaFuncSetAttribute(kernel, "
      "cudaFuncAttributeMaxDynamicSharedMemorySize, ...) before the launch");
  const c10::Device device(
      c10::kPrivateUse1, static_cast<c10::DeviceIndex>(test_device().current()));
  TORCH_CHECK(
      configuration.stream != nullptr || guard().getStream(device).id() == 0,
      place,
      ": the launch is on the default stream, and torch's work is on another, "
      "at::cuda::getCurrentCUDAStream()");
}

cudaStream_t cuda_stream(c10::StreamId id, int device) {
  return id == 0 ? nullptr
                 : reinterpret_cast<cudaStream_t>(static_cast<uintptr_t>(id) << 8 | (device + 1));
}

c10::Stream torch_stream(cudaStream_t stream) {
  const auto bits = reinterpret_cast<uintptr_t>(stream);
  const bool is_default = bits <= 2; // one of cudaStreamLegacy and cudaStreamPerThread, too
  const auto index =
      static_cast<c10::DeviceIndex>(is_default ? test_device().current() : (bits & 0xff) - 1);
  return c10::Stream(
      c10::Stream::UNSAFE,
      c10::Device(c10::kPrivateUse1, index),
      is_default ? 0 : static_cast<c10::StreamId>(bits >> 8));
}

cudaError_t set_attribute(cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (value < 0 || static_cast<size_t>(value) > architecture().shared_per_block_optin) {
      return failed(cudaErrorInvalidValue);
    }
    most_dynamic_shared = std::max(most_dynamic_shared.load(), static_cast<size_t>(value));
  }
  return cudaSuccess;
}

cudaError_t attributes_of_any(cudaFuncAttributes* attributes) {
  *attributes = {};
  attributes->maxThreadsPerBlock = static_cast<int>(architecture().threads_per_block);
  attributes->numRegs = 32;
  attributes->binaryVersion = attributes->ptxVersion =
      architecture().major * 10 + architecture().minor;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(architecture().shared_per_block);
  return cudaSuccess;
}

cudaError_t occupancy(int* blocks, int block_threads, size_t shared_bytes) {
  const Architecture& limits = architecture();
  if (block_threads <= 0) {
    return failed(cudaErrorInvalidValue);
  }
  int found =
      std::min(limits.blocks_per_multiprocessor, limits.threads_per_multiprocessor / block_threads);
  if (shared_bytes != 0) {
    found = std::min(found, static_cast<int>(limits.shared_per_multiprocessor / shared_bytes));
  }
  *blocks = found;
  return cudaSuccess;
}

namespace runtime {

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  return last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
    default:
      return "cudaErrorUnknown";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNotSupported:
      return "operation not supported";
    default:
      return "unknown error";
  }
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = test_device().count();
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = test_device().current();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return test_device().set_current(device) ? cudaSuccess : failed(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceSynchronize() {
  guard().synchronizeDevice(static_cast<c10::DeviceIndex>(test_device().current()));
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= test_device().count()) {
    return failed(cudaErrorInvalidDevice);
  }
  const Architecture& limits = architecture();
  cudaDeviceProp found{};
  std::snprintf(found.name, sizeof(found.name), "%s", limits.name);
  size_t left = 0;
  cudaMemGetInfo(&left, &found.totalGlobalMem);
  found.sharedMemPerBlock = limits.shared_per_block;
  found.regsPerBlock = found.regsPerMultiprocessor = limits.registers;
  found.warpSize = kWarpSize;
  found.maxThreadsPerBlock = static_cast<int>(limits.threads_per_block);
  found.maxThreadsDim[0] = static_cast<int>(limits.block.x);
  found.maxThreadsDim[1] = static_cast<int>(limits.block.y);
  found.maxThreadsDim[2] = static_cast<int>(limits.block.z);
  found.maxGridSize[0] = static_cast<int>(limits.grid.x);
  found.maxGridSize[1] = static_cast<int>(limits.grid.y);
  found.maxGridSize[2] = static_cast<int>(limits.grid.z);
  found.totalConstMem = limits.constant_bytes;
  found.major = limits.major;
  found.minor = limits.minor;
  found.multiProcessorCount = limits.multiprocessors;
  found.canMapHostMemory = found.concurrentKernels = found.cooperativeLaunch = 1;
  found.l2CacheSize = 50 << 20;
  found.maxThreadsPerMultiProcessor = limits.threads_per_multiprocessor;
  found.sharedMemPerMultiprocessor = limits.shared_per_multiprocessor;
  found.sharedMemPerBlockOptin = limits.shared_per_block_optin;
  found.maxBlocksPerMultiProcessor = limits.blocks_per_multiprocessor;
  *properties = found;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int device) {
  cudaDeviceProp found{};
  if (const cudaError_t error = cudaGetDeviceProperties(&found, device)) {
    return error;
  }
  switch (what) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = found.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
    case cudaDevAttrMaxBlockDimZ:
      *value = found.maxThreadsDim[what - cudaDevAttrMaxBlockDimX];
      break;
    case cudaDevAttrMaxGridDimX:
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      *value = found.maxGridSize[what - cudaDevAttrMaxGridDimX];
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(found.sharedMemPerBlock);
      break;
    case cudaDevAttrWarpSize:
      *value = found.warpSize;
      break;
    case cudaDevAttrMaxRegistersPerBlock:
      *value = found.regsPerBlock;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = found.multiProcessorCount;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = found.maxThreadsPerMultiProcessor;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = found.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = found.minor;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(found.sharedMemPerMultiprocessor);
      break;
    case cudaDevAttrCooperativeLaunch:
      *value = found.cooperativeLaunch;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(found.sharedMemPerBlockOptin);
      break;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      *value = found.maxBlocksPerMultiProcessor;
      break;
    default:
      return failed(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int /*device*/, int /*peer*/) {
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* left, size_t* total) {
  constexpr size_t kMemory = size_t{16} << 30; // of a device that nobody asks more of
  *left = *total = kMemory;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, size_t nbytes) {
  return attempt(cudaErrorMemoryAllocation, [&] { *data = allocator()->raw_allocate(nbytes); });
}

cudaError_t cudaMallocAsync(void** data, size_t nbytes, cudaStream_t /*stream*/) {
  return cudaMalloc(data, nbytes);
}

cudaError_t cudaFree(void* data) {
  if (data != nullptr && !is_of_the_device(data)) {
    return failed(cudaErrorInvalidValue);
  }
  allocator()->raw_deallocate(data);
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t /*stream*/) {
  return cudaFree(data);
}

cudaError_t cudaMallocHost(void** data, size_t nbytes) {
  *data = std::malloc(nbytes);
  return *data == nullptr ? failed(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaHostAlloc(void** data, size_t nbytes, unsigned /*flags*/) {
  return cudaMallocHost(data, nbytes);
}

cudaError_t cudaFreeHost(void* data) {
  std::free(data);
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

cudaError_t cudaMemcpy2DAsync(
    void* to,
    size_t to_pitch,
    const void* from,
    size_t from_pitch,
    size_t width,
    size_t height,
    cudaMemcpyKind kind,
    cudaStream_t /*stream*/) {
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

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  TestDevice::Block found;
  const bool is_device = test_device().find(data, found) && found.data != nullptr;
  attributes->type = is_device ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  attributes->device = is_device ? found.device : 0;
  attributes->devicePointer = is_device ? const_cast<void*>(data) : nullptr;
  attributes->hostPointer = is_device ? nullptr : const_cast<void*>(data);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  const auto index = static_cast<c10::DeviceIndex>(test_device().current());
  const c10::Stream made = guard().getNewStream(c10::Device(c10::kPrivateUse1, index));
  *stream = cuda_stream(made.id(), made.device_index());
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  return cudaStreamCreate(stream);
}

cudaError_t cudaStreamCreateWithPriority(
    cudaStream_t* stream, unsigned /*flags*/, int /*priority*/) {
  return cudaStreamCreate(stream);
}

cudaError_t cudaStreamDestroy(cudaStream_t /*stream*/) {
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  guard().synchronizeStream(torch_stream(stream));
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return guard().queryStream(torch_stream(stream)) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  if (Event& found = event_of(event)) {
    found->block(torch_stream(stream));
  }
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t /*stream*/, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t /*stream*/, cudaStreamCaptureStatus* status, unsigned long long* /*id*/) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t /*stream*/, int* priority) {
  *priority = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* /*mode*/) {
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  return cudaEventCreate(event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<Event*>(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  Event& found = event_of(event);
  if (!found.has_value()) {
    found.emplace(c10::kPrivateUse1, c10::EventFlag::BACKEND_DEFAULT);
  }
  found->record(torch_stream(stream));
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned /*flags*/) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Event& found = event_of(event);
  return !found.has_value() || found->query() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const Event& found = event_of(event)) {
    found->synchronize();
  }
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!event_of(start).has_value() || !event_of(end).has_value()) {
    return failed(cudaErrorInvalidResourceHandle);
  }
  *milliseconds = static_cast<float>(event_of(start)->elapsedTime(*event_of(end)));
  return cudaSuccess;
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* /*handle*/, cudaEvent_t /*event*/) {
  return failed(cudaErrorNotSupported);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* /*event*/, cudaIpcEventHandle_t /*handle*/) {
  return failed(cudaErrorNotSupported);
}

} // namespace runtime
} // namespace torchext::cuda_on_host
