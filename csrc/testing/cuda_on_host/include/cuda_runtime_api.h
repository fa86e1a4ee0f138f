// SPDX-License-Identifier: BSD-3-Clause
//
// What libraries use of CUDA's runtime, on the test device: streams are its streams, and what is put
// into one is done when the call returns. Errors of a kernel are exceptions of its launch, and not
// what cudaGetLastError returns.
#pragma once

#include <torchext/cuda_on_host/launch.h>
#include <torchext/cuda_on_host/types.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
#define CUDART_CB
#define CUDARTAPI

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorCudartUnloading = 4,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidPitchValue = 12,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorPeerAccessNotEnabled = 705,
  cudaErrorHostMemoryAlreadyRegistered = 712,
  cudaErrorHostMemoryNotRegistered = 713,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999,
};
using cudaError = cudaError_t;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault,
};

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 14,
};

enum cudaFuncCache {
  cudaFuncCachePreferNone,
  cudaFuncCachePreferShared,
  cudaFuncCachePreferL1,
  cudaFuncCachePreferEqual,
};

enum cudaSharedMemConfig {
  cudaSharedMemBankSizeDefault,
  cudaSharedMemBankSizeFourByte,
  cudaSharedMemBankSizeEightByte,
};

enum cudaLimit {
  cudaLimitStackSize,
  cudaLimitPrintfFifoSize,
  cudaLimitMallocHeapSize,
  cudaLimitDevRuntimeSyncDepth,
  cudaLimitDevRuntimePendingLaunchCount,
  cudaLimitMaxL2FetchGranularity,
  cudaLimitPersistingL2CacheSize,
};

enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly,
  cudaMemAdviseSetPreferredLocation,
  cudaMemAdviseUnsetPreferredLocation,
  cudaMemAdviseSetAccessedBy,
  cudaMemAdviseUnsetAccessedBy,
};

enum cudaMemLocationType {
  cudaMemLocationTypeInvalid,
  cudaMemLocationTypeDevice,
  cudaMemLocationTypeHost,
};
struct cudaMemLocation {
  cudaMemLocationType type;
  int id;
};

enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxBlockDimX = 2,
  cudaDevAttrMaxBlockDimY = 3,
  cudaDevAttrMaxBlockDimZ = 4,
  cudaDevAttrMaxGridDimX = 5,
  cudaDevAttrMaxGridDimY = 6,
  cudaDevAttrMaxGridDimZ = 7,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMaxRegistersPerBlock = 12,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrCooperativeLaunch = 95,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
  cudaDevAttrMaxBlocksPerMultiprocessor = 106,
};

enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone,
  cudaStreamCaptureStatusActive,
  cudaStreamCaptureStatusInvalidated,
};
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed,
};

constexpr unsigned cudaEventDefault = 0;
constexpr unsigned cudaEventBlockingSync = 1;
constexpr unsigned cudaEventDisableTiming = 2;
constexpr unsigned cudaEventInterprocess = 4;
constexpr unsigned cudaEventExternal = 8;
constexpr unsigned cudaEventRecordDefault = 0;
constexpr unsigned cudaEventRecordExternal = 1;
constexpr unsigned cudaEventWaitDefault = 0;
constexpr unsigned cudaEventWaitExternal = 1;
constexpr unsigned cudaStreamDefault = 0;
constexpr unsigned cudaStreamNonBlocking = 1;
constexpr unsigned cudaHostAllocDefault = 0;
constexpr unsigned cudaHostAllocPortable = 1;
constexpr unsigned cudaHostAllocMapped = 2;
constexpr unsigned cudaHostAllocWriteCombined = 4;
constexpr unsigned cudaHostRegisterDefault = 0;
constexpr unsigned cudaHostRegisterPortable = 1;
constexpr unsigned cudaHostRegisterMapped = 2;
constexpr unsigned cudaHostRegisterReadOnly = 8;
constexpr unsigned cudaMemAttachGlobal = 1;
constexpr unsigned cudaMemAttachHost = 2;
constexpr unsigned cudaMemAttachSingle = 4;
constexpr unsigned cudaDeviceScheduleAuto = 0;
constexpr unsigned cudaDeviceScheduleSpin = 1;
constexpr unsigned cudaDeviceScheduleYield = 2;
constexpr unsigned cudaDeviceScheduleBlockingSync = 4;
constexpr unsigned cudaDeviceMapHost = 8;
constexpr unsigned cudaOccupancyDefault = 0;
constexpr unsigned cudaOccupancyDisableCachingOverride = 1;
constexpr int cudaCpuDeviceId = -1;
constexpr int cudaInvalidDeviceId = -2;

struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUgraphNode_st;
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
using cudaGraph_t = CUgraph_st*;
using cudaGraphExec_t = CUgraphExec_st*;
using cudaGraphNode_t = CUgraphNode_st*;
using CUstream = CUstream_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUcontext = struct CUctx_st*;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using cudaHostFn_t = void (*)(void* data);
using cudaStreamCallback_t = void (*)(cudaStream_t stream, cudaError_t status, void* data);

struct cudaIpcMemHandle_t {
  char reserved[64];
};
struct cudaIpcEventHandle_t {
  char reserved[64];
};

#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(1))
#define cudaStreamPerThread (reinterpret_cast<cudaStream_t>(2))

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  size_t memPitch;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  size_t totalConstMem;
  int major;
  int minor;
  int multiProcessorCount;
  int integrated;
  int canMapHostMemory;
  int concurrentKernels;
  int l2CacheSize;
  int maxThreadsPerMultiProcessor;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor;
  int managedMemory;
  int isMultiGpuBoard;
  int cooperativeLaunch;
  size_t sharedMemPerBlockOptin;
  int maxBlocksPerMultiProcessor;
  size_t reservedSharedMemPerBlock;
};

struct cudaFuncAttributes {
  size_t sharedSizeBytes;
  size_t constSizeBytes;
  size_t localSizeBytes;
  int maxThreadsPerBlock;
  int numRegs;
  int ptxVersion;
  int binaryVersion;
  int cacheModeCA;
  int maxDynamicSharedSizeBytes;
  int preferredShmemCarveout;
};

struct cudaPointerAttributes {
  int type;
  int device;
  void* devicePointer;
  void* hostPointer;
};
constexpr int cudaMemoryTypeUnregistered = 0;
constexpr int cudaMemoryTypeHost = 1;
constexpr int cudaMemoryTypeDevice = 2;
constexpr int cudaMemoryTypeManaged = 3;

enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributePriority = 8,
};
union cudaLaunchAttributeValue {
  char pad[64];
  int cooperative;
  int priority;
  int programmaticStreamSerializationAllowed;
  struct {
    unsigned x, y, z;
  } clusterDim;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

#define TORCHEXT_CUDA_API TORCHEXT_CUDA_ON_HOST_API

// In a namespace, so that the linker takes them for none of those that a CUDA build of torch has loaded.
namespace torchext::cuda_on_host::runtime {

TORCHEXT_CUDA_API cudaError_t cudaGetLastError();
TORCHEXT_CUDA_API cudaError_t cudaPeekAtLastError();
TORCHEXT_CUDA_API const char* cudaGetErrorString(cudaError_t error);
TORCHEXT_CUDA_API const char* cudaGetErrorName(cudaError_t error);

TORCHEXT_CUDA_API cudaError_t cudaGetDeviceCount(int* count);
TORCHEXT_CUDA_API cudaError_t cudaGetDevice(int* device);
TORCHEXT_CUDA_API cudaError_t cudaSetDevice(int device);
TORCHEXT_CUDA_API cudaError_t cudaDeviceSynchronize();
TORCHEXT_CUDA_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
TORCHEXT_CUDA_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int device);
TORCHEXT_CUDA_API cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
TORCHEXT_CUDA_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
TORCHEXT_CUDA_API cudaError_t cudaDeviceDisablePeerAccess(int peer);
TORCHEXT_CUDA_API cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit);
TORCHEXT_CUDA_API cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value);
TORCHEXT_CUDA_API cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config);
TORCHEXT_CUDA_API cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config);
TORCHEXT_CUDA_API cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config);
TORCHEXT_CUDA_API cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config);
TORCHEXT_CUDA_API cudaError_t cudaGetDeviceFlags(unsigned* flags);
TORCHEXT_CUDA_API cudaError_t cudaSetDeviceFlags(unsigned flags);
TORCHEXT_CUDA_API cudaError_t cudaMemGetInfo(size_t* left, size_t* total);
TORCHEXT_CUDA_API cudaError_t cudaDriverGetVersion(int* version);
TORCHEXT_CUDA_API cudaError_t cudaRuntimeGetVersion(int* version);

