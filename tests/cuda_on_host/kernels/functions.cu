// SPDX-License-Identifier: BSD-3-Clause
//
// What CUDA has of functions and of its runtime, each kernel and call named by an argument.
#include <ATen/ATen.h>
#include <ATen/native/cuda/DistributionTemplates.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuComplex.h>
#include <cuda/cmath>
#include <cuda/functional>
#include <cuda/std/functional>
#include <cuda/std/limits>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <device_functions.h>
#include <math_constants.h>
#include <nv/target>

#include <cuda_kernels/kernels.h>

#include <string>
#include <vector>

namespace cg = cooperative_groups;

namespace {

constexpr int kThreads = 64;
constexpr int kItems = 3;

// Of two floats, in four directions.
#define DIRECTIONS(name, a, b) {name##_rn(a, b), name##_rz(a, b), name##_rd(a, b), name##_ru(a, b)}

__global__ void rounded(const float* x, float* y, int n, int operation) {
  const int i = threadIdx.x;
  if (i < n) {
    const float a = x[i];
    const float b = x[(i + 1) % n];
    const float results[4][4] = {
        DIRECTIONS(__fadd, a, b),
        DIRECTIONS(__fmul, a, b),
        DIRECTIONS(__fdiv, a, b),
        {__fsqrt_rn(fabsf(a)), __fsqrt_rz(fabsf(a)), __fsqrt_rd(fabsf(a)), __fsqrt_ru(fabsf(a))}};
    for (int k = 0; k < 4; ++k) {
      y[4 * i + k] = results[operation][k];
    }
  }
}

__global__ void inverse(const float* x, float* y, int n) {
  const int i = threadIdx.x;
  if (i < n) {
    y[4 * i] = static_cast<float>(erf(erfinv(static_cast<double>(x[i]))));
    y[4 * i + 1] = static_cast<float>(erfc(erfcinv(static_cast<double>(x[i]) + 1)) - 1);
    y[4 * i + 2] = normcdff(normcdfinvf((x[i] + 1) / 2)) * 2 - 1;
    y[4 * i + 3] =
        erfcxf(x[i] * 20) * expf(-0.5f) - expf(-0.5f + 400 * x[i] * x[i]) * erfcf(x[i] * 20);
  }
}

// Functions of two words of bytes, by number.
__global__ void lanes(const int* x, int* y, int n, int which) {
  const int i = threadIdx.x;
  if (i < n) {
    const unsigned a = x[i];
    const unsigned b = x[(i + 1) % n];
    const unsigned results[] = {
        __vadd4(a, b),
        __vaddss4(a, b),
        __vaddus4(a, b),
        __vsubss4(a, b),
        __vsubus4(a, b),
        __vmaxs4(a, b),
        __vminu4(a, b),
        __vabsdiffu4(a, b),
        __vcmpgts4(a, b),
        __vsetleu4(a, b),
        __vavgu4(a, b),
        __vhaddu4(a, b),
        __vabsss4(a),
        __vnegss4(a),
        __vsads4(a, b),
        __vavgs4(a, b),
        static_cast<unsigned>(__dp4a(static_cast<int>(a), static_cast<int>(b), 5)),
        __dp4a(a, b, 5u),
        static_cast<unsigned>(__dp2a_lo(static_cast<int>(a), static_cast<int>(b), 7)),
        __dp2a_hi(a, b, 7u),
        static_cast<unsigned>(__hadd(static_cast<int>(a), static_cast<int>(b))),
        __urhadd(a, b),
        __funnelshift_lc(a, b, 40),
        __funnelshift_rc(a, b, 8)};
    y[i] = static_cast<int>(results[which]);
  }
}

// Of several numbers a thread: sums before the block's part are what the callback keeps.
struct Running {
  float total;
  __device__ float operator()(float of_block) {
    const float before = total;
    total += of_block;
    return before;
  }
};

// What stands behind it in a kernel's shared memory is aligned, as with CUB's own.
using Transposed = cub::BlockLoad<float, kThreads, kItems, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
static_assert(sizeof(Transposed::TempStorage) >= kThreads * kItems * sizeof(float));
static_assert(sizeof(Transposed::TempStorage) % 16 == 0 && alignof(Transposed::TempStorage) == 16);
static_assert(sizeof(cub::BlockReduce<float, kThreads>::TempStorage) % 16 == 0);

__global__ void cub_items(const float* x, float* y, int n) {
  using Load = cub::BlockLoad<float, kThreads, kItems, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Store = cub::BlockStore<float, kThreads, kItems, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  using Scan = cub::BlockScan<float, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Scan::TempStorage scan;
  } storage;
  Running running{0};
  for (int first = 0; first < n; first += kThreads * kItems) {
    float items[kItems];
    Load(storage.load).Load(x + first, items, n - first, 0.0f);
    __syncthreads();
    Scan(storage.scan).InclusiveSum(items, items, running);
    __syncthreads();
    Store(storage.store).Store(y + first, items, n - first);
    __syncthreads();
  }
}

