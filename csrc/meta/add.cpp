// SPDX-License-Identifier: BSD-3-Clause

#include <myns/kernels/add.h>
#include <torchext/elementwise.h>

at::Tensor myns::native::add_meta(
    const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  at::Tensor out = torchext::pointwise_meta(torchext::Promote::kCommon, self, other);
  torchext::check_alpha("myns::add", out.scalar_type(), alpha);
  return out;
}
