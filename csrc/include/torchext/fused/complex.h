// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of expressions for complex numbers: those that PyTorch has for them.
#pragma once

#include <c10/util/complex.h>
#include <torchext/fused/functions.h>

#include <type_traits>

namespace torchext {
inline namespace v1 {
namespace fused {

template <typename T>
struct Primitives<c10::complex<T>> {
  using V = c10::complex<T>;
  using Mask = bool;
  using Part = Primitives<T>;
  static constexpr bool is_complex = true;

  template <typename N>
  TORCHEXT_VALUE V number(N value) {
    if constexpr (std::is_arithmetic_v<N>) {
      return V(static_cast<T>(value));
    } else {
      return V(static_cast<T>(value.real()), static_cast<T>(value.imag()));
    }
  }

  TORCHEXT_VALUE bool equal(V a, V b) {
    return a.real() == b.real() && a.imag() == b.imag();
  }
  TORCHEXT_VALUE bool not_equal(V a, V b) {
    return !equal(a, b);
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
    return V(static_cast<T>(a));
  }

  TORCHEXT_VALUE bool isnan(V a) {
    return Part::isnan(a.real()) || Part::isnan(a.imag());
  }
  TORCHEXT_VALUE bool isfinite(V a) {
    return Part::isfinite(a.real()) && Part::isfinite(a.imag());
  }
  /// Of the magnitude.
  TORCHEXT_VALUE bool is_below_half(V a) {
    return a.real() * a.real() + a.imag() * a.imag() < T(0.25);
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
  TORCHEXT_VALUE V multiply_add(V a, V b, V c) {
    return a * b + c;
  }
  TORCHEXT_VALUE V divide(V a, V b) {
#if defined(__clang__)
    // c10's operator divides by the parts' absolute values there, for which it has -0 with Clang
    b = b == V(T(0)) ? V(T(0)) : b;
#endif
    return a / b;
  }
  TORCHEXT_VALUE V negative(V a) {
    return -a;
  }
  TORCHEXT_VALUE V conj(V a) {
    return V(a.real(), -a.imag());
  }
  TORCHEXT_VALUE V handle_r_to_c(bool is_real, V /*like*/, V a) {
    return is_real ? V(a.real()) : a;
  }
  TORCHEXT_VALUE V detach(V a) {
    return a;
  }
  TORCHEXT_VALUE V reciprocal(V a) {
    return divide(V(T(1)), a);
  }
  TORCHEXT_VALUE V rsqrt(V a) {
    return divide(V(T(1)), std::sqrt(a));
  }
  /// By exponents that ATen knows as it does: 0 by 0 is 1.
  TORCHEXT_VALUE V pow(V a, V b) {
    if (b.imag() == 0) {
      if (b.real() == 0) {
        return V(T(1));
      }
      if (b.real() == 1) {
        return a;
      }
      if (b.real() == 2 || b.real() == -2) {
        return b.real() == 2 ? a * a : reciprocal(a * a);
      }
      if (b.real() == 3) {
        return a * a * a;
      }
      if (b.real() == T(0.5) || b.real() == T(-0.5)) {
        return b.real() > 0 ? std::sqrt(a) : rsqrt(a);
      }
      if (b.real() == -1) {
        return reciprocal(a);
      }
    }
    return std::pow(a, b);
  }
  TORCHEXT_VALUE V pow_by_number(V a, V b) {
    return pow(a, b);
  }

  /// What a function makes of the real parts.
  template <typename F, typename... Values>
  TORCHEXT_VALUE V of_reals(const F& function, const Values&... values) {
    return V(function(Functions<T>(), values.real()...));
  }

#define TORCHEXT_COMPLEX(name) \
  TORCHEXT_VALUE V name(V a) { \
    return std::name(a);       \
  }
  TORCHEXT_COMPLEX(exp)
  TORCHEXT_COMPLEX(expm1)
  TORCHEXT_COMPLEX(log)
  TORCHEXT_COMPLEX(log1p)
  TORCHEXT_COMPLEX(sin)
  TORCHEXT_COMPLEX(cos)
  TORCHEXT_COMPLEX(tan)
  TORCHEXT_COMPLEX(asin)
  TORCHEXT_COMPLEX(acos)
  TORCHEXT_COMPLEX(atan)
  TORCHEXT_COMPLEX(sinh)
  TORCHEXT_COMPLEX(cosh)
  TORCHEXT_COMPLEX(tanh)
  TORCHEXT_COMPLEX(asinh)
  TORCHEXT_COMPLEX(acosh)
  TORCHEXT_COMPLEX(atanh)
  TORCHEXT_COMPLEX(sqrt)
#undef TORCHEXT_COMPLEX

  // Not by a division of complex numbers, of which that of infinities is NaN.
  TORCHEXT_VALUE V log2(V a) {
    return logarithm(a, T(0.6931471805599453));
  }
  TORCHEXT_VALUE V log10(V a) {
    return logarithm(a, T(2.302585092994046));
  }

 private:
  TORCHEXT_VALUE V logarithm(V a, T of_base) {
    const V found = std::log(a);
    return V(found.real() / of_base, found.imag() / of_base);
  }
};

/// Of a number that is known once a call: a real or a complex one.
struct Numeric {
  Numeric(double value) : value(value) {}
  Numeric(c10::complex<double> value) : value(value), is_complex(true) {}

  c10::complex<double> value;
  bool is_complex = false;
};

template <>
struct Primitives<Numeric> {
  using V = Numeric;
  using Real = Functions<double>;
  using Complex = Functions<c10::complex<double>>;

  template <typename N>
  static V number(N value) {
    return V(static_cast<double>(value));
  }
  static V choose(bool condition, V then, V other) {
    return condition ? then : other;
  }
  static V as_number(bool a) {
    return V(static_cast<double>(a));
  }
  static bool both(bool a, bool b) {
    return a && b;
  }
  static bool either(bool a, bool b) {
    return a || b;
  }
  static bool inverse(bool a) {
    return !a;
  }
  static bool equal(V a, V b) {
    return a.value == b.value;
  }
  static bool not_equal(V a, V b) {
    return a.value != b.value;
  }
  static bool isnan(V a) {
    return Complex::isnan(a.value);
  }
  static bool isfinite(V a) {
    return Complex::isfinite(a.value);
  }
  static bool is_below_half(V a) {
    return Complex::is_below_half(a.value);
  }
  static V multiply_add(V a, V b, V c) {
    return add(multiply(a, b), c);
  }

#define TORCHEXT_OF_ONE(name)                                                        \
  static V name(V a) {                                                               \
    return a.is_complex ? V(Complex::name(a.value)) : V(Real::name(a.value.real())); \
  }
#define TORCHEXT_OF_TWO(name)                                                            \
  static V name(V a, V b) {                                                              \
    return a.is_complex || b.is_complex ? V(Complex::name(a.value, b.value))             \
                                        : V(Real::name(a.value.real(), b.value.real())); \
  }
  TORCHEXT_OF_TWO(add)
  TORCHEXT_OF_TWO(subtract)
  TORCHEXT_OF_TWO(multiply)
  TORCHEXT_OF_TWO(divide)
  TORCHEXT_OF_TWO(pow)
  TORCHEXT_OF_ONE(negative)
  TORCHEXT_OF_ONE(conj)
  TORCHEXT_OF_ONE(detach)
  TORCHEXT_OF_ONE(reciprocal)
  TORCHEXT_OF_ONE(rsqrt)
  TORCHEXT_OF_ONE(exp)
  TORCHEXT_OF_ONE(expm1)
  TORCHEXT_OF_ONE(log)
  TORCHEXT_OF_ONE(log1p)
  TORCHEXT_OF_ONE(log2)
  TORCHEXT_OF_ONE(log10)
  TORCHEXT_OF_ONE(sin)
  TORCHEXT_OF_ONE(cos)
  TORCHEXT_OF_ONE(tan)
  TORCHEXT_OF_ONE(asin)
  TORCHEXT_OF_ONE(acos)
  TORCHEXT_OF_ONE(atan)
  TORCHEXT_OF_ONE(sinh)
  TORCHEXT_OF_ONE(cosh)
  TORCHEXT_OF_ONE(tanh)
  TORCHEXT_OF_ONE(asinh)
  TORCHEXT_OF_ONE(acosh)
  TORCHEXT_OF_ONE(atanh)
  TORCHEXT_OF_ONE(sqrt)
#undef TORCHEXT_OF_ONE
#undef TORCHEXT_OF_TWO
};

} // namespace fused
} // namespace v1
} // namespace torchext
