// SPDX-License-Identifier: BSD-3-Clause

#include <myns/kernels/cos.h>
#include <torchext/elementwise.h>

at::Tensor myns::native::cos_meta(const at::Tensor& self) {
  return torchext::pointwise_meta(torchext::Promote::kFloat, self);
}
