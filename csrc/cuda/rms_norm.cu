// SPDX-License-Identifier: BSD-3-Clause

#include "rows.cuh"

#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <myns/kernels/rms_norm.h>

#include <cmath>

namespace {

using namespace myns::native;

// One block a row; the second pass finds the row in cache. `weight` may be null.
template <typename T, int N>
__global__ void rms_norm_rows(
    const T* input,
    const at::opmath_type<T>* weight,
    T* output,
    int64_t rows,
    int64_t columns,
    at::opmath_type<T> eps) {
  using Acc = at::opmath_type<T>;
  const int64_t packs = columns / N;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* x = input + row * columns;
    T* out = output + row * columns;
    Acc squares = 0;
    for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
      const auto pack = load<N>(x, i);
      for (int j = 0; j < N; ++j) {
        const Acc value = static_cast<Acc>(pack.values[j]);
        squares += value * value;
      }
    }
    squares = block_reduce(squares, Acc(0), Sum());
    const Acc scale = Acc(1) / std::sqrt(squares / static_cast<Acc>(columns) + eps);
    for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
      auto pack = load<N>(x, i);
      for (int j = 0; j < N; ++j) {
        const Acc normalized = static_cast<Acc>(pack.values[j]) * scale;
        const Acc factor = weight == nullptr ? Acc(1) : weight[i * N + j];
        pack.values[j] = static_cast<T>(normalized * factor);
      }
      store<N>(out, i, pack);
    }
  }
}

template <typename T, int N>
void launch(
    const T* x,
    const at::opmath_type<T>* weight,
    T* out,
    int64_t rows,
    int64_t columns,
    double eps) {
  const unsigned threads = block_threads(columns / N);
  rms_norm_rows<T, N><<<grid_blocks(rows), threads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x, weight, out, rows, columns, static_cast<at::opmath_type<T>>(eps));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
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
        using Acc = at::opmath_type<scalar_t>;
        at::Tensor w;
        if (weight.has_value() && weight->defined()) {
          w = weight->to(c10::CppTypeToScalarType<Acc>::value);
        }
        const Acc* w_data = w.defined() ? w.const_data_ptr<Acc>() : nullptr;
        const scalar_t* x_data = input.const_data_ptr<scalar_t>();
        scalar_t* out_data = out.mutable_data_ptr<scalar_t>();
        if (can_pack(x_data, columns) && can_pack(out_data, columns)) {
          launch<scalar_t, kPackSize<scalar_t>>(x_data, w_data, out_data, rows, columns, eps);
        } else {
          launch<scalar_t, 1>(x_data, w_data, out_data, rows, columns, eps);
        }
      });
}
