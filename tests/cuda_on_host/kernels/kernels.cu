// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels of what the language has, each of which takes a tensor to a result that is known.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/zeros_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_kernels/kernels.h>

#include <map>
#include <string>

namespace {

// The sum of all elements, in each of them: shuffles, votes and shared memory, over a block.
__global__ void block_sum(const float* x, float* y, int n) {
  __shared__ float sums[32];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    sum += x[i];
  }
  for (int delta = 16; delta > 0; delta /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, delta);
  }
  if (threadIdx.x % 32 == 0) {
    sums[threadIdx.x / 32] = sum;
  }
  __syncthreads();
  float total = 0;
  for (unsigned i = 0; i < blockDim.x / 32; ++i) {
    total += sums[i];
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    y[i] = total;
  }
}

// A transposed copy by tiles: two dimensions of threads and of blocks, dynamic shared memory.
__global__ void transposed(const float* x, float* y, int n) {
  extern __shared__ float tile[];
  const int columns = blockDim.x + 1;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && j < n) {
    tile[threadIdx.y * columns + threadIdx.x] = x[i * n + j];
  }
  __syncthreads();
  i = blockIdx.x * blockDim.x + threadIdx.y;
  j = blockIdx.y * blockDim.y + threadIdx.x;
  if (i < n && j < n) {
    y[i * n + j] = tile[threadIdx.x * columns + threadIdx.y];
  }
}

// How many elements are positive, by atomics of one lane of those that are.
__global__ void positive(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 0) {
    const unsigned active = __activemask();
    if (threadIdx.x % 32 == __ffs(active) - 1) {
      atomicAdd(y, static_cast<float>(__popc(active)));
    }
  }
}

// The same by barriers that count.
__global__ void positive_of_block(const float* x, float* y, int n) {
  const int i = threadIdx.x;
  const int count = __syncthreads_count(i < n && x[i] > 0);
  const int all = __syncthreads_and(i < n && x[i] > 0);
  const int any = __syncthreads_or(i < n && x[i] > 0);
  if (i == 0) {
    y[0] = count;
    y[1] = all;
    y[2] = any;
  }
}

__global__ void votes(const float* x, float* y, int n) {
  const int lane = threadIdx.x;
  const unsigned ballot = __ballot_sync(0xffffffffu, x[lane] > 0);
  const int any = __any_sync(0xffffffffu, x[lane] > 100);
  const int all = __all_sync(0xffffffffu, x[lane] > -100);
  const unsigned same = __match_any_sync(0xffffffffu, lane % 4);
  const int sum = __reduce_add_sync(0xffffffffu, lane);
  const int largest = __reduce_max_sync(0xffffffffu, -lane);
  const float next = __shfl_sync(0xffffffffu, x[lane], lane + 1, 8);
  const float before = __shfl_up_sync(0xffffffffu, x[lane], 1, 8);
  if (lane < n) {
    y[lane] = (ballot >> lane & 1) + 2 * any + 4 * all + 8 * (__popc(same) == 8) +
              16 * (sum == 496) + 32 * (largest == 0) +
              64 * (next == x[lane / 8 * 8 + (lane + 1) % 8]) +
              128 * (before == x[lane % 8 == 0 ? lane : lane - 1]);
  }
}

// The last block adds up what all have left.
__device__ unsigned finished;

__global__ void sum_of_the_last_block(const float* x, float* y, int n) {
  __shared__ bool is_last;
  y[blockIdx.x] = x[blockIdx.x];
  __threadfence();
  if (threadIdx.x == 0) {
    is_last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < n; ++i) {
      sum += y[i];
    }
    y[0] = sum;
  }
}

__constant__ float factors[2];

__global__ void scaled(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = __ldg(x + i) * factors[0] + factors[1];
  }
}

// Each block waits until the one before it is done: they run at once where they must.
__global__ void one_after_the_other(const float* x, volatile float* y, int n) {
  const int block = blockIdx.x;
  if (threadIdx.x == 0) {
    while (block > 0 && y[block - 1] == 0) {
    }
    y[block] = (block > 0 ? y[block - 1] : 0) + x[block];
  }
}

template <int N, typename T>
__global__ void __launch_bounds__(128) negated(const T* x, T* y, int n) {
  for (int i = blockIdx.x * N + threadIdx.x; i < n; i += gridDim.x * N) {
    y[i] = -x[i];
  }
}

