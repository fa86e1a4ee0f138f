// SPDX-License-Identifier: BSD-3-Clause
//
// What the rules of `meta:` compute with: sizes as SymInt, symbolic or not. A condition on symbols
// that must hold becomes a runtime assertion of a traced graph rather than a guard.
#pragma once

#include <ATen/ExpandUtils.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/SymBool.h>
#include <c10/core/SymFloat.h>
#include <c10/core/SymInt.h>
#include <c10/core/WrapDimMinimal.h>
#include <c10/util/DimVector.h>
#include <torchext/generated/arguments.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace torchext {
inline namespace v1 {
namespace shape {

using Sizes = c10::SymDimVector;
using SizesRef = c10::SymIntArrayRef;

/// A shape of its own, from any list of integers.
inline Sizes sizes(SizesRef values) {
  return Sizes(values.begin(), values.end());
}

inline Sizes sizes(at::IntArrayRef values) {
  return Sizes(values.begin(), values.end());
}

inline bool is_there(const at::Tensor& tensor) {
  return tensor.defined();
}

inline bool is_there(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() && tensor->defined();
}

template <typename T>
bool is_there(const std::optional<T>& value) {
  return value.has_value();
}

/// Whether a condition holds; on symbols it is asserted to.
inline bool holds(const c10::SymBool& condition) {
  return condition.expect_true(__FILE__, __LINE__);
}

inline c10::SymBool equal(const c10::SymInt& a, const c10::SymInt& b) {
  return a.sym_eq(b);
}

inline c10::SymBool not_equal(const c10::SymInt& a, const c10::SymInt& b) {
  return a.sym_ne(b);
}

inline c10::SymBool less(const c10::SymInt& a, const c10::SymInt& b) {
  return a.sym_lt(b);
}

inline c10::SymBool at_most(const c10::SymInt& a, const c10::SymInt& b) {
  return a.sym_le(b);
}

inline c10::SymBool greater(const c10::SymInt& a, const c10::SymInt& b) {
  return a.sym_gt(b);
}

inline c10::SymBool at_least(const c10::SymInt& a, const c10::SymInt& b) {
  return a.sym_ge(b);
}

inline c10::SymBool same(SizesRef a, SizesRef b) {
  c10::SymBool equal = a.size() == b.size();
  for (size_t i = 0; a.size() == b.size() && i < a.size(); ++i) {
    equal = equal.sym_and(a[i].sym_eq(b[i]));
  }
  return equal;
}

/// Both conditions; the second is not looked at where the first is known to be false. Of symbols both
/// are, unless there is nothing to look at then: the first is guarded on.
template <typename F>
c10::SymBool both(const c10::SymBool& first, const F& second) {
  const std::optional<bool> known = first.maybe_as_bool();
  if (known.has_value()) {
    return *known ? c10::SymBool(second()) : c10::SymBool(false);
  }
  try {
    return first.sym_and(second());
  } catch (const c10::Error&) {
    return first.guard_bool(__FILE__, __LINE__) ? c10::SymBool(second()) : c10::SymBool(false);
  }
}

/// One of them; the second is not looked at where the first is known to be true. Of symbols as above.
template <typename F>
c10::SymBool either(const c10::SymBool& first, const F& second) {
  const std::optional<bool> known = first.maybe_as_bool();
  if (known.has_value()) {
    return *known ? c10::SymBool(true) : c10::SymBool(second());
  }
  try {
    return first.sym_or(second());
  } catch (const c10::Error&) {
    return first.guard_bool(__FILE__, __LINE__) ? c10::SymBool(true) : c10::SymBool(second());
  }
}

inline c10::SymBool negated(const c10::SymBool& condition) {
  return condition.sym_not();
}

/// Which way a rule goes; symbols are guarded on, and data must not decide.
inline bool decided(const c10::SymBool& condition) {
  return condition.guard_bool(__FILE__, __LINE__);
}

/// Whether `value or other` is the first one: as in Python, where 0 is not.
inline bool is_true(const std::optional<at::ScalarType>& value) {
  return value.has_value();
}

template <typename T>
bool is_true(const std::optional<T>& value) {
  return value.has_value() && decided(c10::SymInt(*value).sym_ne(0));
}

/// Refuses a tensor that is missing though a result depends on it.
template <typename Tensor>
void require(const char* op, const char* name, const Tensor& tensor) {
  TORCH_CHECK(is_there(tensor), op, ": the results depend on ", name, ", which is missing");
}

// Integers.

inline c10::SymInt floor_divide(
    const c10::SymInt& a, const c10::SymInt& b, const char* op, const char* text) {
  TORCH_CHECK(holds(b.sym_ne(0)), op, ": ", text, " divides by zero");
  const std::optional<int64_t> x = a.maybe_as_int();
  const std::optional<int64_t> y = b.maybe_as_int();
  if (x.has_value() && y.has_value()) {
    return *x / *y - static_cast<int64_t>(*x % *y != 0 && (*x < 0) != (*y < 0));
  }
  return a / b; // of symbols: floor division already
}

inline c10::SymInt modulo(
    const c10::SymInt& a, const c10::SymInt& b, const char* op, const char* text) {
  TORCH_CHECK(holds(b.sym_ne(0)), op, ": ", text, " divides by zero");
  const std::optional<int64_t> x = a.maybe_as_int();
  const std::optional<int64_t> y = b.maybe_as_int();
  if (x.has_value() && y.has_value()) {
    const int64_t rest = *x % *y;
    return rest != 0 && (rest < 0) != (*y < 0) ? rest + *y : rest;
  }
  return a % b;
}

inline c10::SymInt smaller(const c10::SymInt& a, const c10::SymInt& b) {
  return a.min(b);
}

inline c10::SymInt larger(const c10::SymInt& a, const c10::SymInt& b) {
  return a.max(b);
}

inline int64_t as_index(const c10::SymInt& value) {
  return value.guard_int(__FILE__, __LINE__);
}

// Parts of shapes.

inline c10::SymInt size(
    SizesRef values, const c10::SymInt& index, const char* op, const char* text) {
  const auto count = static_cast<int64_t>(values.size());
  const int64_t given = as_index(index);
  const int64_t i = given < 0 ? given + count : given;
  TORCH_CHECK_INDEX(
      0 <= i && i < count, op, ": ", text, " has no element ", given, ", it is ", values);
  return values[i];
}

/// values[first:last], as Python slices.
inline Sizes slice(
    SizesRef values,
    const std::optional<c10::SymInt>& first,
    const std::optional<c10::SymInt>& last) {
  const auto count = static_cast<int64_t>(values.size());
  const auto clamped = [count](int64_t i) {
    i = i < 0 ? i + count : i;
    return i < 0 ? 0 : i > count ? count : i;
  };
  const int64_t begin = first.has_value() ? clamped(as_index(*first)) : 0;
  const int64_t end = last.has_value() ? clamped(as_index(*last)) : count;
  return begin < end ? sizes(values.slice(begin, end - begin)) : Sizes();
}

inline Sizes concat(SizesRef a, SizesRef b) {
  Sizes joined = sizes(a);
  joined.append(b.begin(), b.end());
  return joined;
}

inline Sizes replace(SizesRef values, const c10::SymInt& dim, const c10::SymInt& value) {
  Sizes replaced = sizes(values);
  const auto i = c10::maybe_wrap_dim(as_index(dim), static_cast<int64_t>(values.size()));
  if (!replaced.empty()) {
    replaced[i] = value;
  }
  return replaced;
}

/// What a function gives; its error says of which operator the rule is.
template <typename F>
auto named(const char* op, const F& call) {
  try {
    return call();
  } catch (c10::Error& error) {
    error.add_context(c10::str("in the rule of ", op));
    throw;
  }
}

template <typename... Rest>
Sizes broadcast(const Sizes& first, const Rest&... rest) {
  Sizes found = first;
  ((found = at::infer_size_symdimvector(found, rest)), ...);
  return found;
}

/// The shape of a reduction over `dims`; over all dimensions where there are none.
inline Sizes reduce(SizesRef values, SizesRef dims, bool keepdim) {
  const auto count = static_cast<int64_t>(values.size());
  c10::SmallVector<bool, 8> reduced(values.size(), dims.empty());
  for (const c10::SymInt& dim : dims) {
    const int64_t i = c10::maybe_wrap_dim(as_index(dim), count);
    if (count > 0) {
      TORCH_CHECK(!reduced[i], "dim ", i, " appears multiple times in the list of dims");
      reduced[i] = true;
    }
  }
  Sizes found;
  for (int64_t i = 0; i < count; ++i) {
    if (!reduced[i]) {
      found.push_back(values[i]);
    } else if (keepdim) {
      found.emplace_back(1);
    }
  }
  return found;
}

inline Sizes reduce(SizesRef values, const c10::SymInt& dim, bool keepdim) {
  return reduce(values, SizesRef(&dim, 1), keepdim);
}

// Lists of tensors.

template <typename List>
c10::SymInt length(const List& tensors) {
  return static_cast<int64_t>(tensors.size());
}

/// A number of a rule: an integer stays one, so that it is compared exactly, as in Python.
struct Number {
  Number(c10::SymInt value) : integer(std::move(value)), real(0.0) {}
  Number(int64_t value) : Number(c10::SymInt(value)) {}
  Number(int value) : Number(static_cast<int64_t>(value)) {}
  Number(c10::SymFloat value) : real(std::move(value)) {}
  Number(double value) : real(value) {}

  c10::SymFloat as_float() const {
    return integer.has_value() ? c10::SymFloat(*integer) : real;
  }

  std::optional<c10::SymInt> integer;
  c10::SymFloat real;
};

/// A Scalar as a rule reads it, which is refused where it is complex.
inline Number real(const char* op, const char* name, const at::Scalar& value) {
  TORCH_CHECK(!value.isComplex(), op, ": ", name, " must be real, got ", value.toComplexDouble());
  if (value.isFloatingPoint()) {
    return value.isSymbolic() ? Number(value.toSymFloat()) : Number(value.toDouble());
  }
  return value.isBoolean() ? Number(value.toBool() ? 1 : 0) : Number(value.toSymInt());
}

// Numbers and their conditions, symbolic or not.
namespace numbers {

inline Number negative(const Number& a) {
  return a.integer.has_value() ? Number(c10::SymInt(0) - *a.integer)
                               : Number(c10::SymFloat(0.0) - a.real);
}

/// -1, 0 or 1 as an integer is less than, equal to or greater than another number; nan where that is.
inline double order(int64_t a, double b) {
  constexpr double kEnd = 9223372036854775808.0; // 2 ** 63
  if (std::isnan(b) || b >= kEnd || b < -kEnd) {
    return std::isnan(b) ? b : b > 0 ? -1.0 : 1.0;
  }
  const auto whole = static_cast<int64_t>(b); // towards zero
  if (a != whole) {
    return a < whole ? -1.0 : 1.0;
  }
  const double rest = b - static_cast<double>(whole);
  return rest > 0 ? -1.0 : rest < 0 ? 1.0 : 0.0;
}

template <typename Compare>
c10::SymBool compared(const Number& a, const Number& b, const Compare& compare) {
  if (a.integer.has_value() && b.integer.has_value()) {
    return compare(*a.integer, *b.integer);
  }
  const auto left = a.integer.has_value() ? a.integer->maybe_as_int() : std::nullopt;
  const auto right = b.integer.has_value() ? b.integer->maybe_as_int() : std::nullopt;
  const c10::SymFloat zero = 0.0;
  if (left.has_value() && !b.real.is_symbolic()) {
    return compare(c10::SymFloat(order(*left, b.real.as_float_unchecked())), zero);
  }
  if (right.has_value() && !a.real.is_symbolic()) {
    return compare(zero, c10::SymFloat(order(*right, a.real.as_float_unchecked())));
  }
  return compare(a.as_float(), b.as_float());
}

inline c10::SymBool equal(const Number& a, const Number& b) {
  return compared(a, b, [](const auto& x, const auto& y) { return x.sym_eq(y); });
}

inline c10::SymBool not_equal(const Number& a, const Number& b) {
  return compared(a, b, [](const auto& x, const auto& y) { return x.sym_ne(y); });
}

inline c10::SymBool less(const Number& a, const Number& b) {
  return compared(a, b, [](const auto& x, const auto& y) { return x.sym_lt(y); });
}

inline c10::SymBool at_most(const Number& a, const Number& b) {
  return compared(a, b, [](const auto& x, const auto& y) { return x.sym_le(y); });
}

inline c10::SymBool greater(const Number& a, const Number& b) {
  return compared(a, b, [](const auto& x, const auto& y) { return x.sym_gt(y); });
}

inline c10::SymBool at_least(const Number& a, const Number& b) {
  return compared(a, b, [](const auto& x, const auto& y) { return x.sym_ge(y); });
}

} // namespace numbers

/// The first tensor of some arguments that is there.
template <typename... Arguments>
at::Tensor first_tensor(const Arguments&... arguments) {
  at::Tensor found;
  const auto look = [&found](const at::Tensor& tensor) {
    found = found.defined() ? found : tensor;
  };
  (for_each_tensor(look, arguments), ...);
  return found;
}

inline const at::Tensor& item(at::TensorList tensors, const c10::SymInt& index, const char* op) {
  const auto count = static_cast<int64_t>(tensors.size());
  const int64_t given = as_index(index);
  const int64_t i = given < 0 ? given + count : given;
  TORCH_CHECK_INDEX(0 <= i && i < count, op, ": the list has no tensor ", given);
  return tensors[i];
}

/// The shape of tensors that are joined along a dimension; the others must agree.
inline Sizes cat(at::TensorList tensors, const c10::SymInt& dim) {
  TORCH_CHECK(!tensors.empty(), "expected a list with at least one tensor");
  Sizes found = sizes(tensors[0].sym_sizes());
  TORCH_CHECK(!found.empty(), "a tensor without dimensions cannot be joined to others");
  const int64_t along = c10::maybe_wrap_dim(as_index(dim), static_cast<int64_t>(found.size()));
  for (const at::Tensor& tensor : tensors.slice(1)) {
    Sizes other = sizes(tensor.sym_sizes());
    TORCH_CHECK(
        other.size() == found.size(),
        "tensors of ",
        found.size(),
        " and ",
        other.size(),
        " dimensions cannot be joined");
    const c10::SymInt joined = found[along] + other[along];
    other[along] = found[along];
    TORCH_CHECK(
        holds(same(found, other)),
        "tensors of shape ",
        found,
        " and ",
        tensor.sym_sizes(),
        " cannot be joined along dimension ",
        along);
    found[along] = joined;
  }
  return found;
}

// Dtypes.

template <typename... Arguments>
at::ScalarType promote(const Arguments&... arguments) {
  at::native::ResultTypeState state;
  const auto look = [&state](const at::Tensor& tensor) {
    if (tensor.defined()) {
      state = at::native::update_result_type_state(tensor, state);
    }
  };
  (for_each_tensor(look, arguments), ...);
  const at::ScalarType dtype = at::native::result_type(state);
  TORCH_CHECK(dtype != at::ScalarType::Undefined, "there is no tensor whose dtype a result has");
  return dtype;
}

template <typename... Arguments>
at::ScalarType promote_to_float(const Arguments&... arguments) {
  const at::ScalarType dtype = promote(arguments...);
  return c10::isIntegralType(dtype, /*includeBool=*/true) ? c10::get_default_dtype_as_scalartype()
                                                          : dtype;
}

/// The options of a result: on the device of the first tensor that is there.
template <typename... Arguments>
at::TensorOptions options(at::ScalarType dtype, const Arguments&... arguments) {
  at::TensorOptions found = at::TensorOptions().dtype(dtype);
  const auto look = [&found](const at::Tensor& tensor) {
    if (tensor.defined() && !found.device_opt().has_value()) {
      found = found.device(tensor.device());
    }
  };
  (for_each_tensor(look, arguments), ...);
  return found;
}

// Checks. Each message names the operator, what was expected and what came.

inline void check_shape(
    const char* op, const char* name, const at::Tensor& tensor, SizesRef expected) {
  TORCH_CHECK(
      holds(same(tensor.sym_sizes(), expected)),
      op,
      ": ",
      name,
      " must have shape ",
      expected,
      ", got ",
      tensor.sym_sizes());
}

inline void check_dims(
    const char* op,
    const char* name,
    const at::Tensor& tensor,
    const char* how,
    const c10::SymBool& condition,
    const c10::SymInt& count) {
  TORCH_CHECK(
      holds(condition),
      op,
      ": ",
      name,
      " must have ",
      how,
      count,
      count == 1 ? " dimension" : " dimensions",
      ", got ",
      tensor.dim());
}

inline void check_dtype(
    const char* op,
    const char* name,
    const at::Tensor& tensor,
    const char* how,
    bool holds,
    at::ScalarType expected) {
  TORCH_CHECK(
      holds,
      op,
      ": ",
      name,
      " must ",
      how,
      "have dtype ",
      expected,
      ", got ",
      tensor.scalar_type());
}

inline void check_floating(const char* op, const char* name, const at::Tensor& tensor) {
  TORCH_CHECK(
      at::isFloatingType(tensor.scalar_type()),
      op,
      ": ",
      name,
      " must have a floating point dtype, got ",
      tensor.scalar_type());
}

/// Raises IndexError where `dim` is no dimension of the tensor.
inline void check_dim(const at::Tensor& tensor, const c10::SymInt& dim) {
  c10::maybe_wrap_dim(as_index(dim), tensor.dim());
}

inline void check_value(
    const char* op,
    const char* left,
    const char* rest,
    const c10::SymInt& value,
    c10::SymBool (*compare)(const c10::SymInt&, const c10::SymInt&),
    const c10::SymInt& expected) {
  TORCH_CHECK(holds(compare(value, expected)), op, ": ", left, " must be ", rest, ", got ", value);
}

/// The same of a value that depends on a tensor.
inline void check_value(
    const char* op,
    const char* left,
    const char* rest,
    const c10::SymInt& value,
    c10::SymBool (*compare)(const c10::SymInt&, const c10::SymInt&),
    const c10::SymInt& expected,
    const char* name,
    const at::Tensor& tensor) {
  TORCH_CHECK(
      holds(compare(value, expected)),
      op,
      ": ",
      left,
      " must be ",
      rest,
      ", got ",
      value,
      ", where ",
      name,
      " has shape ",
      tensor.sym_sizes());
}

inline void check(const char* op, const char* text, const c10::SymBool& condition) {
  TORCH_CHECK(holds(condition), op, ": ", text, " must hold");
}

/// The same with words that are made where it does not hold.
template <typename Words>
void check_that(const c10::SymBool& condition, const Words& words) {
  TORCH_CHECK(holds(condition), words());
}

/// A value as the words of a check have it.
inline std::string shown(SizesRef sizes) {
  return c10::str(sizes);
}

inline const char* shown(bool value) {
  return value ? "True" : "False";
}

inline std::string shown(const c10::SymBool& value) {
  const std::optional<bool> known = value.maybe_as_bool();
  return known.has_value() ? shown(*known) : c10::str(value);
}

/// With the digits that tell it from other numbers.
inline std::string shown(double value) {
  char text[32];
  for (int digits = 6;; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (digits == 17 || std::strtod(text, nullptr) == value) {
      return text;
    }
  }
}

inline std::string shown(const Number& value) {
  if (value.integer.has_value()) {
    return c10::str(*value.integer);
  }
  return value.real.is_symbolic() ? c10::str(value.real) : shown(value.real.as_float_unchecked());
}

/// The words for a value that there may be none of.
template <typename F>
std::string shown_if_any(const F& words) {
  try {
    return words();
  } catch (const c10::Error&) {
    return "None";
  }
}

/// The same with the words of the rule.
inline void check(const char* message, const c10::SymBool& condition) {
  TORCH_CHECK(holds(condition), message);
}

/// The sizes that a rule gives a result.
inline Sizes result_sizes(const char* op, const char* name, SizesRef values) {
  for (const c10::SymInt& value : values) {
    TORCH_CHECK(
        holds(value.sym_ge(0)), op, ": the rule gives ", name, " a negative size, ", values);
  }
  return sizes(values);
}

} // namespace shape
} // namespace v1
} // namespace torchext
