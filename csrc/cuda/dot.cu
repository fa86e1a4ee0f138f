// SPDX-License-Identifier: BSD-3-Clause

#include "rows.cuh"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <myns/kernels/dot.h>

#include <type_traits>

namespace {

using namespace myns::native;

// Integers are summed in 64 bits and truncated at the end, which wraps like their own sums.
template <typename T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, at::opmath_type<T>>;

constexpr int64_t kMaxPartials = 1024;

// One partial sum a block, of packs of `N` and of what is left behind them; the result does not
// depend on the order in which blocks run.
template <int N, typename T, typename Acc>
__global__ void partial_dot(const T* x, const T* y, int64_t n, Acc* partials) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t packs = n / N;
  Acc sum = 0;
  for (int64_t i = first; i < packs; i += step) {
    const auto a = load<N>(x, i);
    const auto b = load<N>(y, i);
    for (int j = 0; j < N; ++j) {
      sum += static_cast<Acc>(a.values[j]) * static_cast<Acc>(b.values[j]);
    }
  }
  for (int64_t i = packs * N + first; i < n; i += step) {
    sum += static_cast<Acc>(x[i]) * static_cast<Acc>(y[i]);
  }
  sum = block_reduce(sum, Acc(0), Sum());
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = sum;
  }
}

template <typename T, typename Acc>
__global__ void sum_partials(const Acc* partials, int n, T* out) {
  Acc sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    sum += partials[i];
  }
  sum = block_reduce(sum, Acc(0), Sum());
  if (threadIdx.x == 0) {
    *out = static_cast<T>(sum);
  }
}

template <typename T>
void launch(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out) {
  using Acc = Accumulator<T>;
  const int64_t n = x.numel();
  const int64_t per_block = kMaxThreads * std::max<int64_t>(kPackSize<T>, 8);
  const int64_t blocks = std::min((n + per_block - 1) / per_block, kMaxPartials);
  const at::Tensor partials =
      at::empty({blocks}, x.options().dtype(c10::CppTypeToScalarType<Acc>::value));
  const auto stream = at::cuda::getCurrentCUDAStream();
  const T* a = x.const_data_ptr<T>();
  const T* b = y.const_data_ptr<T>();
  const auto launch_partial = [&](auto pack_size) {
    partial_dot<decltype(pack_size)::value>
        <<<static_cast<unsigned>(blocks), kMaxThreads, 0, stream>>>(
            a, b, n, partials.mutable_data_ptr<Acc>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  };
  if (is_aligned<kPackSize<T>>(a) && is_aligned<kPackSize<T>>(b)) {
    launch_partial(std::integral_constant<int, kPackSize<T>>());
  } else {
    launch_partial(std::integral_constant<int, 1>());
  }
  sum_partials<T, Acc><<<1, block_threads(blocks), 0, stream>>>(
      partials.const_data_ptr<Acc>(), static_cast<int>(blocks), out.mutable_data_ptr<T>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

} // namespace

void myns::native::dot_cuda(
    const at::Tensor& self, const at::Tensor& tensor, const at::Tensor& out) {
  if (self.numel() == 0) {
    out.zero_();
    return;
  }
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(
      at::kHalf, at::kBFloat16, self.scalar_type(), "myns::dot", [&] {
        launch<scalar_t>(self, tensor, out);
      });
}