// Maps x -> a x + b, whose composition depends on its order.
struct Affine {
  float a;
  float b;
};
struct Compose {
  __device__ Affine operator()(const Affine& f, const Affine& g) const {
    return {f.a * g.a, g.a * f.b + g.b};
  }
};
struct Composed {
  Affine total;
  __device__ Affine operator()(Affine of_block) {
    const Affine before = total;
    total = Compose()(total, of_block);
    return before;
  }
};

template <int kX, int kY, int kCount, cub::BlockScanAlgorithm kAlgorithm>
__global__ void compositions(const float* x, float* y, int n, bool is_exclusive) {
  using Scan = cub::BlockScan<Affine, kX, kAlgorithm, kY>;
  __shared__ typename Scan::TempStorage storage;
  Composed before{{1, 0}};
  const int rank = threadIdx.x + kX * threadIdx.y;
  for (int first = 0; first < n; first += kX * kY * kCount) {
    Affine items[kCount];
    for (int k = 0; k < kCount; ++k) {
      const int i = first + rank * kCount + k;
      items[k] = i < n ? Affine{x[i], 1} : Affine{1, 0};
    }
    if (is_exclusive) {
      Scan(storage).ExclusiveScan(items, items, Compose(), before);
    } else {
      Scan(storage).InclusiveScan(items, items, Compose(), before);
    }
    __syncthreads();
    for (int k = 0; k < kCount; ++k) {
      const int i = first + rank * kCount + k;
      if (i < n) {
        y[i] = items[k].b;
      }
    }
  }
}

// What a tile's threads tell each other, in blocks whose last warp is not whole.
template <int kSize>
__global__ void tiles_of(const float* x, float* y, int n) {
  const auto tile = cg::tiled_partition<kSize>(cg::this_thread_block());
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = i < n ? x[i] : 0.0f;
  const float sum = cg::reduce(tile, v, cg::plus<float>());
  const float found[] = {
      cg::inclusive_scan(tile, v),
      cg::exclusive_scan(tile, v),
      tile.shfl_up(v, 1) + tile.shfl_down(v, 1) + tile.shfl_xor(v, kSize / 2),
      sum + static_cast<float>(__popc(tile.ballot(v > 0)))};
  if (i < n) {
    for (int k = 0; k < 4; ++k) {
      y[4 * i + k] = found[k];
    }
  }
}

__global__ void cub_largest(const float* x, float* y, int n) {
  using Pair = cub::KeyValuePair<int, float>;
  Pair own(threadIdx.x, threadIdx.x < n ? x[threadIdx.x] : -CUDART_INF_F);
  const Pair found = cub::BlockReduce<Pair, kThreads>().Reduce(own, cub::ArgMax());
  float two[2] = {own.value, own.value};
  __syncthreads();
  const float most = cub::BlockReduce<float, kThreads>().Reduce(two, cuda::maximum<>());
  if (threadIdx.x == 0) {
    y[0] = static_cast<float>(found.key);
    y[1] = found.value;
    y[2] = most;
  }
}

