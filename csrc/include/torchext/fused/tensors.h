// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of expressions for whole tensors, by ATen's operators: what a call is to torch's
// compilers, on devices without a kernel, and where it is differentiated a third time.
#pragma once

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/ops/full.h>
#include <torchext/fused/functions.h>

#include <algorithm>
#include <utility>

namespace torchext {
inline namespace v1 {
namespace fused {

/// A tensor, or a number that all of its elements share; a condition knows what it compares.
class Value {
 public:
  Value() = default;
  Value(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  Value(const at::Scalar& number) : number_(number) {}

  /// A condition on tensors such as `compared`.
  Value(at::Tensor condition, const Value& compared)
      : tensor_(std::move(condition)), compared_(compared.like()) {}

  /// A complex number that is known, as a tensor beside which real ones are promoted.
  static Value of_complex(const at::Scalar& number, const at::TensorOptions& options) {
    Value found(at::full({}, number, options));
    found.number_ = number;
    found.is_known_ = true;
    return found;
  }

  /// Integers, which are computed with as numbers of a dtype, and compared as what they are.
  static Value of_integers(at::Tensor integers, at::ScalarType computed) {
    Value found(integers.to(computed));
    found.integers_ = std::move(integers);
    return found;
  }

  bool is_number() const {
    return !tensor_.defined();
  }
  const at::Scalar& number() const {
    return number_;
  }
  bool is_known() const {
    return is_known_;
  }
  const at::Tensor& tensor() const {
    return tensor_;
  }
  bool is_whole() const {
    return is_number() ? number_.isIntegral(/*includeBool=*/true) : integers_.defined();
  }
  /// Of what is whole, the integers themselves.
  Value integers() const {
    return is_number() ? *this : Value(integers_);
  }
  /// A tensor of the dtype in which everything is computed; undefined of a number.
  const at::Tensor& like() const {
    return compared_.defined() ? compared_ : tensor_;
  }
  /// A number as a tensor beside this one: of the same dtype, with which nothing is promoted.
  at::Tensor tensor_beside(const at::Tensor& other) const {
    return is_number() ? at::full({}, number_, other.options()) : tensor_;
  }
  /// Of a condition or a number, which is one too.
  at::Tensor condition_beside(const at::Tensor& other) const {
    return is_number() ? at::full({}, number_, other.options().dtype(at::kBool)) : tensor_;
  }

 private:
  at::Tensor tensor_;
  at::Tensor compared_;
  at::Tensor integers_;
  at::Scalar number_;
  bool is_known_ = false; // a tensor whose number is known, too
};

/// A value that is no other's tensor, of which `count` are known.
inline Value apart(const Value& value, const Value* others, size_t count) {
  const bool is_others = std::any_of(others, others + count, [&](const Value& other) {
    return !value.is_number() && value.tensor().is_same(other.tensor());
  });
  return is_others ? Value(value.tensor().clone(at::MemoryFormat::Contiguous)) : value;
}

/// A number that stands for a tensor which is missing: an integer where it is one.
inline Value in_place(double number) {
  return number == std::floor(number) ? at::Scalar(static_cast<int64_t>(number))
                                      : at::Scalar(number);
}

/// Functions are given numbers alone where a tensor is missing: `exp(0 if x is None else x)`.
template <>
struct Primitives<Value> {
  static constexpr bool is_complex = false; // what is real is a real tensor
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

#define TORCHEXT_BINARY(name, function)                                                  \
  static V name(const V& a, const V& b) {                                                \
    if (b.is_number()) {                                                                 \
      return a.is_number() ? of_numbers(Functions<double>::name(real(a), real(b)), a, b) \
                           : V(function(a.tensor(), b.number()));                        \
    }                                                                                    \
    return function(a.tensor_beside(b.tensor()), b.tensor());                            \
  }
#define TORCHEXT_COMPARISON(name, function)                                                        \
  static V name(const V& a, const V& b) {                                                          \
    if (a.is_number() && b.is_number()) {                                                          \
      return always(Functions<double>::name(real(a), real(b)));                                    \
    }                                                                                              \
    const bool are_whole = a.is_whole() && b.is_whole();                                           \
    const V left = are_whole ? a.integers() : a, right = are_whole ? b.integers() : b;             \
    return right.is_number() ? V(function(left.tensor(), right.number()), a)                       \
                             : V(function(left.tensor_beside(right.tensor()), right.tensor()), b); \
  }
#define TORCHEXT_TENSORS(name, function)                                  \
  static V name(const V& a, const V& b) {                                 \
    if (a.is_number() && b.is_number()) {                                 \
      return of_numbers(Functions<double>::name(real(a), real(b)), a, b); \
    }                                                                     \
    const at::Tensor& like = a.is_number() ? b.tensor() : a.tensor();     \
    return function(a.tensor_beside(like), b.tensor_beside(like));        \
  }
#define TORCHEXT_CONDITIONS(name, function)                                             \
  static V name(const V& a, const V& b) {                                               \
    if (a.is_number() && b.is_number()) {                                               \
      return always(Functions<double>::name(a.number().toBool(), b.number().toBool())); \
    }                                                                                   \
    const V& known = a.is_number() ? b : a;                                             \
    const at::Tensor& like = known.tensor();                                            \
    return V(function(a.condition_beside(like), b.condition_beside(like)), known);      \
  }
#define TORCHEXT_UNARY(name, function)                                        \
  static V name(const V& a) {                                                 \
    return a.is_number() ? of_numbers(Functions<double>::name(real(a)), a, a) \
                         : V(function(a.tensor()));                           \
  }
  TORCHEXT_COMPARISON(less, at::lt)
  TORCHEXT_COMPARISON(less_equal, at::le)
  TORCHEXT_COMPARISON(greater, at::gt)
  TORCHEXT_COMPARISON(greater_equal, at::ge)
  TORCHEXT_COMPARISON(equal, at::eq)
  TORCHEXT_COMPARISON(not_equal, at::ne)
  TORCHEXT_BINARY(add, at::add)
  TORCHEXT_BINARY(subtract, at::sub)
  TORCHEXT_BINARY(multiply, at::mul)
  TORCHEXT_BINARY(divide, at::div)
  TORCHEXT_BINARY(remainder, at::remainder)
  TORCHEXT_BINARY(floor_divide, divided)
  TORCHEXT_CONDITIONS(both, at::logical_and)
  TORCHEXT_CONDITIONS(either, at::logical_or)
  TORCHEXT_TENSORS(maximum, at::maximum)
  TORCHEXT_TENSORS(minimum, at::minimum)
  TORCHEXT_TENSORS(atan2, at::atan2)
  TORCHEXT_TENSORS(hypot, at::hypot)
  TORCHEXT_TENSORS(logaddexp, at::logaddexp)
  TORCHEXT_UNARY(negative, at::neg)
  TORCHEXT_UNARY(square, at::square)
  TORCHEXT_UNARY(conj, at::conj_physical)
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
  TORCHEXT_UNARY(silu, silu_of)
  TORCHEXT_UNARY(gelu, at::gelu)
  TORCHEXT_UNARY(mish, at::mish)
  TORCHEXT_UNARY(hardswish, at::hardswish)
#undef TORCHEXT_BINARY
#undef TORCHEXT_COMPARISON
#undef TORCHEXT_TENSORS
#undef TORCHEXT_CONDITIONS
#undef TORCHEXT_UNARY

  /// A row as long as another, of what is one number, or one for each row, where a tensor is missing.
  static V row(const V& a, const V& like) {
    if (a.is_number()) {
      return V(a.tensor_beside(like.tensor()).expand_as(like.tensor()));
    }
    auto sizes = a.tensor().sym_sizes().vec();
    sizes.back() = like.tensor().sym_size(-1);
    return V(a.tensor().expand_symint(sizes));
  }

  // Of rows, which stay dimensions.
  static V sum(const V& a) {
    return at::sum(a.tensor(), -1, /*keepdim=*/true);
  }
  static V prod(const V& a) {
    return at::prod(a.tensor(), -1, /*keepdim=*/true);
  }
  static V amax(const V& a) {
    return is_empty(a) ? one_like(a.tensor(), -std::numeric_limits<double>::infinity())
                       : at::amax(a.tensor(), -1, /*keepdim=*/true);
  }
  static V amin(const V& a) {
    return is_empty(a) ? one_like(a.tensor(), std::numeric_limits<double>::infinity())
                       : at::amin(a.tensor(), -1, /*keepdim=*/true);
  }
  /// NaN where the index is no place of the row, or is missing.
  static V gather(const V& row, const V& index) {
    if (index.is_number()) {
      return at::Scalar(std::numeric_limits<double>::quiet_NaN());
    }
    const c10::SymInt length = row.tensor().sym_size(-1);
    const at::Tensor places = index.integers().tensor();
    auto sizes = at::infer_size_symint(
        row.tensor().sym_sizes().slice(0, row.tensor().dim() - 1),
        places.sym_sizes().slice(0, places.dim() - 1));
    sizes.push_back(1);
    const at::Tensor at = places.expand_symint(sizes);
    if (length.maybe_as_int() == 0) {
      return at::full_symint(
          sizes, std::numeric_limits<double>::quiet_NaN(), row.tensor().options());
    }
    sizes.back() = length;
    const at::Tensor all = row.tensor().expand_symint(sizes);
    const at::Tensor is_place = at.ge(0).logical_and(at.lt(at::Scalar(length)));
    const at::Tensor chosen = all.gather(-1, at::where(is_place, at, 0));
    return at::where(is_place, chosen, std::numeric_limits<double>::quiet_NaN());
  }

  /// Where the operators of the expression are differentiated; a tensor of its own, as results are.
  static V detach(const V& a) {
    return a.is_number() ? a : V(a.tensor().detach().clone());
  }

  /// For each element the product of those before and of those behind it: of a row with zeros, too,
  /// a function that autograd differentiates, again and again.
  static V of_cumprods(const V& others, const V& row) {
    if (row.is_number()) {
      return others;
    }
    const at::Tensor& given = row.tensor();
    return V(at::mul(before(given), before(given.flip(-1)).flip(-1)));
  }
  /// Its gradient, for that of its result.
  static V of_cumprods_backward(const V& gradient, const V& grad, const V& row) {
    if (row.is_number()) {
      return gradient;
    }
    const auto both = at::broadcast_tensors({row.tensor(), grad.tensor_beside(row.tensor())});
    const at::Tensor &given = both[0], &grads = both[1], turned = given.flip(-1);
    const at::Tensor of_before = at::mul(grads, before(turned).flip(-1));
    const at::Tensor of_behind = at::mul(grads, before(given)).flip(-1);
    return V(
        at::add(before_backward(of_before, given), before_backward(of_behind, turned).flip(-1)));
  }

  /// The real part where another value is real.
  static V handle_r_to_c(bool /*is_real*/, const V& like, const V& a) {
    const bool is_real = like.is_number() || !like.tensor().is_complex();
    return is_real && !a.is_number() && a.tensor().is_complex() ? V(at::real(a.tensor())) : a;
  }

  /// By an exponent that is known, as ATen has it: 0 by 0 is 1.
  static V pow(const V& a, const V& b) {
    if (a.is_number() && b.is_number()) {
      return of_numbers(Functions<double>::pow(real(a), real(b)), a, b);
    }
    if (b.is_number()) {
      return V(at::pow(a.tensor(), b.number()));
    }
    const at::Tensor base = a.tensor_beside(b.tensor());
    return b.is_known() ? V(at::pow(base, b.number())) : V(at::pow(base, b.tensor()));
  }
  static V pow_by_number(const V& a, const V& b) {
    return pow(a, b);
  }

  static V inverse(const V& a) {
    return a.is_number() ? always(!a.number().toBool()) : V(at::logical_not(a.tensor()), a);
  }
  static V isnan(const V& a) {
    return a.is_number() ? always(Functions<double>::isnan(real(a))) : V(at::isnan(a.tensor()), a);
  }
  static V isfinite(const V& a) {
    if (a.is_number()) {
      return always(Functions<double>::isfinite(real(a)));
    }
    const at::Tensor& given = a.tensor(); // of complex numbers it writes to what it has computed
    return V(
        given.is_complex()
            ? at::isfinite(at::real(given)).logical_and(at::isfinite(at::imag(given)))
            : at::isfinite(given),
        a);
  }

  static V cube(const V& a) {
    return a.is_number() ? of_numbers(Functions<double>::cube(real(a)), a, a)
                         : V(at::pow(a.tensor(), 3));
  }
  static V gelu_tanh(const V& a) {
    return a.is_number() ? of_numbers(Functions<double>::gelu_tanh(real(a)), a, a)
                         : V(at::gelu(a.tensor(), "tanh"));
  }
  static V softplus(const V& a, const V& beta, const V& threshold) {
    if (!a.is_number() && beta.is_number() && threshold.is_number()) {
      return at::softplus(a.tensor(), beta.number(), threshold.number());
    }
    const V scaled = multiply(a, beta);
    return choose(less(threshold, scaled), a, divide(log1p(exp(scaled)), beta));
  }
  static V clamp(const V& a, const V& low, const V& high) {
    const at::Tensor& like = first(a, low, high);
    if (!like.defined()) {
      return of_numbers(Functions<double>::clamp(real(a), real(low), real(high)), a, a);
    }
    return at::clamp(a.tensor_beside(like), low.tensor_beside(like), high.tensor_beside(like));
  }
  static V lerp(const V& a, const V& b, const V& weight) {
    const at::Tensor& like = first(a, b, weight);
    if (!like.defined()) {
      return of_numbers(Functions<double>::lerp(real(a), real(b), real(weight)), a, b);
    }
    const at::Tensor given[] = {
        a.tensor_beside(like), b.tensor_beside(like), weight.tensor_beside(like)};
    at::ScalarType dtype = like.scalar_type(); // it takes no complex tensors beside real ones
    for (const at::Tensor& one : given) {
      dtype = c10::promoteTypes(dtype, one.scalar_type());
    }
    const at::Tensor x = given[0].to(dtype), y = given[1].to(dtype), by = given[2].to(dtype);
    if (!c10::isIntegralType(dtype, /*includeBool=*/false)) {
      return at::lerp(x, y, by);
    }
    const at::Tensor is_near = at::eq(by, 0); // at::lerp takes no integers, and is traced in floats
    return at::add(
        at::where(is_near, x, y), at::mul(at::where(is_near, by, at::sub(by, 1)), at::sub(y, x)));
  }
  static V choose(const V& condition, const V& then, const V& other) {
    if (condition.is_number()) {
      return condition.number().toBool() ? then : other;
    }
    const at::Tensor& like = condition.like();
    return at::where(condition.tensor(), then.tensor_beside(like), other.tensor_beside(like));
  }
  static V choose_condition(const V& condition, const V& then, const V& other) {
    if (condition.is_number()) {
      return condition.number().toBool() ? then : other;
    }
    const at::Tensor& like = condition.tensor();
    return V(at::where(like, then.condition_beside(like), other.condition_beside(like)), condition);
  }
  static V as_number(const V& condition) {
    return condition.is_number() ? condition
                                 : V(condition.tensor().to(condition.like().scalar_type()));
  }

 private:
  /// Whether rows have no element, of which a largest one decides nothing: no result is made of it.
  static bool is_empty(const V& row) {
    return row.tensor().sym_size(-1).maybe_as_int() == 0;
  }
  static at::Tensor one_like(const at::Tensor& row, double value) {
    auto sizes = row.sym_sizes().vec();
    sizes.back() = 1;
    return at::full_symint(sizes, value, row.options());
  }
  /// For each element the product of those before it.
  static at::Tensor before(const at::Tensor& row) {
    return at::cat({one_like(row, 1), row}, -1).cumprod(-1).slice_symint(-1, 0, -1);
  }
  static at::Tensor before_backward(const at::Tensor& grad, const at::Tensor& row) {
    const at::Tensor longer = at::cat({one_like(row, 1), row}, -1);
    const at::Tensor given = at::cat({grad, one_like(grad, 0)}, -1);
    return at::cumprod_backward(given, longer, -1, longer.cumprod(-1)).slice_symint(-1, 1);
  }

  /// Of complex numbers at::silu has no gradient.
  static at::Tensor silu_of(const at::Tensor& a) {
    return a.is_complex() ? at::mul(a, at::sigmoid(a)) : at::silu(a);
  }

  /// Not at::floor_divide, which has no gradient, not even zeros.
  template <typename B>
  static at::Tensor divided(const at::Tensor& a, const B& b) {
    return at::div(a, b, "floor");
  }

  static double real(const V& number) {
    return number.number().toDouble();
  }

  /// A number of numbers: an integer where it is one, beside which integers stay integers.
  static V of_numbers(double value, const V& a, const V& b) {
    const bool is_exact = std::abs(value) < 9007199254740992.0;
    TORCH_CHECK_NOT_IMPLEMENTED(
        is_exact || a.number().isFloatingPoint() || b.number().isFloatingPoint() ||
            !std::isfinite(value),
        "an expression has the integer ",
        value,
        ", which is too large, where a tensor is missing");
    const bool is_whole =
        is_exact && value == std::floor(value) && (value != 0 || !std::signbit(value));
    return is_whole ? at::Scalar(static_cast<int64_t>(value)) : at::Scalar(value);
  }

  static const at::Tensor& first(const V& a, const V& b, const V& c) {
    return !a.is_number() ? a.tensor() : !b.is_number() ? b.tensor() : c.tensor();
  }
};

} // namespace fused
} // namespace v1
} // namespace torchext