// What the elements of a block are turned around in: arrays of several kinds, past which jumps lead.
template <typename T, int N>
__global__ void turned_around(const T* x, T* y, int kind) {
  const int i = threadIdx.x;
  if (kind < 0) {
    goto end;
  } else if (kind > 2) {
    y[i] = -1;
    goto end;
  }
  __shared__ T(*rows)[N >> 1], whole[N > 4 ? 2 : 1][N >> 1];
  if (i == 0) {
    rows = whole;
  }
  __syncthreads();
  switch (kind) {
    case 0:
      __shared__ T flat[1 << 6], flat_key[N];
      flat[i] = x[i];
      flat_key[i] = -x[i];
      __syncthreads();
      y[i] = flat[N - 1 - i] + (flat_key[i] + x[i]);
      break;
    case 1:
      rows[i / (N >> 1)][i % (N >> 1)] = x[i];
      __syncthreads();
      y[i] = whole[1 - i / (N >> 1)][(N >> 1) - 1 - i % (N >> 1)];
      break;
    default:
      y[i] = x[N - 1 - i];
  }
end:
  __syncthreads();
}

// The same in the launch's memory, which the file declares.
extern __shared__ float memory[];

__device__ float at(const float* memory, int i) {
  return memory[i];
}

__global__ void turned_around_in_memory(const float* x, float* y, int n) {
  float4* fours = reinterpret_cast<float4*>(memory);
  memory[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = threadIdx.x < 4 ? at(memory, n - 1 - threadIdx.x)
                                   : (&fours[(n - 1 - threadIdx.x) / 4].x)[3 - threadIdx.x % 4];
}

struct Line {
  float factor;
  float offset;
};

// Each argument is evaluated once.
int evaluated = 0;

int counted(int value) {
  ++evaluated;
  return value;
}

__global__ void on_line(
    const float* x, float* y, Line line, const float* more, int n, int times = 1) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = (line.factor * x[i] + line.offset + (more == nullptr ? 0 : more[i])) * times;
  }
}

template <typename T>
__global__ void deduced_on_line(const T* x, T* y, const float* more, int n, int times = 1) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = (2 * x[i] + 1 + (more == nullptr ? 0 : more[i])) * times;
  }
}

#define TURN(name, ...) turned_##name<<<1, 64, 256, stream>>>(__VA_ARGS__)
#define ON(grid) <<<grid, 64, 0, stream>>>

dim3 grid_of(int n, int threads) {
  return dim3((n + threads - 1) / threads);
}

// Where the greatest number is: a struct with bytes that nobody writes.
__global__ void greatest(const float* x, float* y, int n) {
  struct Found {
    double value;
    int at;
  };
  __shared__ Found found[64];
  found[threadIdx.x].value = -1e30;
  found[threadIdx.x].at = -1;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    if (x[i] > found[threadIdx.x].value) {
      found[threadIdx.x].value = x[i];
      found[threadIdx.x].at = i;
    }
  }
  for (unsigned other = 32; other > 0; other /= 2) {
    __syncthreads();
    if (threadIdx.x < other && found[threadIdx.x + other].value > found[threadIdx.x].value) {
      found[threadIdx.x] = found[threadIdx.x + other];
    }
  }
  if (threadIdx.x == 0) {
    y[0] = static_cast<float>(found[0].at);
  }
}

// Shared memory that lambdas use, each in its own way.
__global__ void reversed_by_lambdas(const float* x, float* y, int /*n*/) {
  __shared__ float values[32];
  const auto at = [=](unsigned i) { return values[31 - i]; };
  const auto put = [](unsigned i, float value) { values[i] = value; };
  put(threadIdx.x, 0);
  __syncthreads();
  put(threadIdx.x, x[threadIdx.x]);
  __syncthreads();
  y[threadIdx.x] = at(threadIdx.x);
}

// As much local memory as a thread may have, nearly.
__global__ void much_local_memory(const float* x, float* y, int n) {
  float values[120000];
  for (int i = 0; i < 120000; ++i) {
    values[i] = x[i % n];
  }
  y[threadIdx.x] = values[119999 - threadIdx.x];
}

} // namespace

