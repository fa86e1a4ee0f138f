// SPDX-License-Identifier: BSD-3-Clause
//
// The arguments of a call of an expression, and the dtypes that follow from them, as an operator of
// ATen that takes all of the tensors promotes them.
#pragma once

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <torchext/elementwise.h>
#include <torchext/fused/call.h>
#include <torchext/fused/integers.h>
#include <torchext/fused/values.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <type_traits>

namespace torchext {
inline namespace v1 {
namespace fused {

/// A call's tensors and its numbers, in the order of the arguments, and what the expression has of
/// numbers alone.
struct Arguments {
  at::ArrayRef<at::OptionalTensorRef> tensors;
  at::ArrayRef<at::Scalar> scalars;
  at::ArrayRef<Number> numbers;
  const bool* conditions;
};

/// What is known of an expression: one for each operator, so that what calls it is compiled once for
/// all.
struct Expression {
  const char* name;
  const char* const* input_names;
  const double* defaults; // of inputs that are missing
  size_t inputs;
  size_t results; // that are computed
  size_t returns; // that the operator has
  size_t numbers;
  size_t conditions;
  const Rule* rules; // of what is computed
  Rule common;
  at::ArrayRef<Rule> compared;
  bool takes_complex;             // and what is real beside complex numbers is computed as real
  at::ArrayRef<size_t> exponents; // numbers that are
  bool has_negative_power;
  bool has_rows;
  bool computes_numbers; // in a result, of numbers that tensors only choose
  int64_t least_number;
  int64_t largest_number;
  bool (*takes)(c10::ScalarType dtype);
};

template <typename Op>
constexpr Expression expression() {
  return {
      Op::name,         Op::input_names,
      Op::defaults,     Op::inputs,
      Op::results,      Op::returns,
      Op::numbers,      Op::conditions,
      Op::rules,        Op::common,
      Op::compared,     Op::takes_complex,
      Op::exponents,    Op::has_negative_power,
      Op::has_rows,     Op::computes_numbers,
      Op::least_number, Op::largest_number,
      &Op::Types::has,
  };
}

/// What holds the arguments of a call, made of the parameters of a kernel.
template <typename Op>
struct Held {
  std::array<at::OptionalTensorRef, Op::inputs> tensors;
  std::array<at::Scalar, Op::scalars> scalars;
  std::array<Number, Op::numbers> numbers;
  std::array<bool, Op::conditions> conditions;

  Arguments arguments() const {
    return {tensors, scalars, numbers, conditions.data()};
  }
};

inline at::OptionalTensorRef ref(const at::Tensor& tensor) {
  return tensor.defined() ? at::OptionalTensorRef(tensor) : at::OptionalTensorRef();
}

inline at::OptionalTensorRef ref(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? ref(*tensor) : at::OptionalTensorRef();
}

inline at::OptionalTensorRef ref(const at::OptionalTensorRef& tensor) {
  return tensor;
}

/// Of a complex number, which is refused before anything is computed, or computed with as one.
inline double real_part(const at::Scalar& number) {
  return number.isComplex() ? number.toComplexDouble().real() : number.toDouble();
}

/// Whether a number is an integer that int64 has; one from 2 ** 63 on is computed with as a double.
inline bool is_int64(const at::Scalar& number) {
  return number.isIntegral(/*includeBool=*/true) && number.type() != at::kUInt64;
}

/// A number as the loops take it.
template <typename T>
Number shared(const T& number) {
  if constexpr (std::is_same_v<T, at::Scalar>) {
    return is_int64(number)     ? Number(number.toLong())
           : number.isComplex() ? Number(number.toComplexDouble())
                                : Number(number.toDouble());
  } else if constexpr (std::is_same_v<T, Integer>) {
    return number.is_whole ? Number(number.integer) : Number(number.real);
  } else if constexpr (std::is_same_v<T, Numeric>) {
    return number.is_complex ? Number(number.value) : Number(number.value.real());
  } else {
    return Number(number);
  }
}

/// A number as a double, an integer or one that may be complex, to compute with.
template <typename V, typename T>
V number(const T& given) {
  if constexpr (std::is_same_v<T, at::Scalar> && std::is_same_v<V, Numeric>) {
    return given.isComplex() ? V(given.toComplexDouble()) : V(given.toDouble());
  } else if constexpr (std::is_same_v<T, at::Scalar>) {
    return is_int64(given) ? static_cast<V>(given.toLong()) : static_cast<V>(real_part(given));
  } else {
    return static_cast<V>(given);
  }
}

/// That all results are wanted.
template <typename Op>
std::array<bool, Op::returns> all() {
  std::array<bool, Op::returns> found;
  found.fill(true);
  return found;
}

inline at::Scalar wrapped(Category category) {
  switch (category) {
    case Category::kBool:
      return true;
    case Category::kInteger:
      return 1;
    case Category::kFloat:
      return 1.0;
    default:
      return c10::complex<double>(1.0);
  }
}

inline Category category_of(at::ScalarType dtype) {
  return c10::isIntegralType(dtype, false) ? Category::kInteger
         : dtype == at::kBool              ? Category::kBool
         : c10::isComplexType(dtype)       ? Category::kComplex
                                           : Category::kFloat;
}

/// Whether a tensor says something about the dtype.
inline bool has_tensor(const Rule& rule, const Arguments& arguments) {
  for (size_t i = 0; i < arguments.tensors.size(); ++i) {
    if ((rule.tensors >> i & 1) && arguments.tensors[i].has_value()) {
      return true;
    }
  }
  return false;
}

/// The dtype that all tensors of a rule have; Undefined where they differ, or one is a number of
/// Python, which is promoted otherwise.
inline at::ScalarType same_dtype(const Rule& rule, const Arguments& arguments) {
  at::ScalarType found = at::ScalarType::Undefined;
  for (size_t i = 0; i < arguments.tensors.size(); ++i) {
    if ((rule.tensors >> i & 1) && arguments.tensors[i].has_value()) {
      const at::Tensor& tensor = *arguments.tensors[i];
      const at::ScalarType own = tensor.scalar_type();
      const bool is_other = found != at::ScalarType::Undefined && own != found;
      if (is_other || tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
        return at::ScalarType::Undefined;
      }
      found = own;
    }
  }
  return found;
}

/// The dtype of the tensors alone.
inline at::ScalarType promoted(const Rule& rule, const Arguments& arguments) {
  const at::ScalarType same = same_dtype(rule, arguments);
  if (same != at::ScalarType::Undefined) {
    return same;
  }
  at::native::ResultTypeState state = {};
  for (size_t i = 0; i < arguments.tensors.size(); ++i) {
    if ((rule.tensors >> i & 1) && arguments.tensors[i].has_value()) {
      state = at::native::update_result_type_state(*arguments.tensors[i], state);
    }
  }
  return at::native::result_type(state);
}

/// The category that the numbers of a rule have.
inline Category highest(const Rule& rule, const Arguments& arguments) {
  Category found = rule.least;
  for (size_t i = 0; i < arguments.scalars.size(); ++i) {
    if (rule.numbers >> i & 1) {
      found = std::max(found, category_of(arguments.scalars[i].type()));
    }
  }
  return found;
}

inline at::ScalarType dtype_of(const Rule& rule, const Arguments& arguments) {
  if (rule.is_bool || rule.cast != at::ScalarType::Undefined) {
    return rule.is_bool ? at::kBool : rule.cast;
  }
  const at::ScalarType dtype = promoted(rule, arguments);
  const bool is_known = dtype != at::ScalarType::Undefined; // else numbers alone decide
  const at::ScalarType own = is_known ? dtype : at::kBool;
  const Category least = highest(rule, arguments);
  return least <= category_of(own) ? own : promote_with_scalar(own, wrapped(least));
}

/// Whether a tensor would be rounded to the 16-bit floats that the others are, before anything is
/// computed of it: what the dtype has exactly is not.
inline bool is_rounded_to(at::ScalarType common, const at::Tensor& tensor) {
  const at::ScalarType real = c10::toRealValueType(common);
  const at::ScalarType own = c10::toRealValueType(tensor.scalar_type());
  const bool is_exact = at::isIntegralType(own, /*includeBool=*/true) && at::elementSize(own) == 1;
  return at::isReducedFloatingType(real) && own != real && !is_exact;
}

/// A dtype of floats, or of complex numbers where another is one.
inline at::ScalarType in_precision(at::ScalarType like, at::ScalarType real) {
  return at::isComplexType(like) ? c10::toComplexType(real) : real;
}

/// What a result is computed in that would be rounded to the dtype of the others: one of numbers, of
/// which tensors of other dtypes say no more than which, or of integers and a float.
inline at::ScalarType computed_for(
    const Rule& result, at::ScalarType common, const Arguments& arguments) {
  const at::ScalarType real = c10::toRealValueType(common);
  const bool is_said = result.is_bool || result.cast != at::ScalarType::Undefined;
  if (!at::isFloatingType(real) || is_said) {
    return common;
  }
  const at::ScalarType dtype = c10::toRealValueType(dtype_of(result, arguments));
  const bool is_other = at::isReducedFloatingType(real) && dtype != real && dtype != at::kBool;
  return in_precision(common, dtype == at::kDouble ? at::kDouble : is_other ? at::kFloat : real);
}

/// Whether what is computed in one dtype has every number of another. A tensor without dimensions may
/// have a larger one than all that is computed together.
inline bool is_exact_in(at::ScalarType common, at::ScalarType dtype) {
  if (dtype == at::ScalarType::Undefined || dtype == at::kBool) {
    return true;
  }
  if (at::isComplexType(common)) {
    return is_exact_in(c10::toRealValueType(common), c10::toRealValueType(dtype));
  }
  const at::ScalarType computed = at::toOpMathType(common);
  if (at::isFloatingType(common) && at::isIntegralType(dtype, /*includeBool=*/false)) {
    return at::elementSize(dtype) <= (computed == at::kDouble ? 4 : 2);
  }
  return c10::promoteTypes(computed, dtype) == computed;
}

/// Refuses a number that a dtype of integers does not have. A negative one may wrap around, as in
/// ATen's comparisons, where no result has another dtype.
inline void check_fits(
    const Expression& op, at::ScalarType dtype, int64_t number, bool may_wrap = true) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !c10::isBarebonesUnsignedType(dtype), op.name, ": not implemented for ", dtype);
  const bool fits = (may_wrap || number >= 0 || dtype != at::kByte) &&
                    AT_DISPATCH_SWITCH(dtype, "check_fits", AT_DISPATCH_CASE_INTEGRAL_TYPES([&] {
                                         return !c10::overflows<scalar_t, int64_t>(number);
                                       }));
  TORCH_CHECK(fits, op.name, ": ", number, " is no ", dtype, ", in which its tensors are computed");
}

/// Refuses a call whose integers would be computed as floats, of which not every one is exact, one
/// that compares numbers which the dtype has not, and one that is given such a number.
inline void check_exact(const Expression& op, const Arguments& arguments) {
  for (const at::Scalar& number : arguments.scalars) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        !number.isComplex() || op.takes_complex,
        op.name,
        ": not implemented for complex numbers, as ",
        number);
  }
  const at::ScalarType common = dtype_of(op.common, arguments);
  for (const Rule& rule : op.compared) {
    const at::ScalarType dtype = promoted(rule, arguments);
    TORCH_CHECK_NOT_IMPLEMENTED(
        is_exact_in(common, dtype),
        op.name,
        ": tensors of ",
        dtype,
        " would be compared in ",
        common,
        ", which rounds some; compare them before, and pass the condition as a bool tensor");
  }
  if (at::isFloatingType(common) || at::isComplexType(common)) {
    for (size_t i = 0; i < op.results; ++i) {
      const Rule& rule = op.rules[i];
      const at::ScalarType dtype = dtype_of(rule, arguments);
      const bool counts = op.has_rows && rule.tensors == 0; // elements of a row, or it is cast
      TORCH_CHECK_NOT_IMPLEMENTED(
          rule.is_bool || counts || !at::isIntegralType(dtype, /*includeBool=*/true),
          op.name,
          ": a result of ",
          dtype,
          " would be computed in ",
          common,
          ", the dtype of all its tensors and numbers; convert its tensors before");
    }
  } else if (at::isIntegralType(common, /*includeBool=*/false)) {
    const auto is_other = [&](const Rule& rule) {
      return !rule.is_bool && dtype_of(rule, arguments) != common;
    };
    const Rule* const end = op.rules + op.results;
    const Rule* const of_numbers = std::find_if(
        op.rules, end, [&](const Rule& rule) { return rule.tensors == 0 && is_other(rule); });
    TORCH_CHECK_NOT_IMPLEMENTED(
        of_numbers == end || !op.computes_numbers,
        op.name,
        ": a result of ",
        dtype_of(*of_numbers, arguments),
        " would be computed in ",
        common,
        ", the dtype of all its tensors and numbers; convert its tensors before");
    const bool is_result = std::any_of(op.rules, end, is_other);
    for (const Number& number : arguments.numbers) {
      const bool is_whole = number.is_integral || (number.real == std::floor(number.real) &&
                                                   std::abs(number.real) < 9e18);
      TORCH_CHECK(is_whole, op.name, ": ", number.real, " is no ", common);
      const int64_t whole = number.is_integral ? number.integer : static_cast<int64_t>(number.real);
      check_fits(op, common, whole, /*may_wrap=*/!is_result);
    }
    check_fits(op, common, op.least_number, /*may_wrap=*/!is_result);
    check_fits(op, common, op.largest_number);
    const bool has_negative_power =
        std::any_of(op.exponents.begin(), op.exponents.end(), [&](size_t i) {
          return arguments.numbers[i].real < 0;
        });
    TORCH_CHECK(
        !op.has_negative_power && !has_negative_power,
        op.name,
        ": integers have no negative powers, which are no integers");
  }
}

/// The wrapped number that raises the dtype of the tensors to that of the call; undefined where
/// none is needed.
inline at::Tensor raising(const Rule& common, const Arguments& arguments) {
  if (dtype_of(common, arguments) == promoted(common, arguments)) {
    return at::Tensor();
  }
  return at::native::wrapped_scalar_tensor(wrapped(highest(common, arguments)));
}

} // namespace fused
} // namespace v1
} // namespace torchext
