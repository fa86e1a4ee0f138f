// SPDX-License-Identifier: BSD-3-Clause

#include "rows.cuh"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/core/WrapDimMinimal.h>
#include <c10/cuda/CUDAException.h>
#include <c10/util/accumulate.h>
#include <myns/kernels/softmax.h>

#include <cmath>

namespace {

using namespace myns::native;

// One block a row, three passes over it.
template <int N, int K, typename T>
__global__ void softmax_rows(const T* input, T* output, int64_t rows, int64_t columns) {
  using Acc = at::opmath_type<T>;
  const int64_t packs = columns / N;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const Row<N, K, T> x(input + row * columns, packs);
    T* out = output + row * columns;
    Acc max = -INFINITY;
    for_own_packs<K>(packs, [&](int k, int64_t i) {
      const auto pack = x.pack(k, i);
      for (int j = 0; j < N; ++j) {
        max = Max()(max, static_cast<Acc>(pack.values[j]));
      }
    });
    max = block_reduce(max, static_cast<Acc>(-INFINITY), Max());
    Acc sum = 0;
    for_own_packs<K>(packs, [&](int k, int64_t i) {
      const auto pack = x.pack(k, i);
      for (int j = 0; j < N; ++j) {
        sum += std::exp(static_cast<Acc>(pack.values[j]) - max);
      }
    });
    sum = block_reduce(sum, Acc(0), Sum());
    for_own_packs<K>(packs, [&](int k, int64_t i) {
      auto pack = x.pack(k, i);
      for (int j = 0; j < N; ++j) {
        pack.values[j] = static_cast<T>(std::exp(static_cast<Acc>(pack.values[j]) - max) / sum);
      }
      store<N>(out, i, pack);
    });
  }
}

// One thread a column of n elements that are `inner` apart: neighbours read neighbouring memory.
template <typename T>
__global__ void softmax_columns(
    const T* input, T* output, int64_t outer, int64_t n, int64_t inner) {
  using Acc = at::opmath_type<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t column = first; column < outer * inner; column += step) {
    const int64_t start = column / inner * n * inner + column % inner;
    const T* x = input + start;
    T* out = output + start;
    Acc max = -INFINITY;
    for (int64_t i = 0; i < n; ++i) {
      max = Max()(max, static_cast<Acc>(x[i * inner]));
    }
    Acc sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      sum += std::exp(static_cast<Acc>(x[i * inner]) - max);
    }
    for (int64_t i = 0; i < n; ++i) {
      out[i * inner] = static_cast<T>(std::exp(static_cast<Acc>(x[i * inner]) - max) / sum);
    }
  }
}

template <typename T>
void launch(const T* x, T* out, int64_t outer, int64_t n, int64_t inner) {
  const auto stream = at::cuda::getCurrentCUDAStream();
  if (inner > 1) {
    const int64_t blocks = (outer * inner + 127) / 128;
    softmax_columns<T><<<grid_blocks(blocks), 128, 0, stream>>>(x, out, outer, n, inner);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return;
  }
  with_row_shape<T>(can_pack(x, n) && can_pack(out, n), n, [&](auto size, auto kept) {
    constexpr int N = decltype(size)::value;
    constexpr int K = decltype(kept)::value;
    softmax_rows<N, K><<<grid_blocks(outer), row_threads(n / N), 0, stream>>>(x, out, outer, n);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

} // namespace

// `out` is contiguous and has the shape and dtype of `self`.
void myns::native::softmax_cuda(const at::Tensor& self, int64_t dim, const at::Tensor& out) {
  if (out.numel() == 0) {
    return;
  }
  dim = c10::maybe_wrap_dim(dim, self.dim());
  const int64_t n = self.dim() == 0 ? 1 : self.size(dim);
  const int64_t inner = self.dim() == 0 ? 1 : c10::multiply_integers(self.sizes().slice(dim + 1));
  const int64_t outer = out.numel() / (n * inner);
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, self.scalar_type(), "myns::softmax", [&] {
        launch(self.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>(), outer, n, inner);
      });
}
