// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels by what libraries give their authors: cooperative groups, CUB, cuRAND, and ATen's headers.
#include <ATen/Dispatch.h>
#include <ATen/cuda/Atomic.cuh>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraphsUtils.cuh>
#include <ATen/cuda/detail/KernelUtils.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/cuda/KernelUtils.cuh>
#include <ATen/native/cuda/Loops.cuh>
#include <ATen/native/cuda/Reduce.cuh>
#include <ATen/native/cuda/block_reduce.cuh>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/cub.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_kernels/kernels.h>
#include <curand_kernel.h>

#include <string>

namespace cg = cooperative_groups;

namespace {

constexpr int kThreads = 128;

// Sums of tiles of eight threads, in each of them.
__global__ void tiles(const float* x, float* y, int n) {
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float sum = cg::reduce(tile, i < n ? x[i] : 0.0f, cg::plus<float>());
  float steps = i < n ? x[i] : 0.0f;
  for (int delta = tile.size() / 2; delta > 0; delta /= 2) {
    steps += tile.shfl_xor(steps, delta);
  }
  if (i < n) {
    y[i] = fabsf(steps - sum) < 1e-3f ? sum : NAN;
  }
}

// The number of each positive element, as its lane group counts them.
__global__ void coalesced(const float* x, float* y, int n) {
  const int i = threadIdx.x;
  if (i < n && x[i] > 0) {
    const auto active = cg::coalesced_threads();
    y[i] = active.thread_rank() + 1;
    active.sync();
  }
}

// The sum over the grid, which waits for all of its blocks.
__global__ void grid_sum(const float* x, float* y, int n) {
  const auto grid = cg::this_grid();
  const auto i = static_cast<int>(grid.thread_rank());
  if (i < n) {
    y[i] = x[i];
  }
  grid.sync();
  float sum = 0;
  for (int j = 0; j < n; ++j) {
    sum += y[j];
  }
  grid.sync();
  if (i < n) {
    y[i] = sum;
  }
}

__global__ void cub_sum(const float* x, float* y, int n) {
  using Reduce = cub::BlockReduce<float, kThreads>;
  using Scan = cub::BlockScan<float, kThreads>;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Scan::TempStorage scan;
  } storage;
  __shared__ float total;
  const int i = threadIdx.x;
  const float own = i < n ? x[i] : 0.0f;
  const float sum = Reduce(storage.reduce).Sum(own);
  if (i == 0) {
    total = sum;
  }
  __syncthreads();
  float until = 0;
  Scan(storage.scan).InclusiveSum(own, until);
  if (i < n) {
    y[i] = until + total;
  }
}

__global__ void philox(float* y, int n, uint64_t seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, i, 0, &state);
  if (i < n) {
    y[i] = curand_uniform(&state);
  }
}

__global__ void dropout(float* y, int n, at::PhiloxCudaState given) {
  const auto [seed, offset] = at::cuda::philox::unpack(given);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, i, offset, &state);
  if (i < n) {
    y[i] = curand_uniform4(&state).x < 0.25f ? 0.0f : 1.0f;
  }
}

// The words of counter and key zero are known (Random123's kat_vectors).
__global__ void known_words(float* y) {
  curandStatePhilox4_32_10_t state;
  curand_init(0, 0, 0, &state);
  const uint4 words = curand4(&state);
  y[0] = words.x == 0x6627e8d5u && words.y == 0xe169c58du && words.z == 0xbc57ac4cu &&
         words.w == 0x9b00dbd8u;
}

template <typename T>
__global__ void added_up(const float* x, T* sums, int n) {
  CUDA_KERNEL_LOOP(i, n) {
    gpuAtomicAdd(sums + i % 3, static_cast<T>(x[i]));
  }
}

template <typename T>
__global__ void read_back(const T* sums, float* y) {
  y[threadIdx.x] = static_cast<float>(sums[threadIdx.x]);
}

__global__ void aten_block_sum(const float* x, float* y, int n) {
  __shared__ float shared[C10_WARP_SIZE];
  const float own = threadIdx.x < n ? x[threadIdx.x] : 0.0f;
  const float sum = at::native::cuda_utils::BlockReduceSum(own, shared);
  if (threadIdx.x == 0) {
    y[0] = sum;
  }
}

