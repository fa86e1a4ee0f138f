// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels with one mistake each. The comment `// here` stands where the error has to point.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_kernels/kernels.h>

#include <cassert>
#include <map>
#include <stdexcept>
#include <string>

namespace {

constexpr int kThreads = 64;

__global__ void missing_barrier(const float* x, float* y) {
  __shared__ float tile[kThreads];
  tile[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = tile[kThreads - 1 - threadIdx.x]; // here
}

__global__ void barrier_missing_before_reuse(const float* x, float* y) {
  __shared__ float tile[kThreads];
  for (int i = 0; i < 2; ++i) {
    tile[threadIdx.x] = x[threadIdx.x] + i; // here
    __syncthreads();
    y[threadIdx.x] = tile[kThreads - 1 - threadIdx.x];
  }
}

__global__ void missing_warp_barrier(const float* x, float* y) {
  __shared__ float tile[32];
  if (threadIdx.x < 32) {
    tile[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = tile[31 - threadIdx.x]; // here
  }
}

__global__ void written_by_two(const float* x, float* y) {
  __shared__ float value;
  value = x[threadIdx.x]; // here
  __syncthreads();
  y[threadIdx.x] = value;
}

__global__ void divergent_barrier(const float* x, float* y) {
  if (threadIdx.x < 40) {
    __syncthreads(); // here
  }
  y[threadIdx.x] = x[threadIdx.x];
}

__global__ void different_barriers(const float* x, float* y) {
  if (threadIdx.x < 32) {
    y[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
  } else {
    y[threadIdx.x] = -x[threadIdx.x];
    __syncthreads(); // here
  }
}

__global__ void shuffle_from_nobody(const float* x, float* y) {
  float value = x[threadIdx.x];
  if (threadIdx.x < 16) {
    value += __shfl_down_sync(0xffffu, value, 8); // here
  }
  y[threadIdx.x] = value;
}

__global__ void mask_of_others(const float* x, float* y) {
  float value = x[threadIdx.x];
  if (threadIdx.x < 16) {
    value += __shfl_xor_sync(0xff00u, value, 1); // here
  }
  y[threadIdx.x] = value;
}

__global__ void lanes_that_do_not_come(const float* x, float* y) {
  if (threadIdx.x % 32 < 16) {
    __syncwarp(); // here
  } else {
    __syncthreads();
  }
  y[threadIdx.x] = x[threadIdx.x];
}

// No mistake: lane 3 waits for lane 2, which ends, and then meets lanes 0 and 1.
__global__ void masks_that_overlap(const float* x, float* y) {
  const unsigned lane = threadIdx.x;
  if (lane == 0) {
    __syncwarp(0x0bu);
  } else if (lane == 3) {
    __syncwarp(0x0cu);
    __syncwarp(0x0bu);
  } else if (lane == 1) {
    __syncwarp(0x0bu);
  }
  if (lane < 64) {
    y[lane] = x[lane];
  }
}

__global__ void write_behind_the_end(const float* x, float* y, int n) {
  if (threadIdx.x <= n) {
    y[threadIdx.x] = x[0]; // here
  }
}

__global__ void read_before_the_begin(const float* x, float* y) {
  y[threadIdx.x] = x[static_cast<int>(threadIdx.x) - 1]; // here
}

__global__ void shared_out_of_bounds(const float* x, float* y) {
  __shared__ float tile[kThreads];
  tile[threadIdx.x + 1] = x[threadIdx.x]; // here
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x];
}

__global__ void dynamic_shared_out_of_bounds(const float* x, float* y) {
  extern __shared__ float dynamic[];
  dynamic[threadIdx.x] = x[threadIdx.x]; // here
  __syncthreads();
  y[threadIdx.x] = dynamic[threadIdx.x];
}

__global__ void shared_never_written(const float* /*x*/, float* y) {
  __shared__ float tile[kThreads];
  y[threadIdx.x] = tile[threadIdx.x]; // here
}

__global__ void misaligned(const float* x, float* y) {
  const float4 four = *reinterpret_cast<const float4*>(x + 1); // here
  y[threadIdx.x] = four.x + four.y + four.z + four.w;
}

__global__ void local_out_of_bounds(const float* x, float* y) {
  float kept[4] = {x[0], x[1], x[2], x[3]};
  y[threadIdx.x] = kept[threadIdx.x % 5]; // here
}

__global__ void memory_of_the_host(const float* x, float* y) {
  y[threadIdx.x] = *x; // here
}

__global__ void null_pointer(const float* x, float* y) {
  const float* nothing = x == nullptr ? y : nullptr;
  y[threadIdx.x] = *nothing; // here
}

__global__ void endless_loop(const float* x, float* y) {
  while (*x < 1e30f || threadIdx.x > 2000) { // here
    y[threadIdx.x] = *x;
  }
}

__global__ void endless_loop_without_memory(const float* x, float* y) {
  unsigned i = threadIdx.x;
  const unsigned end = *x > 1e30f ? 1 : 5000;
  for (; i != end; i = (i + 1) % 1000) { // here
  }
  y[threadIdx.x] = static_cast<float>(i);
}

__global__ void endless_while_without_code(const float* x, float* y) {
  y[threadIdx.x] = *x;
  while (true) { // here
  }
}

__global__ void endless_for_without_code(const float* x, float* y) {
  y[threadIdx.x] = *x;
  for (;;) // here
    ;
}

__global__ void endless_goto_without_code(const float* x, float* y) {
  y[threadIdx.x] = *x;
again:
  goto again; // here
}

__global__ void endless_wait_without_code(const float* x, float* y) {
  const float first = *x;
  while (first < 1e30f) { // here
  }
  y[threadIdx.x] = first;
}

__device__ float recursive(const float* x, int depth) { // here
  return *x > 1e30f ? 0.0f : 1.0f + recursive(x, depth + 1) * static_cast<float>(depth);
}

__global__ void endless_recursion(const float* x, float* y) {
  y[threadIdx.x] = recursive(x, 0);
}

__global__ void failed_assertion(const float* x, float* y) {
  assert(threadIdx.x < 33); // here
  y[threadIdx.x] = x[threadIdx.x];
}

__global__ void failed_kernel_assertion(const float* x, float* y) {
  CUDA_KERNEL_ASSERT(threadIdx.x < 33); // here
  y[threadIdx.x] = x[threadIdx.x];
}

__global__ void traps(const float* x, float* y) {
  if (threadIdx.x == 5) {
    __trap(); // here
  }
  y[threadIdx.x] = x[threadIdx.x];
}

__global__ void throws(const float* x, float* y) {
  if (threadIdx.x == 5) {
    throw std::runtime_error("never");
  }
  y[threadIdx.x] = x[threadIdx.x];
}

__global__ void has_assembly(const float* x, float* y) {
  float value = x[threadIdx.x];
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(value)); // here
  y[threadIdx.x] = value;
}

__global__ void divides_by_zero(const float* x, float* y) {
  y[threadIdx.x] = 100 / (static_cast<int>(threadIdx.x) - static_cast<int>(x[0] * 0)); // here
}

// The second number of a pair.
__global__ void second_written_by_two(const float* /*x*/, float* y) {
  __shared__ double2 pair;
  pair = make_double2(1, threadIdx.x); // here
  __syncthreads();
  y[threadIdx.x] = static_cast<float>(pair.y);
}

__device__ __noinline__ float element(const float* values, unsigned i) {
  return values[i]; // here
}

__global__ void far_beyond_a_variable(const float* /*x*/, float* y) {
  __shared__ float few[16];
  __shared__ float others[64];
  few[threadIdx.x % 16] = 1;
  others[threadIdx.x] = 2;
  __syncthreads();
  y[threadIdx.x] = element(few, 32 + threadIdx.x) + others[0];
}

__global__ void different_shuffles(const float* x, float* y) {
  const float value = x[threadIdx.x];
  y[threadIdx.x] = threadIdx.x % 32 < 16 ? __shfl_up_sync(0xffffffffu, value, 1) // here
                                         : __shfl_down_sync(0xffffffffu, value, 1);
}

__global__ void misaligned_load(const float* x, float* y) {
  y[threadIdx.x] = __ldg(reinterpret_cast<const float4*>(x + 1)).x; // here
}

// Half of the last word is there.
__global__ void reads_across_the_end(const float* x, float* y) {
  const auto* pairs = reinterpret_cast<const short2*>(x);
  const short2 pair = pairs[threadIdx.x]; // here
  y[threadIdx.x] = static_cast<float>(pair.x + pair.y);
}

__global__ void number_of_the_host(const float* x, float* y) {
  y[threadIdx.x] = x[0]; // here
}

__global__ void counts_without_atomics(const float* /*x*/, float* y) {
  y[0] += 1;
}

__global__ void plain(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x];
}

using Kernel = void (*)(const float*, float*);

} // namespace

