// SPDX-License-Identifier: BSD-3-Clause

#include "rows.h"
#include "vec_math.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <myns/kernels/silu_and_mul_backward.h>

namespace {

using namespace myns::native;

template <typename T>
TORCHEXT_VECTOR_CLONES void backward_row(
    const T* grad, const T* gate, T* grad_gate, int64_t columns) {
  using Acc = at::opmath_type<T>;
  const T* up = gate + columns;
  T* grad_up = grad_gate + columns;
  for (int64_t i = 0; i < columns; ++i) {
    const Acc g = gate[i];
    const Acc s = vec_sigmoid(g);
    const Acc d = static_cast<Acc>(grad[i]);
    grad_gate[i] = static_cast<T>(d * static_cast<Acc>(up[i]) * s * (1 + g * (1 - s)));
    grad_up[i] = static_cast<T>(d * g * s);
  }
}

} // namespace

// `grad_input` is contiguous and has the shape and dtype of `input`.
void myns::native::silu_and_mul_backward_cpu(
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
        for_rows(grad.numel() / columns, 4 * columns, [&](int64_t row) {
          const int64_t start = row * 2 * columns;
          backward_row(grad_data + row * columns, x_data + start, out_data + start, columns);
        });
      });
}
