// SPDX-License-Identifier: BSD-3-Clause
//
// The batching rules: with `vmap:` one call of the operator for all examples of a batch, without it
// a call for each. Boxed: they serve every schema, in-place forms included.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/library.h>
#include <torchext/shape.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {

/// What a batching rule knows of its operator beside the schema.
struct BatchedOperator {
  bool draws = false;         // random numbers
  bool differentiable = true; // whether its results can require grad
  // Tensor arguments whose shapes the operator's rule compares with one another or gives a result;
  // those of which it asks what the batch dimension would change.
  std::vector<std::string> one_shape = {};
  std::vector<std::string> examined = {};
  // Those with rows of which it asks what is so of a batch only from so many dimensions on, or where
  // each of them is a row alone.
  std::vector<std::pair<std::string, int64_t>> least_ranks = {};
  // Of an operator along rows: the tensors that rows have one number of, and those whose sizes a
  // result has, with which result that is.
  std::vector<std::string> of_rows = {};
  std::vector<std::pair<std::string, int64_t>> totals = {};
};

/// What must hold of a call, as an example of the batch sees its arguments, for a rule to serve it.
using BatchingCondition = bool (*)(const std::vector<c10::IValue>& values);

/// How many rows of a result come of one of the leading dimension, in an example of the batch.
using RowsOfRow = c10::SymInt (*)(const std::vector<c10::IValue>& values);

/// An argument of a call, for what such a function asks.
template <typename T>
T unboxed(const c10::IValue& value) {
  return value.to<T>();
}

template <>
inline c10::SymInt unboxed(const c10::IValue& value) {
  return value.toSymInt();
}

template <>
inline std::optional<c10::SymInt> unboxed(const c10::IValue& value) {
  return value.isNone() ? std::nullopt : std::make_optional(value.toSymInt());
}

template <>
inline std::vector<c10::SymInt> unboxed(const c10::IValue& value) {
  return value.toSymIntVector();
}

torch::CppFunction each_example(BatchedOperator op = {});

torch::CppFunction pointwise_rule(BatchingCondition condition = nullptr, BatchedOperator op = {});

/// rows: the arguments that have the leading dimension.
torch::CppFunction leading_rule(
    std::initializer_list<const char*> rows,
    BatchingCondition condition = nullptr,
    BatchedOperator op = {},
    RowsOfRow rows_of_row = nullptr);

torch::CppFunction rows_rule(BatchedOperator op = {});

torch::CppFunction randomness_of_own_rule();

torch::CppFunction refused_random_out();

} // namespace v1
} // namespace torchext
