// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/precompiled.h>

#include "muladd.h"

#include <myns/kernels/muladd.h>

void myns::meta::structured_muladd::meta(
    const at::Tensor& a, const at::Tensor& b, const at::Scalar& c) {
  if (native::is_promoted_by_addend(a, b, c)) {
    build(at::TensorIteratorConfig()
              .allow_cpu_scalars(true)
              .promote_inputs_to_common_dtype(true)
              .cast_common_dtype_to_outputs(true)
              .enforce_safe_casting_to_output(true)
              .add_output(maybe_get_output())
              .add_const_input(a)
              .add_const_input(b)
              .add_owned_const_input(at::native::wrapped_scalar_tensor(c)));
  } else {
    build_borrowing_binary_op(maybe_get_output(), a, b);
  }
}
