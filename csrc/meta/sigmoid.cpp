// SPDX-License-Identifier: BSD-3-Clause

#include <myns/kernels/sigmoid.h>
#include <torchext/elementwise.h>

at::Tensor myns::native::sigmoid_meta(const at::Tensor& self) {
  return torchext::pointwise_meta(torchext::Promote::kFloat, self);
}
