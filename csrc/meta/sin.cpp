// SPDX-License-Identifier: BSD-3-Clause

#include <myns/kernels/sin.h>

void myns::meta::structured_sin::meta(const at::Tensor& self) {
  build_borrowing_unary_float_op(maybe_get_output(), self);
}
