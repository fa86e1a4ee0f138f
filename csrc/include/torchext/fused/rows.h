// SPDX-License-Identifier: BSD-3-Clause
//
// What the loop of an expression of rows is told: where its operands are, and how long a row is.
// Plain values, which code that is compiled for several instruction sets shares.
#pragma once

#include <c10/core/ScalarTypeToTypeMeta.h>
#include <torchext/fused/call.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace torchext {
inline namespace v1 {
namespace fused {

/// Which time it is that a row is gone over; that behind the last one is for what is left to do.
template <size_t index>
using Pass = std::integral_constant<size_t, index>;

/// How many numbers become one.
enum class Reduce { kSum, kProduct, kLargest, kLeast };

/// A reduction of a pass, and the number of the row that it is.
struct Reduction {
  Reduce how;
  size_t slot;
};

/// One of `count` equal parts of rows, in their order: a row itself of one.
struct Part {
  int index;
  int count;
};

/// Where what is computed stands: in which of the operator's results, and as which part of its rows.
struct Place {
  size_t result;
  int index;
  int count;
};

/// The type that elements of a result are stored as: that which is computed in, or is cast to.
template <c10::ScalarType cast, typename T>
struct StoredAs {
  using type = c10::impl::ScalarTypeToCPPTypeT<cast>;
};

template <typename T>
struct StoredAs<c10::ScalarType::Undefined, T> {
  using type = T;
};

template <typename Op, typename T, size_t result>
using Stored = typename StoredAs<Op::rules[result].cast, T>::type;

/// Whether a type of floats has an integer.
template <typename S>
C10_HOST_DEVICE inline bool is_exact(int64_t integer) {
  const S found = static_cast<S>(integer);
  return found < S(9223372036854775808.0) && static_cast<int64_t>(found) == integer;
}

constexpr int8_t kMissing = -1, kGiven = -2, kSummed = -3;

/// The operands of one call: see Call. `strides` are in bytes, those from one element of a row to the
/// next: rows are dense, or 0.
struct RowCall {
  const char* name;
  const char* const* input_names;
  const int8_t* results;   // kSummed: it is no operand, and lies in `sums`
  const int8_t* inputs;    // kGiven: it is there, and nothing is read of it
  const int64_t* strides;  // by operand
  const bool* is_integral; // by input: rows have one int64 of it
  const Number* numbers;
  const bool* conditions;
  int operands;
  int64_t length;
  // Where a result is the sum of all rows: a row of sums for each part of them, in the precision that
  // is computed in, by result; which part the rows of a call of the loop are of.
  char* const* sums;
  int64_t parts;
  int64_t part;
};

/// Computes all rows: what TensorIterator hands to a loop in two dimensions.
using RowLoop =
    void (*)(const RowCall& call, char** data, const int64_t* strides, int64_t size, int64_t rows);

/// The loops of an expression of rows, by the number of their dtype in c10.
struct RowLoops {
  static constexpr size_t dtypes = Loops::dtypes;
  RowLoop of[dtypes] = {};
};

/// What whole tensors are computed of, as values of type V.
template <typename V>
struct GivenRows : Given<V> {
  V length;   // of rows
  V position; // of each element in its row
};

/// What the elements of a row are computed of.
template <typename V>
struct GivenElements : Given<V> {
  const V* numbers_of_row;
  const bool* holds; // the conditions of the row
  const V* kept;     // what an earlier pass has computed
  V position;
};

} // namespace fused
} // namespace v1
} // namespace torchext