TORCHEXT_CUDA_API cudaError_t cudaMalloc(void** data, size_t nbytes);
TORCHEXT_CUDA_API cudaError_t cudaMallocAsync(void** data, size_t nbytes, cudaStream_t stream);
TORCHEXT_CUDA_API cudaError_t cudaFree(void* data);
TORCHEXT_CUDA_API cudaError_t cudaFreeAsync(void* data, cudaStream_t stream);
// Of pitch: each row begins where 512 bytes do.
TORCHEXT_CUDA_API cudaError_t
cudaMallocPitch(void** data, size_t* pitch, size_t width, size_t height);
// Memory of the host that kernels may read and write, to the byte.
TORCHEXT_CUDA_API cudaError_t cudaMallocHost(void** data, size_t nbytes);
TORCHEXT_CUDA_API cudaError_t cudaHostAlloc(void** data, size_t nbytes, unsigned flags);
TORCHEXT_CUDA_API cudaError_t cudaFreeHost(void* data);
TORCHEXT_CUDA_API cudaError_t cudaHostRegister(void* data, size_t nbytes, unsigned flags);
TORCHEXT_CUDA_API cudaError_t cudaHostUnregister(void* data);
TORCHEXT_CUDA_API cudaError_t
cudaHostGetDevicePointer(void** of_device, void* of_host, unsigned flags);
TORCHEXT_CUDA_API cudaError_t
cudaMallocManaged(void** data, size_t nbytes, unsigned flags = cudaMemAttachGlobal);
TORCHEXT_CUDA_API cudaError_t
cudaMemAdvise(const void* data, size_t nbytes, cudaMemoryAdvise advice, cudaMemLocation location);
TORCHEXT_CUDA_API cudaError_t
cudaMemAdvise(const void* data, size_t nbytes, cudaMemoryAdvise advice, int device);
TORCHEXT_CUDA_API cudaError_t cudaMemPrefetchAsync(
    const void* data,
    size_t nbytes,
    cudaMemLocation location,
    unsigned flags,
    cudaStream_t stream = nullptr);
TORCHEXT_CUDA_API cudaError_t
cudaMemPrefetchAsync(const void* data, size_t nbytes, int device, cudaStream_t stream = nullptr);
TORCHEXT_CUDA_API cudaError_t
cudaMemcpy(void* to, const void* from, size_t nbytes, cudaMemcpyKind kind);
TORCHEXT_CUDA_API cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t nbytes, cudaMemcpyKind kind, cudaStream_t stream = nullptr);
TORCHEXT_CUDA_API cudaError_t
cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t nbytes);
TORCHEXT_CUDA_API cudaError_t cudaMemcpyPeerAsync(
    void* to,
    int to_device,
    const void* from,
    int from_device,
    size_t nbytes,
    cudaStream_t stream = nullptr);
TORCHEXT_CUDA_API cudaError_t cudaMemcpy2D(
    void* to,
    size_t to_pitch,
    const void* from,
    size_t from_pitch,
    size_t width,
    size_t height,
    cudaMemcpyKind kind);
TORCHEXT_CUDA_API cudaError_t cudaMemcpy2DAsync(
    void* to,
    size_t to_pitch,
    const void* from,
    size_t from_pitch,
    size_t width,
    size_t height,
    cudaMemcpyKind kind,
    cudaStream_t stream = nullptr);
TORCHEXT_CUDA_API cudaError_t cudaMemset(void* data, int value, size_t nbytes);
TORCHEXT_CUDA_API cudaError_t
cudaMemsetAsync(void* data, int value, size_t nbytes, cudaStream_t stream = nullptr);
TORCHEXT_CUDA_API cudaError_t
cudaMemset2D(void* data, size_t pitch, int value, size_t width, size_t height);
TORCHEXT_CUDA_API cudaError_t cudaMemset2DAsync(
    void* data,
    size_t pitch,
    int value,
    size_t width,
    size_t height,
    cudaStream_t stream = nullptr);
