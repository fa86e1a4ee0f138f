// SPDX-License-Identifier: BSD-3-Clause
//
// CUDA's runtime on the test device: devices, launches, streams and events. Memory: cuda_memory.cpp.
#include "architecture.h"
#include "errors.h"
#include "machine.h"
#include "streams.h"
#include "test_device.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace torchext::cuda_on_host {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

/// The dynamic shared memory that each kernel was given, by its address.
class DynamicShared {
 public:
  void set(const void* kernel, size_t nbytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    of_[kernel] = nbytes;
  }
  /// Of a kernel that is not known, the most that any was given.
  size_t get(const void* kernel, size_t otherwise) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (kernel != nullptr) {
      const auto found = of_.find(kernel);
      return found == of_.end() ? otherwise : found->second;
    }
    for (const auto& [other, nbytes] : of_) {
      otherwise = std::max(otherwise, nbytes);
    }
    return otherwise;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, size_t> of_;
};

DynamicShared dynamic_shared_limits;

c10::impl::VirtualGuardImpl guard() {
  return c10::impl::VirtualGuardImpl(c10::kPrivateUse1);
}

using Event = std::optional<c10::Event>;

Event& event_of(cudaEvent_t event) {
  return *reinterpret_cast<Event*>(event);
}

struct Description {
  cudaError_t error;
  const char* name;
  const char* text;
};

const Description& description_of(cudaError_t error) {
  static const Description known[] = {
      {cudaSuccess, "cudaSuccess", "no error"},
      {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
      {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
      {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
      {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
      {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
      {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
      {cudaErrorPeerAccessNotEnabled,
       "cudaErrorPeerAccessNotEnabled",
       "peer access has not been enabled"},
      {cudaErrorHostMemoryAlreadyRegistered,
       "cudaErrorHostMemoryAlreadyRegistered",
       "part or all of the requested memory range is already mapped"},
      {cudaErrorHostMemoryNotRegistered,
       "cudaErrorHostMemoryNotRegistered",
       "pointer does not correspond to a registered memory region"},
      {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
  };
  static const Description other{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
  const auto is_it = [&](const Description& one) { return one.error == error; };
  const auto found = std::find_if(std::begin(known), std::end(known), is_it);
  return found == std::end(known) ? other : *found;
}

} // namespace

cudaError_t failed(cudaError_t error) {
  last_error = error;
  return error;
}

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
      asked <= dynamic_shared_limits.get(configuration.function, limits.shared_per_block),
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

cudaError_t set_attribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (value < 0 || static_cast<size_t>(value) > architecture().shared_per_block_optin) {
      return failed(cudaErrorInvalidValue);
    }
    dynamic_shared_limits.set(
        kernel, std::max(static_cast<size_t>(value), architecture().shared_per_block));
  }
  return cudaSuccess;
}

cudaError_t attributes_of(cudaFuncAttributes* attributes, const void* kernel) {
  *attributes = {};
  attributes->maxThreadsPerBlock = static_cast<int>(architecture().threads_per_block);
  attributes->numRegs = 32;
  attributes->binaryVersion = attributes->ptxVersion =
      architecture().major * 10 + architecture().minor;
  attributes->maxDynamicSharedSizeBytes =
      static_cast<int>(dynamic_shared_limits.get(kernel, architecture().shared_per_block));
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

cudaError_t best_block(
    int* grid,
    int* block,
    size_t (*shared_bytes)(const void* data, int block),
    const void* data,
    int most_threads) {
  const Architecture& limits = architecture();
  const auto most = static_cast<int>(limits.threads_per_block);
  int best = 0;
  for (int threads = most_threads > 0 ? std::min(most_threads, most) : most; threads > 0;
       threads -= threads % kWarpSize == 0 ? static_cast<int>(kWarpSize)
                                           : threads % static_cast<int>(kWarpSize)) {
    int blocks = 0;
    occupancy(&blocks, threads, shared_bytes(data, threads));
    if (blocks * threads > best) {
      best = blocks * threads;
      *block = threads;
      *grid = blocks * limits.multiprocessors;
    }
  }
  return best == 0 ? failed(cudaErrorInvalidValue) : cudaSuccess;
}

namespace runtime {

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  return last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
  return description_of(error).name;
}

const char* cudaGetErrorString(cudaError_t error) {
  return description_of(error).text;
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

cudaError_t cudaDeviceEnablePeerAccess(int /*peer*/, unsigned /*flags*/) {
  return failed(cudaErrorNotSupported);
}

cudaError_t cudaDeviceDisablePeerAccess(int /*peer*/) {
  return failed(cudaErrorPeerAccessNotEnabled);
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  *value = limit == cudaLimitStackSize ? 1024 : limit == cudaLimitMallocHeapSize ? 8 << 20 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetLimit(cudaLimit /*limit*/, size_t /*value*/) {
  return cudaSuccess;
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  *config = cudaFuncCachePreferNone;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache /*config*/) {
  return cudaSuccess;
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  *config = cudaSharedMemBankSizeFourByte;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig /*config*/) {
  return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = cudaDeviceScheduleAuto | cudaDeviceMapHost;
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned /*flags*/) {
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

cudaError_t cudaStreamGetFlags(cudaStream_t /*stream*/, unsigned* flags) {
  *flags = cudaStreamDefault;
  return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  *device = torch_stream(stream).device_index();
  return cudaSuccess;
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  *id = static_cast<unsigned long long>(torch_stream(stream).id());
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (function == nullptr) {
    return failed(cudaErrorInvalidValue);
  }
  guard().synchronizeStream(torch_stream(stream));
  function(data);
  return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(
    cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned /*flags*/) {
  if (callback == nullptr) {
    return failed(cudaErrorInvalidValue);
  }
  guard().synchronizeStream(torch_stream(stream));
  callback(stream, cudaSuccess, data);
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

cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned /*flags*/) {
  return cudaEventCreate(event);
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
