// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of expressions for whole tensors, by ATen's operators: what a call is to torch's
// compilers, on devices without a kernel, and where it is differentiated a third time.
#pragma once

#include <ATen/Functions.h>
#include <ATen/ScalarOps.h>
#include <torchext/fused/functions.h>

#include <utility>

namespace torchext {
inline namespace v1 {
namespace fused {

/// A tensor, or a number that all of its elements share.
class Value {
 public:
  Value() = default;
  Value(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  Value(const at::Scalar& number) : number_(number) {}

  bool is_number() const {
    return !tensor_.defined();
  }
  const at::Scalar& number() const {
    return number_;
  }
  at::Tensor tensor() const {
    return is_number() ? at::native::wrapped_scalar_tensor(number_) : tensor_;
  }

 private:
  at::Tensor tensor_;
  at::Scalar number_;
};

template <>
struct Functions<Value> {
  using V = Value;
  using Mask = Value;

  template <typename N>
  static V number(N value) {
    return at::Scalar(value);
  }
  static V always(bool value) {
    return at::Scalar(value);
  }

#define TORCHEXT_BINARY(name, function)                                        \
  static V name(const V& a, const V& b) {                                      \
    return b.is_number() && !a.is_number() ? function(a.tensor(), b.number())  \
                                           : function(a.tensor(), b.tensor()); \
  }
#define TORCHEXT_TENSORS(name, function)     \
  static V name(const V& a, const V& b) {    \
    return function(a.tensor(), b.tensor()); \
  }
#define TORCHEXT_UNARY(name, function) \
  static V name(const V& a) {          \
    return function(a.tensor());       \
  }
  TORCHEXT_BINARY(less, at::lt)
  TORCHEXT_BINARY(less_equal, at::le)
  TORCHEXT_BINARY(greater, at::gt)
  TORCHEXT_BINARY(greater_equal, at::ge)
  TORCHEXT_BINARY(equal, at::eq)
  TORCHEXT_BINARY(not_equal, at::ne)
  TORCHEXT_BINARY(add, at::add)
  TORCHEXT_BINARY(subtract, at::sub)
  TORCHEXT_BINARY(multiply, at::mul)
  TORCHEXT_BINARY(divide, at::div)
  TORCHEXT_BINARY(remainder, at::remainder)
  TORCHEXT_BINARY(pow, at::pow)
  TORCHEXT_TENSORS(both, at::logical_and)
  TORCHEXT_TENSORS(either, at::logical_or)
  TORCHEXT_TENSORS(maximum, at::maximum)
  TORCHEXT_TENSORS(minimum, at::minimum)
  TORCHEXT_TENSORS(atan2, at::atan2)
  TORCHEXT_TENSORS(hypot, at::hypot)
  TORCHEXT_TENSORS(logaddexp, at::logaddexp)
  TORCHEXT_UNARY(inverse, at::logical_not)
  TORCHEXT_UNARY(isnan, at::isnan)
  TORCHEXT_UNARY(isfinite, at::isfinite)
  TORCHEXT_UNARY(negative, at::neg)
  TORCHEXT_UNARY(square, at::square)
  TORCHEXT_UNARY(abs, at::abs)
  TORCHEXT_UNARY(sign, at::sign)
  TORCHEXT_UNARY(floor, at::floor)
  TORCHEXT_UNARY(ceil, at::ceil)
  TORCHEXT_UNARY(round, at::round)
  TORCHEXT_UNARY(trunc, at::trunc)
  TORCHEXT_UNARY(frac, at::frac)
  TORCHEXT_UNARY(exp, at::exp)
  TORCHEXT_UNARY(expm1, at::expm1)
  TORCHEXT_UNARY(log, at::log)
  TORCHEXT_UNARY(log1p, at::log1p)
  TORCHEXT_UNARY(log2, at::log2)
  TORCHEXT_UNARY(log10, at::log10)
  TORCHEXT_UNARY(sin, at::sin)
  TORCHEXT_UNARY(cos, at::cos)
  TORCHEXT_UNARY(tan, at::tan)
  TORCHEXT_UNARY(asin, at::asin)
  TORCHEXT_UNARY(acos, at::acos)
  TORCHEXT_UNARY(atan, at::atan)
  TORCHEXT_UNARY(sinh, at::sinh)
  TORCHEXT_UNARY(cosh, at::cosh)
  TORCHEXT_UNARY(tanh, at::tanh)
  TORCHEXT_UNARY(asinh, at::asinh)
  TORCHEXT_UNARY(acosh, at::acosh)
  TORCHEXT_UNARY(atanh, at::atanh)
  TORCHEXT_UNARY(sqrt, at::sqrt)
  TORCHEXT_UNARY(rsqrt, at::rsqrt)
  TORCHEXT_UNARY(reciprocal, at::reciprocal)
  TORCHEXT_UNARY(erf, at::erf)
  TORCHEXT_UNARY(erfc, at::erfc)
  TORCHEXT_UNARY(relu, at::relu)
  TORCHEXT_UNARY(sigmoid, at::sigmoid)
  TORCHEXT_UNARY(log_sigmoid, at::log_sigmoid)
  TORCHEXT_UNARY(silu, at::silu)
  TORCHEXT_UNARY(mish, at::mish)
  TORCHEXT_UNARY(hardswish, at::hardswish)
#undef TORCHEXT_BINARY
#undef TORCHEXT_TENSORS
#undef TORCHEXT_UNARY

  static V cube(const V& a) {
    return at::pow(a.tensor(), 3);
  }
  static V gelu(const V& a) {
    return at::gelu(a.tensor());
  }
  static V gelu_tanh(const V& a) {
    return at::gelu(a.tensor(), "tanh");
  }
  static V softplus(const V& a, const V& beta, const V& threshold) {
    if (beta.is_number() && threshold.is_number()) {
      return at::softplus(a.tensor(), beta.number(), threshold.number());
    }
    const V scaled = multiply(a, beta);
    return choose(less(threshold, scaled), a, divide(log1p(exp(scaled)), beta));
  }
  static V clamp(const V& a, const V& low, const V& high) {
    return at::clamp(a.tensor(), low.tensor(), high.tensor());
  }
  static V lerp(const V& a, const V& b, const V& weight) {
    return at::lerp(a.tensor(), b.tensor(), weight.tensor());
  }
  static V choose(const V& condition, const V& then, const V& other) {
    return at::where(condition.tensor().to(at::kBool), then.tensor(), other.tensor());
  }
  static V choose_condition(const V& condition, const V& then, const V& other) {
    return choose(condition, then, other);
  }
  static V as_number(const V& condition) {
    return condition;
  }
};

} // namespace fused
} // namespace v1
} // namespace torchext
