// SPDX-License-Identifier: BSD-3-Clause

#include "neg.h"

#include <myns/kernels/neg.h>
#include <torchext/elementwise.h>

at::Tensor myns::native::neg_meta(const at::Tensor& self) {
  check_neg(self);
  return torchext::pointwise_meta(torchext::Promote::kCommon, self);
}
