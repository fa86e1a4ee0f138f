// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of expressions: what each computes of values of a type V, with PyTorch's meaning at
// kinks, NaN, infinities and signed zeros. `Primitives<V>` are those that a type of values has
// itself, here for numbers on the CPU and on CUDA; `Functions<V>` are all.
#pragma once

#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

// Always inlined: code that is compiled for several instruction sets must not share it. Without
// optimisation that is most of the compiler's work, so not where one set is left, as tests have it:
// what is shared then is that of the kernels beside the loops, which are linked first.
#if !defined(__OPTIMIZE__) && !defined(__CUDACC__) &&                    \
    defined(TORCHEXT_WITHOUT_DEFAULT) + defined(TORCHEXT_WITHOUT_AVX2) + \
            defined(TORCHEXT_WITHOUT_AVX512) ==                          \
        2
#define TORCHEXT_ALWAYS_INLINE inline
#else
#define TORCHEXT_ALWAYS_INLINE C10_ALWAYS_INLINE
#endif
#define TORCHEXT_VALUE C10_HOST_DEVICE TORCHEXT_ALWAYS_INLINE static

namespace torchext {
inline namespace v1 {
namespace fused {

template <typename V>
struct Primitives {
  using Mask = bool;
  static constexpr bool is_real = std::is_floating_point_v<V>, is_complex = false;

  template <typename N>
  TORCHEXT_VALUE V number(N value) {
    return static_cast<V>(value);
  }

  TORCHEXT_VALUE bool less(V a, V b) {
    return a < b;
  }
  TORCHEXT_VALUE bool less_equal(V a, V b) {
    return a <= b;
  }
  TORCHEXT_VALUE bool greater(V a, V b) {
    return a > b;
  }
  TORCHEXT_VALUE bool greater_equal(V a, V b) {
    return a >= b;
  }
  TORCHEXT_VALUE bool equal(V a, V b) {
    return a == b;
  }
  TORCHEXT_VALUE bool not_equal(V a, V b) {
    return a != b;
  }
  TORCHEXT_VALUE bool both(bool a, bool b) {
    return a && b;
  }
  TORCHEXT_VALUE bool either(bool a, bool b) {
    return a || b;
  }
  TORCHEXT_VALUE bool inverse(bool a) {
    return !a;
  }
  TORCHEXT_VALUE bool always(bool a) {
    return a;
  }
  TORCHEXT_VALUE V choose(bool condition, V then, V other) {
    return condition ? then : other;
  }
  TORCHEXT_VALUE bool choose_condition(bool condition, bool then, bool other) {
    return condition ? then : other;
  }
  TORCHEXT_VALUE V as_number(bool a) {
    return static_cast<V>(a);
  }

  TORCHEXT_VALUE bool isnan(V a) {
    return a != a;
  }
  TORCHEXT_VALUE bool isfinite(V a) {
    if constexpr (is_real) {
      return a - a == a - a; // infinities and NaN give NaN
    } else {
      return true;
    }
  }

  TORCHEXT_VALUE V add(V a, V b) {
    return static_cast<V>(a + b);
  }
  TORCHEXT_VALUE V subtract(V a, V b) {
    return static_cast<V>(a - b);
  }
  TORCHEXT_VALUE V multiply(V a, V b) {
    return static_cast<V>(a * b);
  }
  TORCHEXT_VALUE V multiply_add(V a, V b, V c) {
    return static_cast<V>(a * b + c);
  }
  TORCHEXT_VALUE V divide(V a, V b) {
    static_assert(is_real, "integers are divided as floats");
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
    return static_cast<V>(-a);
  }
  /// With the sign of the divisor, as Python has it.
  TORCHEXT_VALUE V remainder(V a, V b) {
    if constexpr (is_real) {
      const V found = ::fmod(a, b);
      return found != 0 && ((b < 0) != (found < 0)) ? found + b : found;
    } else if constexpr (std::is_unsigned_v<V>) {
      check_divisor(b);
      return b == 0 ? V(0) : static_cast<V>(a % b);
    } else {
      check_divisor(b);
      if (b == 0 || b == -1) { // the least integer by -1 overflows
        return 0;
      }
      const V found = static_cast<V>(a % b);
      return found != 0 && ((b < 0) != (found < 0)) ? static_cast<V>(found + b) : found;
    }
  }
  /// The largest integer that is no more than the quotient, as Python has it: of floats what belongs
  /// to the remainder, so that 1 by 0.1 is 9.
  TORCHEXT_VALUE V floor_divide(V a, V b) {
    if constexpr (is_real) {
      if (b == 0) {
        return a / b;
      }
      const V rest = ::fmod(a, b), whole = (a - rest) / b;
      const V exact = rest != 0 && ((b < 0) != (rest < 0)) ? whole - 1 : whole;
      const V found = ::floor(exact);
      return exact == 0 ? ::copysign(V(0), a / b) : exact - found > V(0.5) ? found + 1 : found;
    } else if constexpr (std::is_unsigned_v<V>) {
      check_divisor(b);
      return b == 0 ? V(0) : static_cast<V>(a / b);
    } else {
      check_divisor(b);
      if (b == 0 || b == -1) { // the least integer by -1 wraps around
        return b == 0 ? V(0) : static_cast<V>(0 - static_cast<std::make_unsigned_t<V>>(a));
      }
      const bool is_less = a % b != 0 && ((b < 0) != (a < 0));
      return static_cast<V>(a / b - (is_less ? 1 : 0));
    }
  }
  TORCHEXT_VALUE V pow(V a, V b) {
    if constexpr (is_real) {
      return ::pow(a, b);
    } else if constexpr (std::is_same_v<V, bool>) {
      return a || !b;
    } else {
      if constexpr (std::is_signed_v<V>) {
        if (b < 0) {
          return a == 1 ? V(1) : a == V(-1) ? (b % 2 != 0 ? V(-1) : V(1)) : V(0);
        }
      }
      uint64_t result = 1, factor = static_cast<uint64_t>(a); // which wraps around
      for (auto left = static_cast<uint64_t>(b); left != 0; left >>= 1, factor *= factor) {
        result = left & 1 ? result * factor : result;
      }
      return static_cast<V>(result);
    }
  }
  /// By a number of the call, of which ATen knows the square root and its reciprocal: they differ
  /// from the power at -0 and at minus infinity.
  TORCHEXT_VALUE V pow_by_number(V a, V b) {
    if constexpr (is_real) {
      if (b == V(0.5) || b == V(-0.5)) {
        return b > 0 ? ::sqrt(a) : V(1) / ::sqrt(a);
      }
    }
    return pow(a, b);
  }

  TORCHEXT_VALUE bool is_below_half(V a) {
    return less(abs(a), number(0.5));
  }
  TORCHEXT_VALUE V abs(V a) {
    if constexpr (is_real) {
      return ::fabs(a);
    } else if constexpr (std::is_signed_v<V>) {
      return a < 0 ? static_cast<V>(-a) : a;
    } else {
      return a;
    }
  }
  TORCHEXT_VALUE V sign(V a) {
    return static_cast<V>((V(0) < a) - (a < V(0)));
  }
  TORCHEXT_VALUE V maximum(V a, V b) {
    return a != a ? a : b != b ? b : a < b ? b : a;
  }
  TORCHEXT_VALUE V minimum(V a, V b) {
    return a != a ? a : b != b ? b : b < a ? b : a;
  }
  TORCHEXT_VALUE V floor(V a) {
    return real_or_same(a, [](V x) { return ::floor(x); });
  }
  TORCHEXT_VALUE V ceil(V a) {
    return real_or_same(a, [](V x) { return ::ceil(x); });
  }
  TORCHEXT_VALUE V round(V a) {
    return real_or_same(a, [](V x) { return ::nearbyint(x); });
  }
  TORCHEXT_VALUE V trunc(V a) {
    return real_or_same(a, [](V x) { return ::trunc(x); });
  }

#define TORCHEXT_REAL(name)        \
  TORCHEXT_VALUE V name(V a) {     \
    static_assert(is_real, #name); \
    return ::name(a);              \
  }
  TORCHEXT_REAL(exp)
  TORCHEXT_REAL(expm1)
  TORCHEXT_REAL(log)
  TORCHEXT_REAL(log1p)
  TORCHEXT_REAL(log2)
  TORCHEXT_REAL(log10)
  TORCHEXT_REAL(sin)
  TORCHEXT_REAL(cos)
  TORCHEXT_REAL(tan)
  TORCHEXT_REAL(asin)
  TORCHEXT_REAL(acos)
  TORCHEXT_REAL(atan)
  TORCHEXT_REAL(sinh)
  TORCHEXT_REAL(cosh)
  TORCHEXT_REAL(tanh)
  TORCHEXT_REAL(asinh)
  TORCHEXT_REAL(acosh)
  TORCHEXT_REAL(atanh)
  TORCHEXT_REAL(sqrt)
  TORCHEXT_REAL(erf)
  TORCHEXT_REAL(erfc)
#undef TORCHEXT_REAL

  TORCHEXT_VALUE V atan2(V a, V b) {
    return ::atan2(a, b);
  }
  TORCHEXT_VALUE V hypot(V a, V b) {
    return ::hypot(a, b);
  }
  TORCHEXT_VALUE V rsqrt(V a) {
    return V(1) / ::sqrt(a);
  }
  TORCHEXT_VALUE V reciprocal(V a) {
    if constexpr (is_real) {
      return V(1) / a;
    } else {
      return pow(a, static_cast<V>(-1)); // of no call: integers have no negative powers
    }
  }

 private:
  template <typename F>
  TORCHEXT_VALUE V real_or_same(V a, F function) {
    if constexpr (is_real) {
      return function(a);
    } else {
      return a;
    }
  }

  TORCHEXT_VALUE void check_divisor([[maybe_unused]] V b) {
#if !defined(__CUDA_ARCH__) && !defined(__CUDACC__)
    TORCH_CHECK(b != 0, "ZeroDivisionError");
#endif
  }
};

/// What is made of the others, as ATen's kernels compute it.
template <typename V>
struct Functions : Primitives<V> {
  using P = Primitives<V>;

  TORCHEXT_VALUE V square(V x) {
    return P::multiply(x, x);
  }
  TORCHEXT_VALUE V cube(V x) {
    return P::multiply(P::multiply(x, x), x);
  }
  TORCHEXT_VALUE V frac(V x) {
    return P::subtract(x, P::trunc(x));
  }
  TORCHEXT_VALUE V clamp(V x, V low, V high) {
    return P::minimum(P::maximum(x, low), high);
  }
  TORCHEXT_VALUE V lerp(V x, V y, V weight) {
    const auto is_near = P::is_below_half(weight);
    const V part = P::choose(is_near, weight, P::subtract(weight, P::number(1)));
    return P::multiply_add(part, P::subtract(y, x), P::choose(is_near, x, y));
  }
  TORCHEXT_VALUE V relu(V x) {
    return P::maximum(x, P::number(0));
  }
  TORCHEXT_VALUE V sigmoid(V x) {
    return P::reciprocal(P::add(P::number(1), P::exp(P::negative(x))));
  }
  TORCHEXT_VALUE V log_sigmoid(V x) {
    const V least = P::minimum(x, P::number(0));
    return P::subtract(least, P::log1p(P::exp(P::negative(P::abs(x)))));
  }
  TORCHEXT_VALUE V silu(V x) {
    return P::divide(x, P::add(P::number(1), P::exp(P::negative(x))));
  }
  TORCHEXT_VALUE V gelu(V x) {
    const V scaled = P::multiply(x, P::number(0.7071067811865476));
    const V half = P::multiply(x, P::number(0.5));
    return P::multiply(half, P::add(P::number(1), P::erf(scaled)));
  }
  TORCHEXT_VALUE V gelu_tanh(V x) {
    const V inner = P::multiply(
        P::number(0.7978845608028654), P::add(x, P::multiply(P::number(0.044715), cube(x))));
    const V half = P::multiply(x, P::number(0.5));
    return P::multiply(half, P::add(P::number(1), P::tanh(inner)));
  }
  TORCHEXT_VALUE V softplus(V x, V beta, V threshold) {
    const V scaled = P::multiply(x, beta);
    const V soft = P::divide(P::log1p(P::exp(scaled)), beta);
    return P::choose(P::less(threshold, scaled), x, soft);
  }
  TORCHEXT_VALUE V mish(V x) {
    return P::multiply(x, P::tanh(P::log1p(P::exp(x))));
  }
  TORCHEXT_VALUE V hardswish(V x) {
    const V kept = clamp(P::add(x, P::number(3)), P::number(0), P::number(6));
    return P::divide(P::multiply(x, kept), P::number(6));
  }
  TORCHEXT_VALUE V logaddexp(V x, V y) {
    const V larger = P::maximum(x, y);
    const V distance = P::abs(P::subtract(x, y));
    const V sum = P::add(larger, P::log1p(P::exp(P::negative(distance))));
    const auto are_infinite = P::both(P::equal(x, y), P::inverse(P::isfinite(x)));
    return P::choose(are_infinite, x, sum);
  }
};

} // namespace fused
} // namespace v1
} // namespace torchext
