// SPDX-License-Identifier: BSD-3-Clause
//
// The small functions that the formulas of many operators call; all inline.
#pragma once

#include <ATen/TensorOperators.h> // for the operators in formulas
#include <ATen/core/Tensor.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/real.h>
#include <c10/core/Scalar.h>
#include <c10/util/Exception.h>

#include <array>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// The reason that formulas give for what cuDNN's recurrent networks lack.
inline constexpr const char* kCudnnDoubleBackwardMsg =
    "cuDNN has no second derivative of recurrent networks; run the forward pass under "
    "torch.backends.cudnn.flags(enabled=False) to get one";

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

/// The same for the gradients of a list of tensors.
inline std::vector<at::Tensor> not_implemented_list(const char* name, const char* reason = "") {
  not_implemented(name, reason);
  return {};
}

/// Whether an optional tensor is there: an undefined one is none.
inline bool is_given(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() && tensor->defined();
}

/// The sum of two tensors, of which either may be undefined, as a gradient or a tangent is where
/// there is none.
inline at::Tensor sum_of_defined(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) {
    return a.defined() ? a : b;
  }
  return a + b;
}

/// A tangent of the sizes of its result; one that is undefined stays so.
inline at::Tensor expanded_as(const at::Tensor& tangent, const at::Tensor& result) {
  const bool has_both = tangent.defined() && result.defined();
  return has_both && !tangent.is_same_size(result) ? tangent.expand_symint(result.sym_sizes())
                                                   : tangent;
}

/// The gradient of an input of dtype `self_st`: a real input takes the real part of a complex one.
inline at::Tensor handle_r_to_c(at::ScalarType self_st, at::Tensor gradient) {
  const bool drops = !c10::isComplexType(self_st) && gradient.is_complex();
  return drops ? at::real(gradient) : gradient;
}

/// The same for the input itself.
inline at::Tensor handle_r_to_c(const at::Tensor& self, at::Tensor gradient) {
  return handle_r_to_c(self.scalar_type(), std::move(gradient));
}

/// The same of the gradients of several inputs, of which some may be undefined.
template <typename... Tensors>
std::tuple<Tensors...> handle_r_to_c(
    const std::array<at::ScalarType, sizeof...(Tensors)>& dtypes,
    std::tuple<Tensors...> gradients) {
  size_t index = 0;
  const auto real = [&](at::Tensor& gradient) {
    const at::ScalarType dtype = dtypes[index++];
    if (gradient.defined()) {
      gradient = handle_r_to_c(dtype, std::move(gradient));
    }
  };
  std::apply([&](auto&... each) { (real(each), ...); }, gradients);
  return gradients;
}

/// `t * s`, without a multiplication where `s` is one.
inline at::Tensor maybe_multiply(const at::Tensor& t, const at::Scalar& s) {
  const bool is_one = !s.isSymbolic() && s.equal(1);
  return is_one ? t : at::mul(t, s);
}

/// The gradient of a factor of dtype `self_st` of a product, where `other`, a tensor or a scalar,
/// is the other factor.
template <typename T>
at::Tensor mul_tensor_backward(const at::Tensor& grad, const T& other, at::ScalarType self_st) {
  return handle_r_to_c(self_st, at::mul(grad, other.conj()));
}

/// The gradient of the magnitude in `result = copysign(self, other)`: of slope 1 where the sign
/// stayed, -1 where it changed and 0 at zero. Of a tangent of `self`, the tangent of `result`.
inline at::Tensor copysign_tensor_self_backward(
    const at::Tensor& grad, const at::Tensor& self, const at::Tensor& result) {
  return grad * (self.sgn() * result.sgn());
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
