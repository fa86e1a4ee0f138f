// SPDX-License-Identifier: BSD-3-Clause

#include "rows.cuh"

#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <myns/kernels/silu_and_mul.h>

#include <cmath>

namespace {

using namespace myns::native;

// One thread a pack of the result; `packs` of them make a row.
template <typename T, int N>
__global__ void silu_and_mul(const T* input, T* output, int64_t total, int64_t packs) {
  using Acc = at::opmath_type<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t i = first; i < total; i += step) {
    const int64_t at_gate = i + i / packs * packs; // a row of the input has twice the packs
    const auto gate = load<N>(input, at_gate);
    const auto up = load<N>(input, at_gate + packs);
    Pack<T, N> result;
    for (int j = 0; j < N; ++j) {
      const Acc g = static_cast<Acc>(gate.values[j]);
      const Acc silu = g / (Acc(1) + std::exp(-g));
      result.values[j] = static_cast<T>(silu * static_cast<Acc>(up.values[j]));
    }
    store<N>(output, i, result);
  }
}

template <typename T, int N>
void launch(const T* input, T* output, int64_t numel, int64_t columns) {
  const int64_t total = numel / N;
  const unsigned blocks = grid_blocks((total + 255) / 256);
  silu_and_mul<T, N>
      <<<blocks, 256, 0, at::cuda::getCurrentCUDAStream()>>>(input, output, total, columns / N);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

} // namespace

// `out` is contiguous; a row of it has half the columns of a row of `input`.
void myns::native::silu_and_mul_cuda(const at::Tensor& input, const at::Tensor& out) {
  if (out.numel() == 0) {
    return;
  }
  const int64_t columns = out.size(-1);
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, input.scalar_type(), "myns::silu_and_mul", [&] {
        const scalar_t* x_data = input.const_data_ptr<scalar_t>();
        scalar_t* out_data = out.mutable_data_ptr<scalar_t>();
        if (can_pack(x_data, columns) && can_pack(out_data, columns)) {
          launch<scalar_t, kPackSize<scalar_t>>(x_data, out_data, out.numel(), columns);
        } else {
          launch<scalar_t, 1>(x_data, out_data, out.numel(), columns);
        }
      });
}