__global__ void cub_of_warps(const float* x, float* y, int n) {
  using Scan = cub::WarpScan<float>;
  __shared__ Scan::TempStorage storage[kThreads / 32];
  const int i = threadIdx.x;
  float before;
  float total;
  Scan scan(storage[i / 32]);
  scan.ExclusiveSum(i < n ? x[i] : 0.0f, before);
  __syncwarp();
  float unused;
  scan.InclusiveSum(i < n ? x[i] : 0.0f, unused, total);
  if (i < n) {
    y[i] = before + total;
  }
}

__device__ float sum_of(const cg::thread_group& group, float value) {
  for (unsigned d = group.size() / 2; d > 0; d /= 2) {
    value += group.shfl_xor(value, d);
  }
  return value;
}

__global__ void groups(const float* x, float* y, int n) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const auto part = cg::tiled_partition(warp, 8);
  const int i = block.thread_rank();
  const float own = i < n ? x[i] : 0.0f;
  const float of_part = sum_of(part, own);
  const auto signs = cg::binary_partition(warp, own < 0);
  const float of_signs = cg::reduce(signs, own, cg::plus<float>());
  const float before = cg::exclusive_scan(warp, own);
  float first = 0;
  cg::invoke_one(warp, [&] { first = 1; });
  if (i < n) {
    y[4 * i] = of_part;
    y[4 * i + 1] = of_signs;
    y[4 * i + 2] = before;
    y[4 * i + 3] = first + part.meta_group_rank();
  }
}

// A library's own operators are taken, as torch's builds with nvcc leave it to them.
__device__ __half operator+(const __half& a, const __half& b) {
  return __hsub(a, b);
}

__global__ void halves(const float* x, float* y, int n) {
  const int i = threadIdx.x;
  if (i < n) {
    const __half a = __float2half(x[i]);
    const __half2 two = __floats2half2_rn(x[i], -x[i]);
    y[4 * i] = __half2float(a + a);
    y[4 * i + 1] = __low2float(__hmax2(two, __lowhigh2highlow(two)));
    y[4 * i + 2] = static_cast<float>(__nv_fp8_e4m3(x[i] * 1000));
    y[4 * i + 3] = __hbgt2(two, __half2half2(a)) ? 1 : __hisnan(hrsqrt(a)) ? 2 : 3;
  }
}

__global__ void fused_halves(const float* x, float* y, int n) {
  const int i = threadIdx.x;
  if (i < n) {
    const __half a = __float2half(x[i]);
    const __half b = __float2half(x[(i + 1) % n]);
    const __half c = __float2half(x[(i + 2) % n]);
    const __half2 both = __hfma2(__half2half2(a), __halves2half2(b, c), __halves2half2(c, b));
    y[4 * i] = __half2float(__hfma(a, b, c));
    y[4 * i + 1] = __half2float(__hfma_relu(a, b, c));
    y[4 * i + 2] = __high2float(both);
    y[4 * i + 3] = __half2float(__hadd(hceil(a), hrint(b)));
  }
}

__global__ void complex_numbers(const float* x, float* y, int n) {
  const int i = threadIdx.x;
  if (i < n) {
    const cuFloatComplex a = make_cuFloatComplex(x[i], 2.0f);
    const cuFloatComplex b = make_cuFloatComplex(0.5f, x[(i + 1) % n]);
    const cuFloatComplex c = cuCdivf(cuCfmaf(a, b, cuConjf(a)), b);
    y[4 * i] = cuCrealf(c);
    y[4 * i + 1] = cuCimagf(c);
    y[4 * i + 2] = cuCabsf(a);
    NV_IF_TARGET(NV_IS_DEVICE, (y[4 * i + 3] = 1;), (y[4 * i + 3] = 2;))
    NV_IF_TARGET(NV_PROVIDES_SM_100, (y[4 * i + 3] = 3;))
  }
}

