// SPDX-License-Identifier: BSD-3-Clause

#include "rows.h"
#include "vec_math.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <c10/core/WrapDimMinimal.h>
#include <c10/util/accumulate.h>
#include <myns/kernels/softmax.h>

#include <limits>
#include <vector>

namespace {

using namespace myns::native;

template <typename Acc>
Acc larger(Acc a, Acc b) {
  return a > b ? a : b; // NaN need not be kept here: its exponential makes the sum NaN
}

template <typename T, typename Acc>
TORCHEXT_VECTOR_CLONES void softmax_row(const T* x, T* out, int64_t n, Acc* scratch) {
  const Acc max = fold(
      n,
      -std::numeric_limits<Acc>::infinity(),
      [x](int64_t i) { return static_cast<Acc>(x[i]); },
      larger<Acc>);
  for (int64_t i = 0; i < n; ++i) {
    scratch[i] = vec_exp(static_cast<Acc>(x[i]) - max);
  }
  const Acc scale = Acc(1) / sum<Acc>(n, [scratch](int64_t i) { return scratch[i]; });
  for (int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<T>(scratch[i] * scale);
  }
}

constexpr int64_t kColumns = 16; // columns that one step of a strided softmax takes together

// Softmax down `width` <= kColumns adjacent columns, whose rows are `stride` apart.
template <typename T, typename Acc>
TORCHEXT_VECTOR_CLONES void softmax_columns(
    const T* x, T* out, int64_t n, int64_t stride, int64_t width, Acc* scratch) {
  Acc max[kColumns], total[kColumns];
  std::fill(max, max + kColumns, -std::numeric_limits<Acc>::infinity());
  std::fill(total, total + kColumns, Acc(0));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      max[j] = larger(max[j], static_cast<Acc>(x[i * stride + j]));
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      const Acc value = vec_exp(static_cast<Acc>(x[i * stride + j]) - max[j]);
      scratch[i * kColumns + j] = value;
      total[j] += value;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      out[i * stride + j] = static_cast<T>(scratch[i * kColumns + j] / total[j]);
    }
  }
}

template <typename T>
void softmax_last_dim(const T* x, T* out, int64_t rows, int64_t n) {
  using Acc = at::opmath_type<T>;
  const int64_t grain = std::max<int64_t>(1, kGrain / 4 / n);
  at::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    std::vector<Acc> scratch(n);
    for (int64_t row = begin; row < end; ++row) {
      softmax_row(x + row * n, out + row * n, n, scratch.data());
    }
  });
}

template <typename T>
void softmax_other_dim(const T* x, T* out, int64_t outer, int64_t n, int64_t inner) {
  using Acc = at::opmath_type<T>;
  const int64_t blocks = (inner + kColumns - 1) / kColumns;
  const int64_t grain = std::max<int64_t>(1, kGrain / 4 / (n * kColumns));
  at::parallel_for(0, outer * blocks, grain, [&](int64_t begin, int64_t end) {
    std::vector<Acc> scratch(n * kColumns);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % blocks * kColumns;
      const int64_t start = i / blocks * n * inner + column;
      const int64_t width = std::min(kColumns, inner - column);
      softmax_columns(x + start, out + start, n, inner, width, scratch.data());
    }
  });
}

} // namespace

// `out` is contiguous and has the shape and dtype of `self`.
void myns::native::softmax_cpu(const at::Tensor& self, int64_t dim, const at::Tensor& out) {
  if (out.numel() == 0) {
    return;
  }
  dim = c10::maybe_wrap_dim(dim, self.dim());
  const int64_t n = self.dim() == 0 ? 1 : self.size(dim);
  const int64_t inner = self.dim() == 0 ? 1 : c10::multiply_integers(self.sizes().slice(dim + 1));
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, self.scalar_type(), "myns::softmax", [&] {
        const scalar_t* x_data = self.const_data_ptr<scalar_t>();
        scalar_t* out_data = out.mutable_data_ptr<scalar_t>();
        const int64_t outer = out.numel() / (n * inner);
        if (inner == 1) {
          softmax_last_dim(x_data, out_data, outer, n);
        } else {
          softmax_other_dim(x_data, out_data, outer, n, inner);
        }
      });
}
