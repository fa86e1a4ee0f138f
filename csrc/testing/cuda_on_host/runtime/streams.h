// SPDX-License-Identifier: BSD-3-Clause
//
// A stream of CUDA's runtime is the number of a stream of the test device; the default one is null.
#pragma once

#include <c10/core/Stream.h>
#include <cuda_runtime_api.h>

namespace torchext::cuda_on_host {

/// Throws where a launch asks for more shared memory than its kernel may have, or for the default
/// stream where torch is on another.
void check_launchable(const Configuration& configuration, const char* kernel);

cudaStream_t cuda_stream(c10::StreamId id, int device);
c10::Stream torch_stream(cudaStream_t stream);

} // namespace torchext::cuda_on_host