__global__ void __launch_bounds__(kThreads) bounded(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = x[i] * 2;
  }
}

template <int kMost>
__global__ void C10_LAUNCH_BOUNDS_2(kMost, 2) bounded_by_template(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = x[i] * 2;
  }
}

__global__ void with_shared(const float* x, float* y, int n) {
  extern __shared__ float all[];
  all[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = all[threadIdx.x] * 2;
}
__global__ void with_shared_too(const float* x, float* y, int n) {
  extern __shared__ float all[];
  all[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = all[threadIdx.x] * 2;
}

// A list that grows: memory that one kernel allocates, and another reads and frees.
struct Node {
  float value;
  Node* next;
};
__device__ Node* heads[kThreads];

__global__ void allocate(const float* x, int n) {
  const int i = threadIdx.x;
  heads[i] = nullptr;
  for (int k = i; k < n; k += blockDim.x) {
    auto* node = static_cast<Node*>(malloc(sizeof(Node)));
    node->value = x[k];
    node->next = heads[i];
    heads[i] = node;
  }
}

__global__ void add_up_and_free(float* y, bool reads_again) {
  const int i = threadIdx.x;
  float sum = 0;
  Node* freed = nullptr;
  while (heads[i] != nullptr) {
    Node* node = heads[i];
    sum += node->value;
    heads[i] = node->next;
    free(node);
    freed = node;
  }
  y[i] = reads_again ? freed->value : sum;
}

__global__ void twice(float* x, int n) {
  const int i = threadIdx.x;
  if (i < n) {
    x[i] *= 2;
  }
}

__constant__ float coefficients[4];

__global__ void weighted(const float* x, float* y, int n) {
  const int i = threadIdx.x;
  if (i < n) {
    y[i] = x[i] * coefficients[i % 4];
  }
}

void of_memory(const std::string& wanted, const float* from, float* to, int n) {
  const size_t nbytes = n * sizeof(float);
  float* own = nullptr;
  if (wanted == "pinned memory" || wanted == "pinned memory, and behind it") {
    C10_CUDA_CHECK(cudaMallocHost(&own, nbytes));
  } else {
    C10_CUDA_CHECK(cudaMallocManaged(&own, nbytes));
  }
  C10_CUDA_CHECK(cudaMemcpy(own, from, nbytes, cudaMemcpyDefault));
  own[0] += 1; // the host's as well
  const int more = wanted == "pinned memory, and behind it";
  try {
    twice<<<1, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(own, n + more);
  } catch (...) {
    cudaFreeHost(own);
    throw;
  }
  C10_CUDA_CHECK(cudaMemcpy(to, own, nbytes, cudaMemcpyDefault));
  cudaPointerAttributes attributes;
  C10_CUDA_CHECK(cudaPointerGetAttributes(&attributes, own));
  const bool is_managed = attributes.type == cudaMemoryTypeManaged;
  C10_CUDA_CHECK(is_managed ? cudaFree(own) : cudaFreeHost(own));
}

void of_launches(const std::string& wanted, const float* from, float* to, int n) {
  const auto stream = c10::cuda::getCurrentCUDAStream();
  void* arguments[] = {&from, &to, &n};
  if (wanted == "launched through void*") {
    C10_CUDA_CHECK(cudaLaunchKernel((void*)bounded, dim3(1), dim3(kThreads), arguments, 0, stream));
  } else if (wanted == "launched through another cast") {
    C10_CUDA_CHECK(cudaLaunchKernel(
        reinterpret_cast<const void*>(&bounded_by_template<kThreads>),
        1,
        kThreads,
        arguments,
        0,
        stream));
  } else {
    cudaLaunchConfig_t config{};
    config.gridDim = 1;
    config.blockDim = wanted == "launched by ExC" ? kThreads : 2 * kThreads;
    config.stream = stream;
    if (wanted == "launched by ExC") {
      C10_CUDA_CHECK(cudaLaunchKernelExC(&config, (const void*)bounded, arguments));
    } else {
      C10_CUDA_CHECK(cudaLaunchKernelEx(&config, bounded, from, to, n));
    }
  }
}

void of_the_runtime(const float* from, float* to, int n) {
  const auto stream = c10::cuda::getCurrentCUDAStream();
  std::vector<float> rows(n);
  C10_CUDA_CHECK(cudaMemcpy2D(rows.data(), 8, from, 16, 8, n / 4, cudaMemcpyDeviceToHost));
  C10_CUDA_CHECK(cudaMemset2D(to, 16, 0, 8, n / 4));
  C10_CUDA_CHECK(cudaMemcpy2DAsync(to + 2, 16, rows.data(), 8, 8, n / 4, cudaMemcpyHostToDevice));
  cudaEvent_t start;
  cudaEvent_t end;
  C10_CUDA_CHECK(cudaEventCreate(&start));
  C10_CUDA_CHECK(cudaEventCreate(&end, cudaEventDefault));
  C10_CUDA_CHECK(cudaEventRecord(start));
  C10_CUDA_CHECK(cudaEventRecord(end));
  C10_CUDA_CHECK(cudaStreamWaitEvent(stream, end));
  float milliseconds = -1;
  C10_CUDA_CHECK(cudaEventSynchronize(end));
  C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, end));
  TORCH_CHECK(milliseconds >= 0);
  C10_CUDA_CHECK(cudaEventDestroy(start));
  C10_CUDA_CHECK(cudaEventDestroy(end));
  int called = 0;
  C10_CUDA_CHECK(
      cudaLaunchHostFunc(stream, [](void* data) { *static_cast<int*>(data) = 1; }, &called));
  TORCH_CHECK(called == 1);
  int grid = 0;
  int block = 0;
  C10_CUDA_CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, with_shared, 100 << 10));
  TORCH_CHECK(grid == 2 * 132 && block == 1024);
  float* pitched = nullptr;
  size_t pitch = 0;
  C10_CUDA_CHECK(cudaMallocPitch(&pitched, &pitch, 100, 4));
  TORCH_CHECK(pitch == 512);
  C10_CUDA_CHECK(cudaFree(pitched));
  TORCH_CHECK(cudaMemcpy2D(to, 4, from, 8, 8, 1, cudaMemcpyDeviceToDevice) != cudaSuccess);
  TORCH_CHECK(std::string(cudaGetErrorString(cudaGetLastError())) == "invalid pitch argument");
  TORCH_CHECK(cudaMemcpyToSymbol(coefficients, rows.data(), 20) == cudaErrorInvalidValue);
  TORCH_CHECK(cudaMemcpyToSymbol(coefficients, rows.data(), 8, 12) == cudaErrorInvalidValue);
  cudaGetLastError();
  TORCH_CHECK((cuda::ceil_div(7, 2) == 4 && cuda::std::numeric_limits<int>::max() > 0));
}

} // namespace

