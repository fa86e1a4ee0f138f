// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/derivatives/cumulative-inl.h>

#include <torch/library.h>

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("cumsum_backward", &torchext::derivatives::cumsum_backward);
  m.def("cumprod_jvp", &torchext::derivatives::cumprod_jvp);
  m.def("logcumsumexp_backward", &torchext::derivatives::logcumsumexp_backward);
  m.def("logcumsumexp_jvp", &torchext::derivatives::logcumsumexp_jvp);
}
