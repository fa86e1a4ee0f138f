// SPDX-License-Identifier: BSD-3-Clause

#include "rows.h"
#include "vec_math.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <myns/kernels/silu_and_mul.h>

namespace {

using namespace myns::native;

template <typename T>
TORCHEXT_VECTOR_CLONES void silu_and_mul_row(const T* gate, T* out, int64_t columns) {
  using Acc = at::opmath_type<T>;
  const T* up = gate + columns;
  for (int64_t i = 0; i < columns; ++i) {
    const Acc g = gate[i];
    out[i] = static_cast<T>(g * vec_sigmoid(g) * static_cast<Acc>(up[i]));
  }
}

} // namespace

// `out` is contiguous; a row of it has half the columns of a row of `input`.
void myns::native::silu_and_mul_cpu(const at::Tensor& input, const at::Tensor& out) {
  if (out.numel() == 0) {
    return;
  }
  const int64_t columns = out.size(-1);
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, input.scalar_type(), "myns::silu_and_mul", [&] {
        const scalar_t* x_data = input.const_data_ptr<scalar_t>();
        scalar_t* out_data = out.mutable_data_ptr<scalar_t>();
        for_rows(out.numel() / columns, 4 * columns, [&](int64_t row) {
          silu_and_mul_row(x_data + row * 2 * columns, out_data + row * columns, columns);
        });
      });
}
