// SPDX-License-Identifier: BSD-3-Clause

#include <myns/kernels/sin.h>
#include <torchext/elementwise.h>

at::Tensor myns::native::sin_meta(const at::Tensor& self) {
  return torchext::pointwise_meta(torchext::Promote::kFloat, self);
}
