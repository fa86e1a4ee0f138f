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
  cudaErrorInvalidDevice = 101,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorPeerAccessAlreadyEnabled = 704,
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
constexpr unsigned cudaHostAllocMapped = 2;
constexpr unsigned cudaMemAttachGlobal = 1;

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
TORCHEXT_CUDA_API cudaError_t cudaMemGetInfo(size_t* left, size_t* total);
TORCHEXT_CUDA_API cudaError_t cudaDriverGetVersion(int* version);
TORCHEXT_CUDA_API cudaError_t cudaRuntimeGetVersion(int* version);

TORCHEXT_CUDA_API cudaError_t cudaMalloc(void** data, size_t nbytes);
TORCHEXT_CUDA_API cudaError_t cudaMallocAsync(void** data, size_t nbytes, cudaStream_t stream);
TORCHEXT_CUDA_API cudaError_t cudaFree(void* data);
TORCHEXT_CUDA_API cudaError_t cudaFreeAsync(void* data, cudaStream_t stream);
TORCHEXT_CUDA_API cudaError_t cudaMallocHost(void** data, size_t nbytes);
TORCHEXT_CUDA_API cudaError_t cudaHostAlloc(void** data, size_t nbytes, unsigned flags);
TORCHEXT_CUDA_API cudaError_t cudaFreeHost(void* data);
TORCHEXT_CUDA_API cudaError_t
cudaMemcpy(void* to, const void* from, size_t nbytes, cudaMemcpyKind kind);
TORCHEXT_CUDA_API cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t nbytes, cudaMemcpyKind kind, cudaStream_t stream);
TORCHEXT_CUDA_API cudaError_t cudaMemcpy2DAsync(
    void* to,
    size_t to_pitch,
    const void* from,
    size_t from_pitch,
    size_t width,
    size_t height,
    cudaMemcpyKind kind,
    cudaStream_t stream);
TORCHEXT_CUDA_API cudaError_t cudaMemset(void* data, int value, size_t nbytes);
TORCHEXT_CUDA_API cudaError_t
cudaMemsetAsync(void* data, int value, size_t nbytes, cudaStream_t stream);
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
cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
TORCHEXT_CUDA_API cudaError_t
cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
TORCHEXT_CUDA_API cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id = nullptr);
TORCHEXT_CUDA_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority);
TORCHEXT_CUDA_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
TORCHEXT_CUDA_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);

TORCHEXT_CUDA_API cudaError_t cudaEventCreate(cudaEvent_t* event);
TORCHEXT_CUDA_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
TORCHEXT_CUDA_API cudaError_t cudaEventDestroy(cudaEvent_t event);
TORCHEXT_CUDA_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
TORCHEXT_CUDA_API cudaError_t
cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags);
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

TORCHEXT_CUDA_ON_HOST_API cudaError_t set_attribute(cudaFuncAttribute attribute, int value);
TORCHEXT_CUDA_ON_HOST_API cudaError_t attributes_of_any(cudaFuncAttributes* attributes);
TORCHEXT_CUDA_ON_HOST_API cudaError_t
occupancy(int* blocks, int block_threads, size_t shared_bytes);

template <typename... P, size_t... I>
void launch_with(
    void (*kernel)(P...), void** arguments, const Configuration& c, std::index_sequence<I...>) {
  launch(
      "launched by its address", [kernel](const auto&... a) { kernel(a...); }, c)(
      *static_cast<std::decay_t<P>*>(arguments[I])...);
}

} // namespace torchext::cuda_on_host

template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel /*kernel*/, cudaFuncAttribute attribute, int value) {
  return ::torchext::cuda_on_host::set_attribute(attribute, value);
}
template <typename Kernel>
cudaError_t cudaFuncSetCacheConfig(Kernel /*kernel*/, cudaFuncCache /*cache*/) {
  return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel /*kernel*/) {
  return ::torchext::cuda_on_host::attributes_of_any(attributes);
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, Kernel /*kernel*/, int block_threads, size_t shared_bytes) {
  return ::torchext::cuda_on_host::occupancy(blocks, block_threads, shared_bytes);
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
    const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
  ::torchext::cuda_on_host::Configuration configuration(
      config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    configuration.is_cooperative =
        configuration.is_cooperative || (config->attrs[i].id == cudaLaunchAttributeCooperative &&
                                         config->attrs[i].val.cooperative != 0);
  }
  ::torchext::cuda_on_host::launch(
      "launched by its address", [kernel](const auto&... a) { kernel(a...); }, configuration)(
      std::forward<A>(arguments)...);
  return cudaSuccess;
}

// Variables of a device are the program's here.
template <typename T>
cudaError_t cudaMemcpyToSymbol(
    T& symbol,
    const void* from,
    size_t nbytes,
    size_t offset = 0,
    cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return cudaMemcpy(reinterpret_cast<char*>(&symbol) + offset, from, nbytes, kind);
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
  return cudaMemcpy(to, reinterpret_cast<const char*>(&symbol) + offset, nbytes, kind);
}
template <typename T>
cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
  *address = const_cast<void*>(static_cast<const void*>(&symbol));
  return cudaSuccess;
}
template <typename T>
cudaError_t cudaMalloc(T** data, size_t nbytes) {
  return cudaMalloc(reinterpret_cast<void**>(data), nbytes);
}
