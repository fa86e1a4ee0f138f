// SPDX-License-Identifier: BSD-3-Clause

#include <myns/kernels/mul.h>

void myns::meta::structured_mul_Tensor::meta(const at::Tensor& self, const at::Tensor& other) {
  build_borrowing_binary_op(maybe_get_output(), self, other);
}
