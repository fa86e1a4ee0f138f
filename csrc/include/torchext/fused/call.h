// SPDX-License-Identifier: BSD-3-Clause
//
// What the loop of an expression is told: where its operands are, and its numbers. Plain values,
// which code that is compiled for several instruction sets shares.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/complex.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace torchext {
inline namespace v1 {
namespace fused {

/// A number that all elements share.
struct Number {
  Number() = default;
  Number(double number) : real(number) {}
  Number(int64_t number) : real(static_cast<double>(number)), integer(number), is_integral(true) {}
  Number(bool number) : Number(static_cast<int64_t>(number)) {}
  Number(c10::complex<double> number)
      : real(number.real()), imaginary(number.imag()), is_complex(true) {}

  double real = 0;
  double imaginary = 0;
  int64_t integer = 0;
  bool is_integral = false;
  bool is_complex = false;
};

/// The operands of one call. `results` and `inputs` hold, for each result and tensor of the
/// expression, which operand it is: -1 for a result that nobody wants and a tensor that is missing.
struct Call {
  const int8_t* results;
  const int8_t* inputs;
  const Number* numbers;
  const bool* conditions; // which are the same for all elements
  const bool* reals;      // of expressions of complex numbers, which inputs and numbers are real
  int operands;
};

/// Computes `size` elements of each of `rows` rows: what TensorIterator hands to a loop in two
/// dimensions, strides of elements first and of rows behind them.
using Loop =
    void (*)(const Call& call, char** data, const int64_t* strides, int64_t size, int64_t rows);

/// The loops of an expression, by the number of their dtype in c10; null where it takes none.
struct Loops {
  static constexpr size_t dtypes = 16;
  Loop of[dtypes] = {};
};

/// Of dtypes, the lower ones promoted to the higher.
enum class Category { kBool, kInteger, kFloat, kComplex };

/// The dtype of a result: that of these inputs and numbers together, and at least of a category.
struct Rule {
  uint64_t tensors = 0; // a bit for each input that decides
  uint64_t numbers = 0;
  Category least = Category::kBool;
  bool is_bool = false;                              // a condition, whatever it compares
  c10::ScalarType cast = c10::ScalarType::Undefined; // what is asked for, whatever the others are
};

/// How many inputs and numbers an expression asks whether they are real.
template <typename Op>
constexpr size_t reals_of() {
  return Op::takes_complex ? Op::inputs + Op::numbers : 0;
}

/// The dtypes that an expression is computed in.
template <c10::ScalarType... dtypes>
struct Types {
  static constexpr bool has(c10::ScalarType dtype) {
    return ((dtype == dtypes) || ...);
  }
};

/// What an expression is computed of, as values of type V.
template <typename V>
struct Given {
  const V* inputs;
  const V* numbers;
  const bool* has;    // which of the inputs; the conditions; which inputs and numbers are real
  const bool* wanted; // which of the results
};

} // namespace fused
} // namespace v1
} // namespace torchext
