// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels whose threads wait for each other without a barrier of their own, which CUDA finishes since
// every thread gets on at some time; and the same where nobody comes. y begins as zeros.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <cooperative_groups.h>
#include <cuda_kernels/kernels.h>

#include <map>
#include <string>

namespace {

__device__ int load(const int* at) {
  return *static_cast<const volatile int*>(at);
}

// -- others come

__global__ void last_lane(int* y, int /*n*/) {
  if (threadIdx.x == 31) {
    *static_cast<volatile int*>(y) = 1;
  } else {
    while (load(y) == 0) {
    }
  }
}

__global__ void other_warp(int* y, int /*n*/) {
  if (threadIdx.x < 32) {
    while (load(y) == 0) {
    }
  } else if (threadIdx.x == 32) {
    atomicExch(y, 1);
  }
}

__global__ void vote_of_a_warp(int* y, int /*n*/) {
  if (threadIdx.x < 32) {
    while (!__all_sync(0xffffffffu, load(y))) {
    }
  } else if (threadIdx.x == 32) {
    *static_cast<volatile int*>(y) = 1;
  }
}

__global__ void vote_of_a_block(int* y, int /*n*/) {
  if (blockIdx.x == 0) {
    while (!__syncthreads_or(load(y))) {
    }
  } else if (threadIdx.x == 0) {
    *static_cast<volatile int*>(y) = 1;
  }
}

// A barrier of the grid, of which each thread counts.
__global__ void barrier_by_all(int* y, int /*n*/) {
  atomicAdd(y, 1);
  while (static_cast<unsigned>(atomicAdd(y, 0)) < gridDim.x * blockDim.x) {
  }
}

// Each warp waits for the one before it, and the first for nobody.
__global__ void chain_of_warps(int* y, int /*n*/) {
  const unsigned warp = threadIdx.x / 32;
  while (warp > 0 && load(y) < static_cast<int>(32 * warp)) {
  }
  __syncwarp();
  atomicAdd(y, 1);
}

// Each block waits for those before it, every lane for another one.
__global__ void look_back(int* y, int /*n*/) {
  if (threadIdx.x == 0) {
    atomicExch(y + 1 + blockIdx.x, 1);
  }
  for (unsigned block = threadIdx.x; block < blockIdx.x; block += blockDim.x) {
    while (load(y + 1 + block) == 0) {
    }
    atomicAdd(y, 1);
  }
}

// Two warps take turns.
__global__ void turns(int* y, int n) {
  const int own = static_cast<int>(threadIdx.x / 32);
  if (threadIdx.x % 32 != 0) {
    return;
  }
  for (int i = own; i < n; i += 2) {
    while (load(y) != i) {
      __nanosleep(20);
    }
    *static_cast<volatile int*>(y) = i + 1;
  }
}

__global__ void lock_of_a_lane(int* y, int /*n*/) {
  bool done = false;
  while (!done) {
    if (atomicCAS(y, 0, 1) == 0) {
      y[1] += __popc(__activemask());
      y[2] += 1;
      __threadfence();
      atomicExch(y, 0);
      done = true;
    }
  }
}

// -- nobody comes

__global__ void barrier_of_a_block(int* y, int /*n*/) {
  while (load(y) == 0) {
    __syncthreads(); // here
  }
}

__global__ void barrier_of_a_warp(int* y, int /*n*/) {
  while (load(y) == 0) {
    __syncwarp(); // here
  }
}

__global__ void vote_for_nothing(int* y, int /*n*/) {
  while (__any_sync(0xffffffffu, load(y) == 0)) { // here
  }
}

__global__ void active_for_nothing(int* y, int /*n*/) {
  while (load(y) == 0) {
    y[1] = static_cast<int>(__activemask()); // here
  }
}

// A distance that never gets less than none.
__global__ void shuffles(int* y, int /*n*/) {
  int value = static_cast<int>(threadIdx.x);
  for (int distance = 16; distance >= 0; distance >>= 1) {
    value += __shfl_xor_sync(0xffffffffu, value, distance); // here
  }
  y[threadIdx.x] = value;
}

__global__ void barrier_of_a_grid(int* y, int /*n*/) {
  while (load(y) == 0) {
    cooperative_groups::this_grid().sync(); // here
  }
}

} // namespace

at::Tensor cuda_kernels::native::waiting_cuda(
    c10::string_view name, const at::Tensor& x, int64_t n) {
  static const std::map<std::string, void (*)(int*, int)> kernels{
      {"last_lane", last_lane},
      {"other_warp", other_warp},
      {"vote_of_a_warp", vote_of_a_warp},
      {"vote_of_a_block", vote_of_a_block},
      {"barrier_by_all", barrier_by_all},
      {"chain_of_warps", chain_of_warps},
      {"look_back", look_back},
      {"turns", turns},
      {"lock_of_a_lane", lock_of_a_lane},
      {"barrier_of_a_block", barrier_of_a_block},
      {"barrier_of_a_warp", barrier_of_a_warp},
      {"vote_for_nothing", vote_for_nothing},
      {"active_for_nothing", active_for_nothing},
      {"shuffles", shuffles},
  };
  const at::Tensor y = at::zeros({1024}, x.options().dtype(at::kInt));
  int* to = y.mutable_data_ptr<int>();
  const int count = static_cast<int>(n);
  const auto stream = at::cuda::getCurrentCUDAStream();
  const auto blocks = static_cast<unsigned>(x.size(0));
  const auto threads = static_cast<unsigned>(x.size(1));
  if (name == "barrier_of_a_grid") {
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = dim3(blocks);
    configuration.blockDim = dim3(threads);
    configuration.stream = stream;
    cudaLaunchAttribute cooperative[1];
    cooperative[0].id = cudaLaunchAttributeCooperative;
    cooperative[0].val.cooperative = 1;
    configuration.attrs = cooperative;
    configuration.numAttrs = 1;
    C10_CUDA_CHECK(cudaLaunchKernelEx(&configuration, barrier_of_a_grid, to, count)); // here
  } else {
    kernels.at(std::string(name))<<<blocks, threads, 0, stream>>>(to, count);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
