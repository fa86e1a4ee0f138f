// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <negation/kernels.h>

namespace {

__global__ void scale(const float* x, float* y, int64_t n, float factor) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = factor * x[i];
  }
}

__global__ void halve(const float* x, float* y, int n, int stride) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    y[i] = x[i * stride] / 2;
  }
}

void launch(const at::Tensor& x, const at::Tensor& out, int64_t n, float factor) {
  if (n <= 0) {
    return;
  }
  scale<<<static_cast<unsigned>((n + 63) / 64), 64, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), n, factor);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

} // namespace

void negation::native::negated_cuda(const at::Tensor& x, const at::Tensor& out) {
  launch(x, out, x.numel() - 1, -1); // one too few
}

void negation::native::doubled_cuda(const at::Tensor& x, const at::Tensor& out) {
  launch(x, out, x.numel(), 2);
}

void negation::native::halved_cuda(const at::Tensor& x, const at::Tensor& out) {
  const int n = static_cast<int>(x.numel());
  if (n == 0) {
    return;
  }
  halve<<<static_cast<unsigned>((n + 63) / 64), 64, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), n, static_cast<int>(x.stride(0)));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
