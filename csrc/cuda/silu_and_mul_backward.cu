// SPDX-License-Identifier: BSD-3-Clause

#include "rows.cuh"

#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <myns/kernels/silu_and_mul_backward.h>

#include <cmath>

namespace {

using namespace myns::native;

// One thread a pack of grad_output; `packs` of them make a row.
template <typename T, int N>
__global__ void silu_and_mul_backward(
    const T* grad_output, const T* input, T* grad_input, int64_t total, int64_t packs) {
  using Acc = at::opmath_type<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t i = first; i < total; i += step) {
    const int64_t at_gate = i + i / packs * packs; // a row of the input has twice the packs
    const auto grad = load<N>(grad_output, i);
    const auto gate = load<N>(input, at_gate);
    const auto up = load<N>(input, at_gate + packs);
    Pack<T, N> grad_gate;
    Pack<T, N> grad_up;
    for (int j = 0; j < N; ++j) {
      const Acc d = static_cast<Acc>(grad.values[j]);
      const Acc g = static_cast<Acc>(gate.values[j]);
      const Acc s = Acc(1) / (Acc(1) + std::exp(-g));
      const Acc slope = s * (Acc(1) + g * (Acc(1) - s)); // of silu
      grad_gate.values[j] = static_cast<T>(d * static_cast<Acc>(up.values[j]) * slope);
      grad_up.values[j] = static_cast<T>(d * g * s);
    }
    store<N>(grad_input, at_gate, grad_gate);
    store<N>(grad_input, at_gate + packs, grad_up);
  }
}

template <typename T, int N>
void launch(const T* grad, const T* input, T* grad_input, int64_t numel, int64_t columns) {
  const int64_t total = numel / N;
  const unsigned blocks = grid_blocks((total + 255) / 256);
  silu_and_mul_backward<T, N><<<blocks, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      grad, input, grad_input, total, columns / N);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

} // namespace

// `grad_input` is contiguous and has the shape and dtype of `input`.
void myns::native::silu_and_mul_backward_cuda(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& grad_input) {
  if (grad_input.numel() == 0) {
    return;
  }
  const int64_t columns = input.size(-1) / 2;
  const at::Tensor grad = grad_output.to(input.scalar_type());
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, input.scalar_type(), "myns::silu_and_mul_backward", [&] {
        const scalar_t* grad_data = grad.const_data_ptr<scalar_t>();
        const scalar_t* x_data = input.const_data_ptr<scalar_t>();
        scalar_t* out_data = grad_input.mutable_data_ptr<scalar_t>();
        if (can_pack(grad_data, columns) && can_pack(x_data, columns) &&
            can_pack(out_data, columns)) {
          launch<scalar_t, kPackSize<scalar_t>>(grad_data, x_data, out_data, grad.numel(), columns);
        } else {
          launch<scalar_t, 1>(grad_data, x_data, out_data, grad.numel(), columns);
        }
      });
}
