// SPDX-License-Identifier: BSD-3-Clause

#include "rows.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/zeros.h>
#include <myns/kernels/rms_norm_backward.h>

#include <cmath>

namespace {

using myns::native::sum;

template <typename T>
struct Pointers {
  using Acc = at::opmath_type<T>;
  const T* grad;
  const T* x;
  const Acc* weight; // may be null
  T* grad_input;     // may be null
  int64_t columns;
  double eps;
};

// grad_input = r * (g - x * r^2 * mean(g * x)) with g = grad * weight and r = 1 / rms(x).
template <typename T>
TORCHEXT_VECTOR_CLONES void write_grad_input(
    const Pointers<T>& p, int64_t start, at::opmath_type<T> r) {
  using Acc = at::opmath_type<T>;
  const T* grad = p.grad + start;
  const T* x = p.x + start;
  const Acc* w = p.weight;
  T* out = p.grad_input + start;
  const auto g = [grad, w](int64_t i) {
    return w == nullptr ? static_cast<Acc>(grad[i]) : static_cast<Acc>(grad[i]) * w[i];
  };
  const Acc dot = sum<Acc>(p.columns, [&](int64_t i) { return g(i) * static_cast<Acc>(x[i]); });
  const Acc shift = dot * r * r * r / p.columns;
  for (int64_t i = 0; i < p.columns; ++i) {
    out[i] = static_cast<T>(g(i) * r - static_cast<Acc>(x[i]) * shift);
  }
}

// One row: grad_input, and its share of the weight's gradient added to `partial`. Either is left
// out where its pointer is null.
template <typename T>
TORCHEXT_VECTOR_CLONES void backward_row(
    const Pointers<T>& p, int64_t row, at::opmath_type<T>* partial) {
  using Acc = at::opmath_type<T>;
  const int64_t start = row * p.columns;
  const T* grad = p.grad + start;
  const T* x = p.x + start;
  const Acc squares = sum<Acc>(p.columns, [x](int64_t i) {
    const Acc value = x[i];
    return value * value;
  });
  const Acc r = Acc(1) / std::sqrt(squares / p.columns + static_cast<Acc>(p.eps));
  if (partial != nullptr) {
    for (int64_t i = 0; i < p.columns; ++i) {
      partial[i] += static_cast<Acc>(grad[i]) * static_cast<Acc>(x[i]) * r;
    }
  }
  if (p.grad_input != nullptr) {
    write_grad_input(p, start, r);
  }
}

// Rows go in as many chunks as there are threads, each with a row of `partials` of its own, so
// that the sum over rows needs no locks and does not depend on scheduling.
template <typename T>
void backward_rows(const Pointers<T>& p, int64_t rows, const at::Tensor& partials) {
  using Acc = at::opmath_type<T>;
  const int64_t chunks = partials.size(0);
  Acc* partial = partials.size(1) > 0 ? partials.mutable_data_ptr<Acc>() : nullptr;
  at::parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      Acc* mine = partial == nullptr ? nullptr : partial + chunk * p.columns;
      for (int64_t row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks; ++row) {
        backward_row(p, row, mine);
      }
    }
  });
}

} // namespace

// The outputs are contiguous; one that is undefined is not asked for.
void myns::native::rms_norm_backward_cpu(
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const std::optional<at::Tensor>& weight,
    double eps,
    std::array<bool, 2> /*output_mask*/,
    const at::Tensor& grad_input,
    const at::Tensor& grad_weight) {
  const int64_t columns = input.size(-1);
  const int64_t rows = columns == 0 ? 0 : input.numel() / columns;
  if (rows == 0) {
    if (grad_weight.defined()) {
      grad_weight.zero_();
    }
    return;
  }
  const at::Tensor grad = grad_output.to(input.scalar_type());
  const bool is_small = input.numel() < myns::native::kGrain;
  const int64_t chunks = is_small ? 1 : std::min<int64_t>(rows, at::get_num_threads());
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, input.scalar_type(), "myns::rms_norm_backward", [&] {
        using Acc = at::opmath_type<scalar_t>;
        const auto acc_dtype = c10::CppTypeToScalarType<Acc>::value;
        at::Tensor w;
        if (weight.has_value() && weight->defined()) {
          w = weight->to(acc_dtype);
        }
        const Pointers<scalar_t> pointers{
            grad.const_data_ptr<scalar_t>(),
            input.const_data_ptr<scalar_t>(),
            w.defined() ? w.const_data_ptr<Acc>() : nullptr,
            grad_input.defined() ? grad_input.mutable_data_ptr<scalar_t>() : nullptr,
            columns,
            eps};
        const at::Tensor partials = at::zeros(
            {chunks, grad_weight.defined() ? columns : 0}, input.options().dtype(acc_dtype));
        backward_rows(pointers, rows, partials);
        if (grad_weight.defined()) {
          grad_weight.copy_(partials.sum(0));
        }
      });
}