TORCHEXT_CUDA_API cudaError_t
cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data);

TORCHEXT_CUDA_API cudaError_t cudaStreamCreate(cudaStream_t* stream);
TORCHEXT_CUDA_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
TORCHEXT_CUDA_API cudaError_t
cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
TORCHEXT_CUDA_API cudaError_t cudaStreamDestroy(cudaStream_t stream);
TORCHEXT_CUDA_API cudaError_t cudaStreamSynchronize(cudaStream_t stream);
TORCHEXT_CUDA_API cudaError_t cudaStreamQuery(cudaStream_t stream);
TORCHEXT_CUDA_API cudaError_t
cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
TORCHEXT_CUDA_API cudaError_t
cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
TORCHEXT_CUDA_API cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id = nullptr);
TORCHEXT_CUDA_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags);
TORCHEXT_CUDA_API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device);
TORCHEXT_CUDA_API cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id);
TORCHEXT_CUDA_API cudaError_t
cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data);
TORCHEXT_CUDA_API cudaError_t cudaStreamAddCallback(
    cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags);
TORCHEXT_CUDA_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority);
TORCHEXT_CUDA_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
TORCHEXT_CUDA_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);

TORCHEXT_CUDA_API cudaError_t cudaEventCreate(cudaEvent_t* event);
TORCHEXT_CUDA_API cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags);
TORCHEXT_CUDA_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
TORCHEXT_CUDA_API cudaError_t cudaEventDestroy(cudaEvent_t event);
TORCHEXT_CUDA_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
TORCHEXT_CUDA_API cudaError_t
cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr, unsigned flags = 0);
TORCHEXT_CUDA_API cudaError_t cudaEventQuery(cudaEvent_t event);
TORCHEXT_CUDA_API cudaError_t cudaEventSynchronize(cudaEvent_t event);
TORCHEXT_CUDA_API cudaError_t
cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);
TORCHEXT_CUDA_API cudaError_t
cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event);
TORCHEXT_CUDA_API cudaError_t
cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle);

} // namespace torchext::cuda_on_host::runtime

using namespace torchext::cuda_on_host::runtime;

namespace torchext::cuda_on_host {

/// `kernel` is its address, or null where only its arguments say which one it is.
TORCHEXT_CUDA_ON_HOST_API cudaError_t
set_attribute(const void* kernel, cudaFuncAttribute attribute, int value);
TORCHEXT_CUDA_ON_HOST_API cudaError_t
attributes_of(cudaFuncAttributes* attributes, const void* kernel);
TORCHEXT_CUDA_ON_HOST_API cudaError_t
occupancy(int* blocks, int block_threads, size_t shared_bytes);
/// Copies to or from a variable of the device; the other of `to` and `from` is null.
TORCHEXT_CUDA_ON_HOST_API cudaError_t copy_symbol(
    void* symbol,
    size_t size,
    void* to,
    const void* from,
    size_t nbytes,
    size_t offset,
    cudaMemcpyKind kind);
/// The size of a block that fills a multiprocessor best, and how many blocks fill the device.
TORCHEXT_CUDA_ON_HOST_API cudaError_t best_block(
    int* grid,
    int* block,
    size_t (*shared_bytes)(const void* data, int block),
    const void* data,
    int most_threads);

template <typename Kernel>
const void* address_of(Kernel kernel) {
  return reinterpret_cast<const void*>(kernel);
}

template <typename... P, size_t... I>
void launch_with(
    void (*kernel)(P...), void** arguments, const Configuration& c, std::index_sequence<I...>) {
  launch("launched by its address", kernel, c)(*static_cast<std::decay_t<P>*>(arguments[I])...);
}

inline Configuration configuration_of(const cudaLaunchConfig_t& c, const char* file, int line) {
  Configuration result(c.gridDim, c.blockDim, c.dynamicSmemBytes, c.stream, file, line);
  for (unsigned i = 0; i < c.numAttrs; ++i) {
    result.is_cooperative =
        result.is_cooperative ||
        (c.attrs[i].id == cudaLaunchAttributeCooperative && c.attrs[i].val.cooperative != 0);
  }
  return result;
}

/// A launch's configuration, with the place that the kernel is launched at.
struct PlacedConfig {
  const cudaLaunchConfig_t* config;
  const char* file;
  int line;

