// SPDX-License-Identifier: BSD-3-Clause

#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <myns/kernels/cumsum.h>

#include "../meta/lines.h"

#include <algorithm>

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 65536;

// One block for each line, in pieces of one element per thread: an inclusive scan of the piece in
// shared memory, on top of the sum of the pieces before it.
template <typename T, typename Acc>
__global__ void cumsum_kernel(const T* from, T* to, myns::native::Lines lines) {
  extern __shared__ __align__(16) char memory[];
  Acc* const piece = reinterpret_cast<Acc*>(memory);
  const int thread = threadIdx.x;
  for (int64_t line = blockIdx.x; line < lines.count; line += gridDim.x) {
    const int64_t start = lines.start(line);
    Acc before = 0;
    for (int64_t first = 0; first < lines.length; first += kThreads) {
      const int64_t i = first + thread;
      const int64_t at = start + i * lines.stride;
      piece[thread] = i < lines.length ? static_cast<Acc>(from[at]) : Acc(0);
      __syncthreads();
      for (int distance = 1; distance < kThreads; distance *= 2) {
        const Acc other = thread >= distance ? piece[thread - distance] : Acc(0);
        __syncthreads();
        piece[thread] += other;
        __syncthreads();
      }
      if (i < lines.length) {
        to[at] = static_cast<T>(before + piece[thread]);
      }
      before += piece[kThreads - 1];
      __syncthreads();
    }
  }
}

} // namespace

void myns::native::structured_cumsum_cuda::impl(
    const at::Tensor& self,
    int64_t dim,
    std::optional<at::ScalarType> /*dtype*/,
    const at::Tensor& out) {
  const at::Tensor input = self.to(out.scalar_type()).contiguous();
  const Lines lines(out, dim);
  if (lines.length == 0 || lines.count == 0) {
    return;
  }
  const auto blocks = static_cast<unsigned>(std::min(lines.count, kMostBlocks));
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(
      at::kHalf, at::kBFloat16, out.scalar_type(), "myns::cumsum", [&] {
        using Acc = at::acc_type<scalar_t, /*is_cuda=*/true>;
        cumsum_kernel<scalar_t, Acc>
            <<<blocks, kThreads, kThreads * sizeof(Acc), at::cuda::getCurrentCUDAStream()>>>(
                input.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>(), lines);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
      });
}