at::Tensor cuda_kernels::native::mistake_cuda(
    c10::string_view name, const at::Tensor& x, int64_t n) {
  static const std::map<std::string, Kernel> kernels = {
      {"missing_barrier", missing_barrier},
      {"barrier_missing_before_reuse", barrier_missing_before_reuse},
      {"missing_warp_barrier", missing_warp_barrier},
      {"written_by_two", written_by_two},
      {"divergent_barrier", divergent_barrier},
      {"different_barriers", different_barriers},
      {"shuffle_from_nobody", shuffle_from_nobody},
      {"mask_of_others", mask_of_others},
      {"lanes_that_do_not_come", lanes_that_do_not_come},
      {"read_before_the_begin", read_before_the_begin},
      {"shared_out_of_bounds", shared_out_of_bounds},
      {"shared_never_written", shared_never_written},
      {"misaligned", misaligned},
      {"local_out_of_bounds", local_out_of_bounds},
      {"null_pointer", null_pointer},
      {"endless_loop", endless_loop},
      {"endless_loop_without_memory", endless_loop_without_memory},
      {"endless_while_without_code", endless_while_without_code},
      {"endless_for_without_code", endless_for_without_code},
      {"endless_goto_without_code", endless_goto_without_code},
      {"endless_wait_without_code", endless_wait_without_code},
      {"endless_recursion", endless_recursion},
      {"failed_assertion", failed_assertion},
      {"failed_kernel_assertion", failed_kernel_assertion},
      {"traps", traps},
      {"throws", throws},
      {"has_assembly", has_assembly},
      {"divides_by_zero", divides_by_zero},
      {"second_written_by_two", second_written_by_two},
      {"far_beyond_a_variable", far_beyond_a_variable},
      {"different_shuffles", different_shuffles},
      {"misaligned_load", misaligned_load},
  };
  at::Tensor y = at::empty_like(x);
  const float* from = x.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  const auto stream = at::cuda::getCurrentCUDAStream();
  const std::string wanted(name);
  if (const auto found = kernels.find(wanted); found != kernels.end()) {
    found->second<<<2, kThreads, 0, stream>>>(from, to);
  } else if (wanted == "write_behind_the_end") {
    write_behind_the_end<<<1, 2 * kThreads, 0, stream>>>(from, to, static_cast<int>(x.numel()));
  } else if (wanted == "dynamic_shared_out_of_bounds") {
    dynamic_shared_out_of_bounds<<<1, kThreads, 60 * sizeof(float), stream>>>(from, to);
  } else if (wanted == "memory_of_the_host") {
    const auto on_heap = std::make_unique<float>(1.0f);
    memory_of_the_host<<<1, 1, 0, stream>>>(on_heap.get(), to);
  } else if (wanted == "number_of_the_host") {
    const float number = 2;
    number_of_the_host<<<1, 1, 0, stream>>>(&number, to);
  } else if (wanted == "reads_across_the_end") {
    const at::Tensor odd = at::empty({127}, x.options().dtype(at::kShort)); // 254 bytes
    reads_across_the_end<<<1, kThreads, 0, stream>>>(
        static_cast<const float*>(odd.const_data_ptr()), to);
  } else if (wanted == "counts without atomics") {
    C10_CUDA_CHECK(cudaMemsetAsync(to, 0, sizeof(float), stream));
    counts_without_atomics<<<2, kThreads, 0, stream>>>(from, to);
  } else if (wanted == "more blocks than run at once") {
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = dim3(300);
    configuration.blockDim = dim3(1024);
    configuration.stream = stream;
    cudaLaunchAttribute cooperative[1];
    cooperative[0].id = cudaLaunchAttributeCooperative;
    cooperative[0].val.cooperative = 1;
    configuration.attrs = cooperative;
    configuration.numAttrs = 1;
    C10_CUDA_CHECK(cudaLaunchKernelEx(&configuration, plain, from, to));
  } else if (wanted == "masks that overlap") {
    masks_that_overlap<<<1, 32, 0, stream>>>(from, to);
  } else if (wanted == "no_blocks") {
    plain<<<0, 64, 0, stream>>>(from, to); // here
  } else if (wanted == "too_many_threads") {
    plain<<<1, 2048, 0, stream>>>(from, to); // here
  } else if (wanted == "too_many_in_z") {
    plain<<<1, dim3(1, 1, 128), 0, stream>>>(from, to); // here
  } else if (wanted == "too_large_a_grid") {
    plain<<<dim3(1, 70000), 64, 0, stream>>>(from, to); // here
  } else if (wanted == "too_much_shared_memory") {
    plain<<<1, 64, 300 << 10, stream>>>(from, to); // here
  } else if (wanted == "much_shared_memory") {
    plain<<<1, 64, 200 << 10, stream>>>(from, to); // here
  } else if (wanted == "as much as was asked for") {
    C10_CUDA_CHECK(cudaFuncSetAttribute(
        plain, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(n)));
    plain<<<1, 64, static_cast<size_t>(n), stream>>>(from, to);
  } else if (wanted == "the_default_stream") {
    plain<<<1, 64>>>(from, to); // here
  } else {
    TORCH_CHECK(false, "there is no kernel ", wanted);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