// Through the types of 16 and 8 bits and back, wherever they have the value.
__global__ void narrow(const float* x, float* y, int n) {
  const int i = threadIdx.x;
  if (i < n) {
    const __half h = __float2half(x[i]);
    const __nv_bfloat16 b = __float2bfloat16(x[i]);
    const __half2 two = __hadd2(__half2half2(h), __floats2half2_rn(1.0f, 2.0f));
    const at::Half torchs = h;
    const __nv_fp8_e4m3 small(x[i]);
    const bool is_same =
        __half2float(h) == static_cast<float>(at::Half(x[i])) &&
        __bfloat162float(b) == static_cast<float>(at::BFloat16(x[i])) &&
        __low2float(two) == static_cast<float>(at::Half(static_cast<float>(torchs) + 1)) &&
        static_cast<float>(small) == static_cast<float>(c10::Float8_e4m3fn(x[i]));
    y[i] = is_same ? 1.0f : 0.0f;
  }
}

} // namespace

at::Tensor cuda_kernels::native::libraries_cuda(
    c10::string_view name, const at::Tensor& x, int64_t given) {
  at::Tensor y = at::zeros_like(x);
  const float* from = x.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  int n = static_cast<int>(x.numel());
  const auto stream = at::cuda::getCurrentCUDAStream();
  const int blocks = (n + kThreads - 1) / kThreads;
  const std::string wanted(name);
  if (wanted == "tiles") {
    tiles<<<blocks, kThreads, 0, stream>>>(from, to, n);
  } else if (wanted == "coalesced") {
    coalesced<<<1, 32, 0, stream>>>(from, to, n);
  } else if (wanted == "grid_sum") {
    void* arguments[] = {&from, &to, &n};
    C10_CUDA_CHECK(
        cudaLaunchCooperativeKernel(grid_sum, dim3(blocks), dim3(kThreads), arguments, 0, stream));
  } else if (wanted == "grid_sum of a plain launch") {
    grid_sum<<<blocks, kThreads, 0, stream>>>(from, to, n);
  } else if (wanted == "cub_sum") {
    cub_sum<<<1, kThreads, 0, stream>>>(from, to, n);
  } else if (wanted == "philox") {
    philox<<<blocks, kThreads, 0, stream>>>(to, n, static_cast<uint64_t>(given));
  } else if (wanted == "dropout") {
    auto* generator = at::get_generator_or_default<at::CUDAGeneratorImpl>(
        std::nullopt, at::cuda::detail::getDefaultCUDAGenerator());
    at::PhiloxCudaState state;
    {
      const std::lock_guard<std::mutex> lock(generator->mutex_);
      state = generator->philox_cuda_state(4);
    }
    dropout<<<blocks, kThreads, 0, stream>>>(to, n, state);
  } else if (wanted == "known_words") {
    known_words<<<1, 1, 0, stream>>>(to);
  } else if (wanted == "atomics") {
    AT_DISPATCH_ALL_TYPES_AND2(
        at::kHalf, at::kBFloat16, static_cast<at::ScalarType>(given), "atomics", [&] {
          const at::Tensor sums =
              at::zeros({3}, x.options().dtype(static_cast<at::ScalarType>(given)));
          added_up<<<blocks, kThreads, 0, stream>>>(from, sums.mutable_data_ptr<scalar_t>(), n);
          read_back<<<1, 3, 0, stream>>>(sums.const_data_ptr<scalar_t>(), to);
        });
  } else if (wanted == "aten_block_sum") {
    aten_block_sum<<<1, 256, 0, stream>>>(from, to, n);
  } else if (wanted == "narrow") {
    narrow<<<1, kThreads, 0, stream>>>(from, to, n);
  } else if (wanted == "gpu_kernel") {
    at::TensorIterator iter = at::TensorIterator::unary_op(y, x);
    const auto factor = static_cast<float>(given);
    at::native::gpu_kernel(iter, [factor] GPU_LAMBDA(float a) -> float { return a * factor; });
  } else if (wanted == "gpu_reduce_kernel") {
    y = at::empty({x.size(0)}, x.options());
    at::TensorIterator iter =
        at::native::make_reduction("sum", y, x, at::IntArrayRef{1}, /*keepdim=*/false, at::kFloat);
    at::native::gpu_reduce_kernel<float, float>(
        iter, at::native::func_wrapper<float>([] GPU_LAMBDA(float a, float b) -> float {
          return a + b;
        }));
  } else if (wanted == "memory of its own") {
    void* own = c10::cuda::CUDACachingAllocator::raw_alloc(x.nbytes());
    C10_CUDA_CHECK(cudaMemcpyAsync(own, from, x.nbytes(), cudaMemcpyDeviceToDevice, stream));
    C10_CUDA_CHECK(cudaMemcpyAsync(to, own, x.nbytes(), cudaMemcpyDeviceToDevice, stream));
    c10::cuda::CUDACachingAllocator::raw_delete(own);
  } else {
    TORCH_CHECK(false, "there is no kernel ", wanted);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
