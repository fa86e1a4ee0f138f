// SPDX-License-Identifier: BSD-3-Clause
//
// Of torch's header what libraries use, on the test device's allocator.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>
#include <torchext/cuda_on_host/threads.h>

#include <cstddef>

namespace c10::cuda {

using CaptureId_t = unsigned long long;

} // namespace c10::cuda

namespace c10::cuda::CUDACachingAllocator {

TORCHEXT_CUDA_ON_HOST_API c10::Allocator* get();
TORCHEXT_CUDA_ON_HOST_API void* raw_alloc(size_t nbytes);
TORCHEXT_CUDA_ON_HOST_API void raw_delete(void* data);

inline void* raw_alloc_with_stream(size_t nbytes, cudaStream_t /*stream*/) {
  return raw_alloc(nbytes);
}
// What is put into a stream is done when the call returns.
inline void recordStream(const c10::DataPtr& /*data*/, CUDAStream /*stream*/) {}
inline void emptyCache() {}

} // namespace c10::cuda::CUDACachingAllocator
