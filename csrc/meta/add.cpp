// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/precompiled.h>

#include <myns/kernels/add.h>
#include <torchext/elementwise.h>

void myns::meta::structured_add_Tensor::meta(
    const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  build_borrowing_binary_op(maybe_get_output(), self, other);
  torchext::check_alpha("myns::add", common_dtype(), alpha);
}
