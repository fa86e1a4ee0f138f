// SPDX-License-Identifier: BSD-3-Clause
//
// The functions that gradient formulas call beside ATen's: the names and meaning of PyTorch's own
// (torch/csrc/autograd/FunctionsManual.h), most of which no library exports.
#pragma once

#include <ATen/TensorOperators.h> // for the operators in formulas
#include <ATen/core/Tensor.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/real.h>
#include <c10/core/Scalar.h>
#include <c10/util/Exception.h>

namespace torchext::derivatives {

/// What a formula calls for a gradient that nobody has written: raises, naming it.
inline at::Tensor not_implemented(const char* name, const char* reason = "") {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false,
      "the derivative for '",
      name,
      "' is not implemented",
      *reason == '\0' ? "" : ": ",
      reason);
}

/// The gradient of an input of dtype `self_st`: a real input takes the real part of a complex one.
inline at::Tensor handle_r_to_c(at::ScalarType self_st, at::Tensor gradient) {
  const bool drops = !c10::isComplexType(self_st) && gradient.is_complex();
  return drops ? at::real(gradient) : gradient;
}

/// `t * s`, without a multiplication where `s` is one.
inline at::Tensor maybe_multiply(const at::Tensor& t, const at::Scalar& s) {
  const bool is_one = !s.isSymbolic() && s.equal(1);
  return is_one ? t : at::mul(t, s);
}

/// The gradient of a factor of dtype `self_st` of a product, where `other` is the other factor.
inline at::Tensor mul_tensor_backward(
    const at::Tensor& grad, const at::Tensor& other, at::ScalarType self_st) {
  return handle_r_to_c(self_st, at::mul(grad, other.conj()));
}

} // namespace torchext::derivatives
