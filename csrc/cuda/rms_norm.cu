// SPDX-License-Identifier: BSD-3-Clause

#include "rows.cuh"

#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <myns/kernels/rms_norm.h>

#include <cmath>

namespace {

using namespace myns::native;

// One block a row. `weight` may be null.
template <int N, int K, typename T, typename W>
__global__ void rms_norm_rows(
    const T* input,
    const W* weight,
    T* output,
    int64_t rows,
    int64_t columns,
    at::opmath_type<T> eps) {
  using Acc = at::opmath_type<T>;
  const int64_t packs = columns / N;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const Row<N, K, T> x(input + row * columns, packs);
    T* out = output + row * columns;
    Acc squares = 0;
    for_own_packs<K>(packs, [&](int k, int64_t i) {
      const auto pack = x.pack(k, i);
      for (int j = 0; j < N; ++j) {
        const Acc value = static_cast<Acc>(pack.values[j]);
        squares += value * value;
      }
    });
    squares = block_reduce(squares, Acc(0), Sum());
    const Acc scale = Acc(1) / std::sqrt(squares / static_cast<Acc>(columns) + eps);
    for_own_packs<K>(packs, [&](int k, int64_t i) {
      auto pack = x.pack(k, i);
      const auto factor = factors<N, Acc>(weight, i);
      for (int j = 0; j < N; ++j) {
        const Acc normalized = static_cast<Acc>(pack.values[j]) * scale;
        pack.values[j] = static_cast<T>(normalized * factor.values[j]);
      }
      store<N>(out, i, pack);
    });
  }
}

template <typename T, typename W>
void launch(const T* x, const W* weight, T* out, int64_t rows, int64_t columns, double eps) {
  const bool packed = can_pack(x, columns) && can_pack(out, columns) &&
      is_aligned<kPackSize<T>>(weight);
  with_row_shape<T>(packed, columns, [&](auto n, auto k) {
    constexpr int N = decltype(n)::value;
    constexpr int K = decltype(k)::value;
    const auto stream = at::cuda::getCurrentCUDAStream();
    rms_norm_rows<N, K><<<grid_blocks(rows), row_threads(columns / N), 0, stream>>>(
        x, weight, out, rows, columns, static_cast<at::opmath_type<T>>(eps));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

} // namespace

// `out` is contiguous and has the shape and dtype of `input`.
void myns::native::rms_norm_cuda(
    const at::Tensor& input,
    const std::optional<at::Tensor>& weight,
    double eps,
    const at::Tensor& out) {
  if (out.numel() == 0) {
    return;
  }
  const int64_t columns = input.size(-1);
  const int64_t rows = input.numel() / columns;
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, input.scalar_type(), "myns::rms_norm", [&] {
        const scalar_t* x_data = input.const_data_ptr<scalar_t>();
        scalar_t* out_data = out.mutable_data_ptr<scalar_t>();
        with_weight<scalar_t>(weight, [&](const auto* w_data) {
          launch(x_data, w_data, out_data, rows, columns, eps);
        });
      });
}
