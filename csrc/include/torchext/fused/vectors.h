// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of expressions for the vectors of ATen (ATen/cpu/vec), of the instruction set that
// the file is compiled for: its transcendental functions are those that PyTorch ships.
#pragma once

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <torchext/fused/functions.h>

namespace torchext {
inline namespace v1 {
namespace fused {

template <typename T>
struct Primitives<at::vec::Vectorized<T>> {
  using V = at::vec::Vectorized<T>;
  using Mask = V; // all bits of what holds
  static constexpr bool is_complex = false;

  template <typename N>
  TORCHEXT_VALUE V number(N value) {
    return V(static_cast<T>(value));
  }

  TORCHEXT_VALUE V less(V a, V b) {
    return a < b;
  }
  TORCHEXT_VALUE V less_equal(V a, V b) {
    return a <= b;
  }
  TORCHEXT_VALUE V greater(V a, V b) {
    return a > b;
  }
  TORCHEXT_VALUE V greater_equal(V a, V b) {
    return a >= b;
  }
  TORCHEXT_VALUE V equal(V a, V b) {
    return a == b;
  }
  TORCHEXT_VALUE V not_equal(V a, V b) {
    return a != b;
  }
  TORCHEXT_VALUE V both(V a, V b) {
    return a & b;
  }
  TORCHEXT_VALUE V either(V a, V b) {
    return a | b;
  }
  TORCHEXT_VALUE V inverse(V a) {
    return a ^ always(true);
  }
  TORCHEXT_VALUE V always(bool a) {
    const V zero(0);
    return a ? zero == zero : zero != zero;
  }
  TORCHEXT_VALUE V choose(V condition, V then, V other) {
    return V::blendv(other, then, condition);
  }
  TORCHEXT_VALUE V choose_condition(V condition, V then, V other) {
    return V::blendv(other, then, condition);
  }
  TORCHEXT_VALUE V as_number(V a) {
    return V::blendv(V(0), V(1), a);
  }

  TORCHEXT_VALUE V isnan(V a) {
    return a != a;
  }
  TORCHEXT_VALUE V isfinite(V a) {
    const V difference = a - a;
    return difference == difference;
  }

  TORCHEXT_VALUE V add(V a, V b) {
    return a + b;
  }
  TORCHEXT_VALUE V subtract(V a, V b) {
    return a - b;
  }
  TORCHEXT_VALUE V multiply(V a, V b) {
    return a * b;
  }
  TORCHEXT_VALUE V divide(V a, V b) {
    return a / b;
  }
  TORCHEXT_VALUE V detach(V a) {
    return a;
  }
  TORCHEXT_VALUE V conj(V a) {
    return a;
  }
  TORCHEXT_VALUE V handle_r_to_c(bool /*is_real*/, V /*like*/, V a) {
    return a;
  }
  TORCHEXT_VALUE V of_cumprods(V others, V /*row*/) {
    return others;
  }
  TORCHEXT_VALUE V of_cumprods_backward(V gradient, V /*grad*/, V /*row*/) {
    return gradient;
  }
  TORCHEXT_VALUE V negative(V a) {
    return a.neg();
  }
  /// a * b + c, rounded once.
  TORCHEXT_VALUE V multiply_add(V a, V b, V c) {
    return at::vec::fmadd(a, b, c);
  }
  /// Sleef's is NaN where the quotient overflows.
  TORCHEXT_VALUE V fmod(V a, V b) {
    const V found = a.fmod(b), lost = (found != found) & isfinite(a) & isfinite(b) & (b != V(0));
    if (C10_LIKELY(as_number(lost).zero_mask() == (1 << V::size()) - 1)) {
      return found;
    }
    T dividends[V::size()], divisors[V::size()];
    a.store(dividends);
    b.store(divisors);
    for (int i = 0; i < V::size(); ++i) {
      dividends[i] = std::fmod(dividends[i], divisors[i]);
    }
    return V::loadu(dividends);
  }
  TORCHEXT_VALUE V remainder(V a, V b) {
    const V zero(0), found = fmod(a, b);
    const V differs = (b < zero) ^ (found < zero);
    return V::blendv(found, found + b, differs & (found != zero));
  }
  TORCHEXT_VALUE V floor_divide(V a, V b) {
    const V zero(0), one(1), rest = fmod(a, b), whole = (a - rest) / b;
    const V differs = ((b < zero) ^ (rest < zero)) & (rest != zero);
    const V exact = V::blendv(whole, whole - one, differs);
    const V below = exact.floor();
    const V found = V::blendv(below, below + one, exact - below > V(0.5));
    const V quotient = a / b;
    return V::blendv(V::blendv(found, zero.copysign(quotient), exact == zero), quotient, b == zero);
  }
  TORCHEXT_VALUE V pow(V a, V b) {
    return a.pow(b);
  }
  TORCHEXT_VALUE V pow_by_number(V a, V b) {
    const V half(T(0.5)), found = V::blendv(a.pow(b), a.sqrt(), b == half);
    return V::blendv(found, a.rsqrt(), b == half.neg());
  }

  TORCHEXT_VALUE V is_below_half(V a) {
    return a.abs() < V(T(0.5));
  }
  TORCHEXT_VALUE V abs(V a) {
    return a.abs();
  }
  TORCHEXT_VALUE V sign(V a) {
    const V zero(0);
    return as_number(zero < a) - as_number(a < zero);
  }
  TORCHEXT_VALUE V maximum(V a, V b) {
    return at::vec::maximum(a, b);
  }
  TORCHEXT_VALUE V minimum(V a, V b) {
    return at::vec::minimum(a, b);
  }

#define TORCHEXT_MEMBER(name)  \
  TORCHEXT_VALUE V name(V a) { \
    return a.name();           \
  }
  TORCHEXT_MEMBER(floor)
  TORCHEXT_MEMBER(ceil)
  TORCHEXT_MEMBER(round)
  TORCHEXT_MEMBER(trunc)
  TORCHEXT_MEMBER(exp)
  TORCHEXT_MEMBER(expm1)
  TORCHEXT_MEMBER(log)
  TORCHEXT_MEMBER(log1p)
  TORCHEXT_MEMBER(log2)
  TORCHEXT_MEMBER(log10)
  TORCHEXT_MEMBER(sin)
  TORCHEXT_MEMBER(cos)
  TORCHEXT_MEMBER(tan)
  TORCHEXT_MEMBER(asin)
  TORCHEXT_MEMBER(acos)
  TORCHEXT_MEMBER(atan)
  TORCHEXT_MEMBER(sinh)
  TORCHEXT_MEMBER(cosh)
  TORCHEXT_MEMBER(tanh)
  TORCHEXT_MEMBER(asinh)
  TORCHEXT_MEMBER(acosh)
  TORCHEXT_MEMBER(atanh)
  TORCHEXT_MEMBER(sqrt)
  TORCHEXT_MEMBER(erf)
  TORCHEXT_MEMBER(erfc)
  TORCHEXT_MEMBER(rsqrt)
  TORCHEXT_MEMBER(reciprocal)
#undef TORCHEXT_MEMBER

  TORCHEXT_VALUE V atan2(V a, V b) {
    return a.atan2(b);
  }
  TORCHEXT_VALUE V hypot(V a, V b) {
    return a.hypot(b);
  }
};

} // namespace fused
} // namespace v1
} // namespace torchext
