// SPDX-License-Identifier: BSD-3-Clause
//
// Of torch's header what kernels draw their numbers by. The generator is the test device's own.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/cuda/PhiloxCudaState.h>
#include <c10/core/GeneratorImpl.h>
#include <torchext/cuda_on_host/threads.h>

#include <cstdint>
#include <utility>

namespace at {

/// What a generator of the test device is taken for: nobody makes one.
struct CUDAGeneratorImpl : c10::GeneratorImpl {
  static c10::DeviceType device_type() {
    return c10::kPrivateUse1;
  }

  /// A new seed for each call, which numbers of one kernel start from; the generator goes on by one.
  TORCHEXT_CUDA_ON_HOST_API PhiloxCudaState philox_cuda_state(uint64_t increment);
  TORCHEXT_CUDA_ON_HOST_API std::pair<uint64_t, uint64_t> philox_engine_inputs(uint64_t increment);
};

namespace cuda::detail {

TORCHEXT_CUDA_ON_HOST_API const Generator& getDefaultCUDAGenerator(c10::DeviceIndex index = -1);

} // namespace cuda::detail
} // namespace at