  PlacedConfig(const cudaLaunchConfig_t* config_, TORCHEXT_HERE)
      : config(config_), file(file), line(line) {}
};

template <typename>
constexpr bool kNever = false;

} // namespace torchext::cuda_on_host

template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel kernel, cudaFuncAttribute attribute, int value) {
  using namespace ::torchext::cuda_on_host;
  return set_attribute(address_of(kernel), attribute, value);
}
template <typename Kernel>
cudaError_t cudaFuncSetCacheConfig(Kernel /*kernel*/, cudaFuncCache /*cache*/) {
  return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaFuncSetSharedMemConfig(Kernel /*kernel*/, cudaSharedMemConfig /*config*/) {
  return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel kernel) {
  using namespace ::torchext::cuda_on_host;
  return attributes_of(attributes, address_of(kernel));
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, Kernel /*kernel*/, int block_threads, size_t shared_bytes) {
  return ::torchext::cuda_on_host::occupancy(blocks, block_threads, shared_bytes);
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, Kernel /*kernel*/, int block_threads, size_t shared_bytes, unsigned /*flags*/) {
  return ::torchext::cuda_on_host::occupancy(blocks, block_threads, shared_bytes);
}
template <typename Kernel, typename SharedBytes>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(
    int* grid, int* block, Kernel /*kernel*/, SharedBytes shared_bytes, int most_threads = 0) {
  const auto call = [](const void* data, int threads) -> size_t {
    return (*static_cast<const SharedBytes*>(data))(threads);
  };
  return ::torchext::cuda_on_host::best_block(grid, block, call, &shared_bytes, most_threads);
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSize(
    int* grid, int* block, Kernel kernel, size_t shared_bytes = 0, int most_threads = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
      grid, block, kernel, [=](int /*threads*/) { return shared_bytes; }, most_threads);
}

template <typename... P>
cudaError_t cudaLaunchKernel(
    void (*kernel)(P...),
    dim3 grid,
    dim3 block,
    void** arguments,
    size_t shared_bytes = 0,
    cudaStream_t stream = nullptr,
    TORCHEXT_HERE) {
  ::torchext::cuda_on_host::launch_with(
      kernel,
      arguments,
      {grid, block, shared_bytes, stream, file, line},
      std::index_sequence_for<P...>());
  return cudaSuccess;
}
template <typename... P>
cudaError_t cudaLaunchCooperativeKernel(
    void (*kernel)(P...),
    dim3 grid,
    dim3 block,
    void** arguments,
    size_t shared_bytes = 0,
    cudaStream_t stream = nullptr,
    TORCHEXT_HERE) {
  ::torchext::cuda_on_host::Configuration configuration(
      grid, block, shared_bytes, stream, file, line);
  configuration.is_cooperative = true;
  ::torchext::cuda_on_host::launch_with(
      kernel, arguments, configuration, std::index_sequence_for<P...>());
  return cudaSuccess;
}
template <typename... P, typename... A>
cudaError_t cudaLaunchKernelEx(
    ::torchext::cuda_on_host::PlacedConfig at, void (*kernel)(P...), A&&... arguments) {
  using namespace ::torchext::cuda_on_host;
  launch("launched by its address", kernel, configuration_of(*at.config, at.file, at.line))(
      std::forward<A>(arguments)...);
  return cudaSuccess;
}
template <typename... P>
cudaError_t cudaLaunchKernelExC(
    const cudaLaunchConfig_t* config, void (*kernel)(P...), void** arguments, TORCHEXT_HERE) {
  using namespace ::torchext::cuda_on_host;
  launch_with(
      kernel, arguments, configuration_of(*config, file, line), std::index_sequence_for<P...>());
  return cudaSuccess;
}

// Of a pointer without a type nobody knows the kernel's parameters. (That of a cast of a kernel's name
// has been read: the cast is away.)
#define TORCHEXT_LAUNCH_OF_VOID               \
  static_assert(                              \
      ::torchext::cuda_on_host::kNever<Void>, \
      "on the host a kernel is launched by its name, or by a pointer that has its parameters: void* has none")
#define TORCHEXT_IF_VOID std::enable_if_t<std::is_same_v<std::remove_const_t<Void>, void>, int> = 0
template <typename Void, TORCHEXT_IF_VOID>
cudaError_t cudaLaunchKernel(
    Void* /*kernel*/, dim3, dim3, void**, size_t = 0, cudaStream_t = nullptr) {
  TORCHEXT_LAUNCH_OF_VOID;
}
template <typename Void, TORCHEXT_IF_VOID>
cudaError_t cudaLaunchCooperativeKernel(
    Void* /*kernel*/, dim3, dim3, void**, size_t = 0, cudaStream_t = nullptr) {
  TORCHEXT_LAUNCH_OF_VOID;
}
template <typename Void, TORCHEXT_IF_VOID>
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, Void* /*kernel*/, void**) {
  TORCHEXT_LAUNCH_OF_VOID;
}
#undef TORCHEXT_LAUNCH_OF_VOID
#undef TORCHEXT_IF_VOID

