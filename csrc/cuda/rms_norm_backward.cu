// SPDX-License-Identifier: BSD-3-Clause

#include "rows.cuh"

#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <myns/kernels/rms_norm_backward.h>

#include <cmath>

namespace {

using namespace myns::native;

// Row-major matrices of the same shape. `weight` may be null, and `grad_input` where only the
// weight's gradient is asked for.
template <typename T, typename W>
struct Operands {
  const T* grad;
  const T* x;
  const W* weight;
  T* grad_input;
  at::opmath_type<T>* scales; // 1 / rms of each row, for the weight's gradient; may be null
  int64_t rows;
  int64_t columns;
  at::opmath_type<T> eps;
};

// With g = grad * weight and r = 1 / rms(x): grad_input = r * g - x * r^3 * mean(g * x).
// One block a row.
template <int N, int K, typename T, typename W>
__global__ void backward_rows(Operands<T, W> p) {
  using Acc = at::opmath_type<T>;
  const int64_t packs = p.columns / N;
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const Row<N, K, T> grad(p.grad + row * p.columns, packs);
    const Row<N, K, T> x(p.x + row * p.columns, packs);
    Acc squares = 0;
    Acc products = 0;
    for_own_packs<K>(packs, [&](int k, int64_t i) {
      const auto grads = grad.pack(k, i);
      const auto values = x.pack(k, i);
      const auto factor = factors<N, Acc>(p.weight, i);
      for (int j = 0; j < N; ++j) {
        const Acc value = static_cast<Acc>(values.values[j]);
        squares += value * value;
        products += static_cast<Acc>(grads.values[j]) * factor.values[j] * value;
      }
    });
    squares = block_reduce(squares, Acc(0), Sum());
    products = block_reduce(products, Acc(0), Sum());
    const Acc n = static_cast<Acc>(p.columns);
    const Acc r = Acc(1) / std::sqrt(squares / n + p.eps);
    if (p.scales != nullptr && threadIdx.x == 0) {
      p.scales[row] = r;
    }
    if (p.grad_input == nullptr) {
      continue;
    }
    const Acc shift = products * r * r * r / n;
    for_own_packs<K>(packs, [&](int k, int64_t i) {
      const auto grads = grad.pack(k, i);
      auto values = x.pack(k, i);
      const auto factor = factors<N, Acc>(p.weight, i);
      for (int j = 0; j < N; ++j) {
        const Acc g = static_cast<Acc>(grads.values[j]) * factor.values[j];
        values.values[j] = static_cast<T>(g * r - static_cast<Acc>(values.values[j]) * shift);
      }
      store<N>(p.grad_input + row * p.columns, i, values);
    });
  }
}

// First stage of the weight's gradient: each thread sums a pack of columns over the rows of one
// chunk (blockIdx.y). The second adds up the chunks, in a fixed order: no atomics.
template <int N, typename T, typename W>
__global__ void weight_partials(Operands<T, W> p, at::opmath_type<T>* partials) {
  using Acc = at::opmath_type<T>;
  const int64_t chunks = gridDim.y;
  const int64_t begin = p.rows * blockIdx.y / chunks;
  const int64_t end = p.rows * (blockIdx.y + 1) / chunks;
  const int64_t packs = p.columns / N;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t i = first; i < packs; i += step) {
    Pack<Acc, N> sums = {};
#pragma unroll 4
    for (int64_t row = begin; row < end; ++row) {
      const auto grads = load<N>(p.grad + row * p.columns, i);
      const auto values = load<N>(p.x + row * p.columns, i);
      const Acc scale = p.scales[row];
      for (int j = 0; j < N; ++j) {
        sums.values[j] +=
            static_cast<Acc>(grads.values[j]) * static_cast<Acc>(values.values[j]) * scale;
      }
    }
    store<N>(partials + blockIdx.y * p.columns, i, sums);
  }
}

template <typename T, typename W>
void launch_rows(const Operands<T, W>& p) {
  const bool packed = can_pack(p.grad, p.columns) && can_pack(p.x, p.columns) &&
      can_pack(p.grad_input, p.columns) && is_aligned<kPackSize<T>>(p.weight);
  with_row_shape<T>(packed, p.columns, [&](auto n, auto k) {
    constexpr int N = decltype(n)::value;
    constexpr int K = decltype(k)::value;
    const auto stream = at::cuda::getCurrentCUDAStream();
    backward_rows<N, K><<<grid_blocks(p.rows), row_threads(p.columns / N), 0, stream>>>(p);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

template <typename T, typename W>
void launch_weight(
    const Operands<T, W>& p, const at::TensorOptions& options, const at::Tensor& out) {
  using Acc = at::opmath_type<T>;
  constexpr int64_t rows_per_chunk = 32;
  constexpr int64_t max_chunks = 256;
  constexpr int threads = 128;
  const int64_t chunks = std::min((p.rows + rows_per_chunk - 1) / rows_per_chunk, max_chunks);
  const at::Tensor partials = at::empty({chunks, p.columns}, options);
  const bool packed = can_pack(p.grad, p.columns) && can_pack(p.x, p.columns);
  with_row_shape<T>(packed, p.columns, [&](auto n, auto /*k*/) {
    constexpr int N = decltype(n)::value;
    const int64_t blocks = (p.columns / N + threads - 1) / threads;
    const dim3 grid(grid_blocks(blocks), static_cast<unsigned>(chunks));
    weight_partials<N><<<grid, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
        p, partials.mutable_data_ptr<Acc>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  out.copy_(partials.sum(0));
}

// The tensors are contiguous and not empty; an output that is undefined is not asked for.
template <typename T, typename W>
void launch(
    const at::Tensor& grad,
    const at::Tensor& x,
    const W* weight,
    double eps,
    const at::Tensor& grad_input,
    const at::Tensor& grad_weight) {
  using Acc = at::opmath_type<T>;
  const auto options = x.options().dtype(c10::CppTypeToScalarType<Acc>::value);
  Operands<T, W> p{};
  p.grad = grad.const_data_ptr<T>();
  p.x = x.const_data_ptr<T>();
  p.columns = x.size(-1);
  p.rows = x.numel() / p.columns;
  p.eps = static_cast<Acc>(eps);
  p.weight = weight;
  if (grad_input.defined()) {
    p.grad_input = grad_input.mutable_data_ptr<T>();
  }
  at::Tensor scales;
  if (grad_weight.defined()) {
    scales = at::empty({p.rows}, options);
    p.scales = scales.mutable_data_ptr<Acc>();
  }
  launch_rows(p);
  if (grad_weight.defined()) {
    launch_weight(p, options, grad_weight);
  }
}

} // namespace

void myns::native::rms_norm_backward_cuda(
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const std::optional<at::Tensor>& weight,
    double eps,
    std::array<bool, 2> /*output_mask*/,
    const at::Tensor& grad_input,
    const at::Tensor& grad_weight) {
  if (input.numel() == 0) {
    if (grad_weight.defined()) {
      grad_weight.zero_();
    }
    return;
  }
  if (!grad_input.defined() && !grad_weight.defined()) {
    return;
  }
  const at::Tensor grad = grad_output.to(input.scalar_type());
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, input.scalar_type(), "myns::rms_norm_backward", [&] {
        with_weight<scalar_t>(weight, [&](const auto* w_data) {
          launch<scalar_t>(grad, input, w_data, eps, grad_input, grad_weight);
        });
      });
}
