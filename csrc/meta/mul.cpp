// SPDX-License-Identifier: BSD-3-Clause

#include <myns/kernels/mul.h>
#include <torchext/elementwise.h>

at::Tensor myns::native::mul_meta(const at::Tensor& self, const at::Tensor& other) {
  return torchext::pointwise_meta(torchext::Promote::kCommon, self, other);
}