// Variables of a device are the program's here; what is copied must fit into them.
template <typename T>
cudaError_t cudaMemcpyToSymbol(
    T& symbol,
    const void* from,
    size_t nbytes,
    size_t offset = 0,
    cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return ::torchext::cuda_on_host::copy_symbol(
      const_cast<void*>(static_cast<const void*>(&symbol)),
      sizeof(T),
      nullptr,
      from,
      nbytes,
      offset,
      kind);
}
template <typename T>
cudaError_t cudaMemcpyToSymbolAsync(
    T& symbol,
    const void* from,
    size_t nbytes,
    size_t offset = 0,
    cudaMemcpyKind kind = cudaMemcpyHostToDevice,
    cudaStream_t /*stream*/ = nullptr) {
  return cudaMemcpyToSymbol(symbol, from, nbytes, offset, kind);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbol(
    void* to,
    const T& symbol,
    size_t nbytes,
    size_t offset = 0,
    cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return ::torchext::cuda_on_host::copy_symbol(
      const_cast<void*>(static_cast<const void*>(&symbol)),
      sizeof(T),
      to,
      nullptr,
      nbytes,
      offset,
      kind);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbolAsync(
    void* to,
    const T& symbol,
    size_t nbytes,
    size_t offset = 0,
    cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
    cudaStream_t /*stream*/ = nullptr) {
  return cudaMemcpyFromSymbol(to, symbol, nbytes, offset, kind);
}
template <typename T>
cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
  *address = const_cast<void*>(static_cast<const void*>(&symbol));
  return cudaSuccess;
}
template <typename T>
cudaError_t cudaGetSymbolSize(size_t* nbytes, const T& /*symbol*/) {
  *nbytes = sizeof(T);
  return cudaSuccess;
}

template <typename T>
cudaError_t cudaMalloc(T** data, size_t nbytes) {
  return cudaMalloc(reinterpret_cast<void**>(data), nbytes);
}
template <typename T>
cudaError_t cudaMallocAsync(T** data, size_t nbytes, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void**>(data), nbytes, stream);
}
template <typename T>
cudaError_t cudaMallocPitch(T** data, size_t* pitch, size_t width, size_t height) {
  return cudaMallocPitch(reinterpret_cast<void**>(data), pitch, width, height);
}
template <typename T>
cudaError_t cudaMallocHost(T** data, size_t nbytes, unsigned flags = cudaHostAllocDefault) {
  return cudaHostAlloc(reinterpret_cast<void**>(data), nbytes, flags);
}
template <typename T>
cudaError_t cudaHostAlloc(T** data, size_t nbytes, unsigned flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(data), nbytes, flags);
}
template <typename T>
cudaError_t cudaHostGetDevicePointer(T** of_device, void* of_host, unsigned flags) {
  return cudaHostGetDevicePointer(reinterpret_cast<void**>(of_device), of_host, flags);
}
template <typename T>
cudaError_t cudaMallocManaged(T** data, size_t nbytes, unsigned flags = cudaMemAttachGlobal) {
  return cudaMallocManaged(reinterpret_cast<void**>(data), nbytes, flags);
}
