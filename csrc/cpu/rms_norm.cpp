// SPDX-License-Identifier: BSD-3-Clause

#include "rows.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <myns/kernels/rms_norm.h>

#include <cmath>

namespace {

using myns::native::for_rows;
using myns::native::sum;

template <typename T>
TORCHEXT_VECTOR_CLONES void normalize_row(
    const T* x, const at::opmath_type<T>* w, T* out, int64_t n, double eps) {
  using Acc = at::opmath_type<T>;
  const Acc squares = sum<Acc>(n, [x](int64_t i) {
    const Acc value = x[i];
    return value * value;
  });
  const Acc scale = Acc(1) / std::sqrt(squares / n + static_cast<Acc>(eps));
  if (w == nullptr) {
    for (int64_t i = 0; i < n; ++i) {
      out[i] = static_cast<T>(static_cast<Acc>(x[i]) * scale);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      out[i] = static_cast<T>(static_cast<Acc>(x[i]) * scale * w[i]);
    }
  }
}

} // namespace

// `out` is contiguous and has the shape and dtype of `input`.
void myns::native::rms_norm_cpu(
    const at::Tensor& input,
    const std::optional<at::Tensor>& weight,
    double eps,
    const at::Tensor& out) {
  if (out.numel() == 0) {
    return;
  }
  const int64_t columns = input.size(-1);
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
        for_rows(out.numel() / columns, columns, [&](int64_t row) {
          const int64_t start = row * columns;
          normalize_row(x_data + start, w_data, out_data + start, columns, eps);
        });
      });
}
