// SPDX-License-Identifier: BSD-3-Clause

#include "rows.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <myns/kernels/dot.h>

#include <vector>

namespace {

using myns::native::sum;

constexpr int64_t kBlock = 1 << 14;

template <typename T>
TORCHEXT_VECTOR_CLONES at::opmath_type<T> dot_block(const T* x, const T* y, int64_t n) {
  using Acc = at::opmath_type<T>;
  return sum<Acc>(n, [x, y](int64_t i) { return static_cast<Acc>(x[i]) * static_cast<Acc>(y[i]); });
}

// The sum of fixed blocks, so that the result does not depend on the number of threads.
template <typename T>
T dot_product(const T* x, const T* y, int64_t n) {
  using Acc = at::opmath_type<T>;
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  std::vector<Acc> partials(blocks);
  at::parallel_for(0, blocks, 2, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t start = block * kBlock;
      partials[block] = dot_block(x + start, y + start, std::min(kBlock, n - start));
    }
  });
  return static_cast<T>(sum<Acc>(blocks, [&](int64_t i) { return partials[i]; }));
}

} // namespace

void myns::native::dot_cpu(
    const at::Tensor& self, const at::Tensor& tensor, const at::Tensor& out) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(
      at::kHalf, at::kBFloat16, self.scalar_type(), "myns::dot", [&] {
        *out.mutable_data_ptr<scalar_t>() = dot_product(
            self.const_data_ptr<scalar_t>(), tensor.const_data_ptr<scalar_t>(), self.numel());
      });
}