at::Tensor cuda_kernels::native::run_cuda(
    c10::string_view name, const at::Tensor& x, int64_t given) {
  const c10::cuda::CUDAGuard guard(x.device());
  TORCH_CHECK(x.is_cuda() && x.device().type() == at::kCUDA, "x is no tensor of the device");
  at::Tensor y = at::zeros_like(x);
  const float* from = x.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  int n = static_cast<int>(x.numel());
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  const std::string wanted(name);
  dim3 gridDim = grid_of(n, 64); // a variable of the host that is called as a thread's is
  if (wanted == "block_sum") {
    block_sum<<<1, 256, 0, stream>>>(from, to, n);
  } else if (wanted == "transposed") {
    const int rows = static_cast<int>(x.size(0));
    const dim3 grid(grid_of(rows, 8).x, grid_of(rows, 8).x);
    transposed<<<grid, dim3(8, 8), 8 * 9 * sizeof(float), stream>>>(from, to, rows);
  } else if (wanted == "positive") {
    positive<<<gridDim, 64, 0, stream>>>(from, to, n);
  } else if (wanted == "positive_of_block") {
    positive_of_block<<<1, 128, 0, stream>>>(from, to, n);
  } else if (wanted == "votes") {
    votes<<<1, 32, 0, stream>>>(from, to, n);
  } else if (wanted == "sum_of_the_last_block") {
    sum_of_the_last_block<<<n, 32, 0, stream>>>(from, to, n);
  } else if (wanted == "scaled") {
    const float own[2] = {2.0f, 1.0f};
    C10_CUDA_CHECK(
        cudaMemcpyToSymbolAsync(factors, own, sizeof(own), 0, cudaMemcpyHostToDevice, stream));
    scaled<<<gridDim, 64, 0, stream>>>(from, to, n);
  } else if (wanted == "one_after_the_other") {
    one_after_the_other<<<n, 32, 0, stream>>>(from, to, n);
  } else if (wanted == "negated") {
    negated<64><<<static_cast<unsigned>(given), 64, 0, stream>>>(from, to, n);
  } else if (wanted == "greatest") {
    greatest<<<1, 64, 0, stream>>>(from, to, n);
  } else if (wanted == "reversed_by_lambdas") {
    reversed_by_lambdas<<<1, 32, 0, stream>>>(from, to, n);
  } else if (wanted == "much_local_memory") {
    much_local_memory<<<1, 64, 0, stream>>>(from, to, n);
  } else if (wanted == "turned_around") {
    turned_around<float, 64><<<1, 64, 0, stream>>>(from, to, static_cast<int>(given));
  } else if (wanted == "turned_around_in_memory") {
    TURN(around_in_memory, from, to, n);
  } else if (wanted == "on_line") {
    evaluated = 0;
    on_line<<<gridDim, 64, 0, stream>>>(from, to, {2, 1}, 0, counted(n));
    TORCH_CHECK(evaluated == 1, "an argument was evaluated ", evaluated, " times");
  } else if (wanted == "on_line twice") {
    struct {
      unsigned times : 2;
    } bits{2};
    on_line<<<gridDim, 64, 0, stream>>>(from, to, {1, 0.5f}, NULL, n, bits.times);
  } else if (wanted == "on_line of a macro") {
    on_line ON(gridDim)(from, to, Line{2, 1}, 0, n, 1);
  } else if (wanted == "deduced_on_line") {
    deduced_on_line<<<gridDim, 64, 0, stream>>>(from, to, 0, n);
  } else if (wanted == "cudaLaunchKernel") {
    void* arguments[] = {&from, &to, &n};
    C10_CUDA_CHECK(cudaLaunchKernel(block_sum, dim3(1), dim3(256), arguments, 0, stream));
  } else if (wanted == "cudaLaunchKernelEx") {
    cudaLaunchConfig_t config = {};
    config.gridDim = 1;
    config.blockDim = 256;
    config.stream = stream;
    C10_CUDA_CHECK(cudaLaunchKernelEx(&config, block_sum, from, to, n));
  } else if (wanted == "events") {
    cudaEvent_t start = nullptr;
    cudaEvent_t end = nullptr;
    C10_CUDA_CHECK(cudaEventCreate(&start));
    C10_CUDA_CHECK(cudaEventCreate(&end));
    C10_CUDA_CHECK(cudaEventRecord(start, stream));
    C10_CUDA_CHECK(cudaMemcpyAsync(to, from, x.nbytes(), cudaMemcpyDeviceToDevice, stream));
    C10_CUDA_CHECK(cudaEventRecord(end, stream));
    C10_CUDA_CHECK(cudaEventSynchronize(end));
    float milliseconds = -1;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, end));
    TORCH_CHECK(milliseconds >= 0);
    C10_CUDA_CHECK(cudaEventDestroy(start));
    C10_CUDA_CHECK(cudaEventDestroy(end));
  } else {
    TORCH_CHECK(false, "there is no kernel ", wanted);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