at::Tensor cuda_kernels::native::functions_cuda(
    c10::string_view name, const at::Tensor& x, int64_t given) {
  const std::string wanted(name);
  const int n = static_cast<int>(x.numel());
  const auto stream = c10::cuda::getCurrentCUDAStream();
  if (wanted == "lanes") {
    at::Tensor y = at::empty_like(x);
    lanes<<<1, kThreads, 0, stream>>>(
        x.const_data_ptr<int>(), y.mutable_data_ptr<int>(), n, static_cast<int>(given));
    return y;
  }
  const bool is_of_four = wanted == "rounded" || wanted == "inverse" || wanted == "groups" ||
                          wanted == "halves" || wanted == "fused halves" || wanted == "complex" ||
                          wanted == "tiles";
  at::Tensor y = is_of_four ? at::empty({n, 4}, x.options()) : at::zeros({n}, x.options());
  const float* from = x.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  const int most = static_cast<int>(given);
  if (wanted == "rounded") {
    rounded<<<1, kThreads, 0, stream>>>(from, to, n, most);
  } else if (wanted == "inverse") {
    inverse<<<1, kThreads, 0, stream>>>(from, to, n);
  } else if (wanted == "cub_items") {
    cub_items<<<1, kThreads, 0, stream>>>(from, to, n);
  } else if (wanted == "compositions") {
    const bool is_exclusive = most >= 10;
    if (most % 10 == 0) {
      compositions<32, 1, 1, cub::BLOCK_SCAN_RAKING>
          <<<1, 32, 0, stream>>>(from, to, n, is_exclusive);
    } else if (most % 10 == 1) {
      compositions<8, 8, 2, cub::BLOCK_SCAN_WARP_SCANS>
          <<<1, dim3(8, 8), 0, stream>>>(from, to, n, is_exclusive);
    } else {
      compositions<48, 1, 4, cub::BLOCK_SCAN_RAKING_MEMOIZE>
          <<<1, 48, 0, stream>>>(from, to, n, is_exclusive);
    }
  } else if (wanted == "tiles") {
    const int blocks = (n + 79) / 80;
    most == 2   ? tiles_of<2><<<blocks, 80, 0, stream>>>(from, to, n)
    : most == 4 ? tiles_of<4><<<blocks, 80, 0, stream>>>(from, to, n)
    : most == 8 ? tiles_of<8><<<blocks, 80, 0, stream>>>(from, to, n)
                : tiles_of<16><<<blocks, 80, 0, stream>>>(from, to, n);
  } else if (wanted == "cub_largest") {
    cub_largest<<<1, kThreads, 0, stream>>>(from, to, n);
  } else if (wanted == "cub_of_warps") {
    cub_of_warps<<<1, kThreads, 0, stream>>>(from, to, n);
  } else if (wanted == "groups") {
    groups<<<1, kThreads, 0, stream>>>(from, to, n);
  } else if (wanted == "halves") {
    halves<<<1, kThreads, 0, stream>>>(from, to, n);
  } else if (wanted == "fused halves") {
    fused_halves<<<1, kThreads, 0, stream>>>(from, to, n);
  } else if (wanted == "complex") {
    complex_numbers<<<1, kThreads, 0, stream>>>(from, to, n);
  } else if (wanted == "bounded") {
    bounded<<<1, most, 0, stream>>>(from, to, n);
  } else if (wanted == "bounded by a template") {
    bounded_by_template<32><<<1, most, 0, stream>>>(from, to, n);
  } else if (wanted == "shared memory of one kernel" || wanted == "shared memory of another") {
    const int nbytes = 64 << 10;
    C10_CUDA_CHECK(
        cudaFuncSetAttribute(with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, nbytes));
    if (wanted == "shared memory of one kernel") {
      with_shared<<<1, n, nbytes, stream>>>(from, to, n);
    } else {
      with_shared_too<<<1, n, nbytes, stream>>>(from, to, n);
    }
  } else if (wanted == "allocated by a kernel") {
    allocate<<<1, kThreads, 0, stream>>>(from, n);
    add_up_and_free<<<1, std::min(n, kThreads), 0, stream>>>(to, given != 0);
  } else if (wanted == "coefficients") {
    const float host[4] = {1, 2, 3, 4};
    C10_CUDA_CHECK(cudaMemcpyToSymbol(coefficients, host, sizeof(host)));
    weighted<<<1, kThreads, 0, stream>>>(from, to, n);
  } else if (wanted.find("memory") != std::string::npos) {
    of_memory(wanted, from, to, n);
  } else if (wanted.find("launched") != std::string::npos) {
    of_launches(wanted, from, to, n);
  } else if (wanted == "runtime") {
    of_the_runtime(from, to, n);
  } else if (wanted == "moved") {
    return x.cpu().cuda() * 2;
  } else {
    TORCH_CHECK(false, "there is no kernel ", wanted);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
