// SPDX-License-Identifier: BSD-3-Clause
//
// What runs the loops of expressions of rows: the sizes of a call, the iterator over its rows, and its
// composite and Meta kernels.
#pragma once

#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <torchext/fused/operands.h>
#include <torchext/fused/rows.h>

#include <vector>

namespace torchext {
inline namespace v1 {
namespace fused {

/// What is known of an expression of rows.
struct RowExpression : Expression {
  const bool* are_read;      // inputs of which more counts than whether they are there
  const bool* of_rows;       // those that rows have one number of
  const bool* indices;       // those of them that choose an element
  const Part* slices;        // which part of its rows an input is
  const Place* places;       // of what is computed
  const int* sizes;          // the input whose size it is summed to, or -1
  const bool* row_results;   // results that rows have one number of
  const bool* may_be_inputs; // those that may be an argument itself
  bool refuses_empty;
  bool uses_length;
  bool uses_positions;
  bool counts_elements; // computes integers that are as large as a row is long
  bool needs_counts;    // exact ones, though ATen's operators compare places as integers
  void (*compute)(const GivenRows<Value>& given, Value* results);
};

/// What is known of an operator: an ElementExpression, or a RowExpression.
template <typename Op, bool has_rows = Op::has_rows>
inline constexpr ElementExpression described = {expression<Op>(), &Op::template compute<Value>};

template <typename Op>
inline constexpr RowExpression described<Op, true> = {
    expression<Op>(),
    Op::are_read,
    Op::of_rows,
    Op::indices,
    Op::slices,
    Op::places,
    Op::sizes,
    Op::row_results,
    Op::may_be_inputs,
    Op::refuses_empty,
    Op::length_slot >= 0,
    Op::uses_positions,
    Op::counts_elements,
    Op::needs_counts,
    &Op::template compute<Value>,
};

/// The tensor whose size a result is summed to; none where there is no such one.
inline at::OptionalTensorRef like(const RowExpression& op, const Arguments& arguments, size_t i) {
  return op.sizes[i] >= 0 ? arguments.tensors[op.sizes[i]] : at::OptionalTensorRef();
}

/// The sizes of a call: those that rows are counted by, and how long a row is.
struct RowSizes {
  c10::SymDimVector rows;
  c10::SymInt length = 1;

  /// Those of what is computed, or of the whole that it is a part of.
  c10::SymDimVector of_result(const RowExpression& op, size_t result, bool is_whole = false) const {
    c10::SymDimVector found = rows;
    if (!op.row_results[result]) {
      found.push_back(is_whole ? length * op.places[result].count : length);
    }
    return found;
  }
};

/// Takes in the sizes of a tensor, with which those before broadcast.
inline void take_in(
    const RowExpression& op, c10::SymDimVector& sizes, c10::SymIntArrayRef own, size_t input) {
  const auto known = c10::asIntArrayRefSlowOpt(sizes), given = c10::asIntArrayRefSlowOpt(own);
  const size_t both = known && given ? std::min(known->size(), given->size()) : 0;
  for (size_t i = 1; i <= both; ++i) {
    const int64_t size = (*known)[known->size() - i], other = (*given)[given->size() - i];
    TORCH_CHECK(
        size == other || size == 1 || other == 1,
        op.name,
        ": ",
        op.input_names[input],
        " has ",
        other,
        " where the tensors before it have ",
        size,
        ": they do not broadcast");
  }
  sizes = at::infer_size_symdimvector(sizes, own);
}

/// How long the rows of an input are, or the slice that it is of them.
inline c10::SymInt length_of(const RowExpression& op, const c10::SymInt& size, size_t input) {
  const int count = op.slices[input].count;
  if (count == 1) {
    return size;
  }
  TORCH_SYM_CHECK(
      (size % count).sym_eq(0),
      op.name,
      ": ",
      op.input_names[input],
      " has rows of ",
      size,
      " elements, which are not ",
      count,
      " slices of one length");
  return size / count;
}

/// The slice of a tensor that an input is.
inline at::Tensor sliced(
    const RowExpression& op, const at::Tensor& tensor, size_t input, const c10::SymInt& length) {
  const Part& part = op.slices[input];
  return part.count == 1 ? tensor : tensor.narrow_symint(-1, length * part.index, length);
}

inline RowSizes row_sizes(const RowExpression& op, const Arguments& arguments) {
  RowSizes found;
  c10::SymDimVector length;
  for (size_t i = 0; i < op.inputs; ++i) {
    if (!op.are_read[i] || !arguments.tensors[i].has_value()) {
      continue;
    }
    const at::Tensor& tensor = *arguments.tensors[i];
    c10::SymIntArrayRef sizes = tensor.sym_sizes();
    if (!op.of_rows[i]) {
      TORCH_CHECK(
          !sizes.empty(), op.name, ": ", op.input_names[i], " has no dimension, and no rows");
      const c10::SymInt own = length_of(op, sizes.back(), i);
      take_in(op, length, own, i);
      sizes = sizes.slice(0, sizes.size() - 1);
    }
    take_in(op, found.rows, sizes, i);
  }
  found.length = length[0];
  for (size_t i = 0; i < op.inputs; ++i) {
    if (op.slices[i].count > 1 && arguments.tensors[i].has_value()) {
      const c10::SymInt own = (*arguments.tensors[i]).sym_size(-1) / op.slices[i].count;
      TORCH_SYM_CHECK(
          own.sym_eq(found.length),
          op.name,
          ": slices of ",
          op.input_names[i],
          " have ",
          own,
          " elements where rows have ",
          found.length,
          ", with which slices do not broadcast");
    }
  }
  return found;
}

/// The sizes of a call, or an error before anything is computed.
inline RowSizes checked_sizes(const RowExpression& op, const Arguments& arguments) {
  RowSizes sizes = row_sizes(op, arguments);
  check_exact(op, arguments);
  const at::ScalarType common = dtype_of(op.common, arguments);
  if (!op.takes(common)) {
    refuse(op.name, common);
  }
  for (size_t i = 0; i < op.inputs; ++i) {
    if (op.indices[i] && arguments.tensors[i].has_value()) {
      const at::ScalarType dtype = (*arguments.tensors[i]).scalar_type();
      TORCH_CHECK(
          c10::isIntegralType(dtype, /*includeBool=*/false),
          op.name,
          ": ",
          op.input_names[i],
          " is an index, and has ",
          dtype);
    }
  }
  TORCH_CHECK_INDEX(
      !op.refuses_empty || sizes.length.maybe_as_int() != 0,
      op.name,
      ": rows without elements have no largest or least one");
  return sizes;
}

inline at::TensorOptions options_of(const RowExpression& op, const Arguments& arguments) {
  for (size_t i = 0; i < op.inputs; ++i) {
    if (op.are_read[i] && !op.of_rows[i] && arguments.tensors[i].has_value()) {
      return (*arguments.tensors[i]).options();
    }
  }
  return {};
}

inline Results meta_results(
    const RowExpression& op, const Arguments& arguments, at::ArrayRef<bool> wanted) {
  check_all_on_meta(op, arguments, /*may_be_numbers=*/false);
  const RowSizes sizes = checked_sizes(op, arguments);
  const at::TensorOptions options = options_of(op, arguments).device(at::kMeta);
  Results found(op.returns);
  for (size_t i = 0; i < op.results; ++i) {
    const Place& place = op.places[i];
    if (wanted[place.result] && place.index == 0) {
      const at::ScalarType dtype = dtype_of(op.rules[i], arguments);
      const at::OptionalTensorRef summed = like(op, arguments, i);
      const c10::SymDimVector whole = sizes.of_result(op, i, /*is_whole=*/true);
      found[place.result] = at::empty_symint(
          summed.has_value() ? (*summed).sym_sizes() : c10::SymIntArrayRef(whole),
          options.dtype(dtype));
    }
  }
  return found;
}

/// Which of what is computed is wanted, as a part of a result that is.
inline c10::SmallVector<bool, 8> wanted_parts(const RowExpression& op, at::ArrayRef<bool> wanted) {
  c10::SmallVector<bool, 8> found;
  for (size_t i = 0; i < op.results; ++i) {
    found.push_back(wanted[op.places[i].result]);
  }
  return found;
}

/// Whether rows have one integer of an input.
inline bool is_integral(const RowExpression& op, const at::Tensor& tensor, size_t input) {
  return op.of_rows[input] && c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
}

/// Rows of a length, which reductions see whole.
inline at::Tensor as_long(const at::Tensor& rows, const c10::SymInt& length) {
  if (TORCH_GUARD_OR_FALSE(rows.sym_size(-1).sym_eq(length))) {
    return rows;
  }
  c10::SymDimVector sizes(rows.sym_sizes().begin(), rows.sym_sizes().end());
  sizes.back() = length;
  return rows.expand_symint(sizes);
}

constexpr int64_t kCounted = 1 << 24; // so many elements are counted exactly in single precision

/// The dtype of the elements of a call: a larger one than that of all where some, those of a result, or
/// integers that count those of a row would be rounded to that; counts: whether there are such. What
/// rows have one number of is never kept in 16 bits.
inline at::ScalarType computed_in(
    const RowExpression& op, const Arguments& arguments, bool counts) {
  const at::ScalarType common = dtype_of(op.common, arguments);
  at::ScalarType found = counts ? at::kDouble : common;
  for (size_t i = 0; i < op.results; ++i) {
    const at::ScalarType own = computed_for(op.rules[i], common, arguments);
    if (!op.row_results[i] || own == at::kDouble) {
      found = c10::promoteTypes(found, own);
    }
  }
  for (size_t i = 0; i < op.inputs; ++i) {
    const bool is_read = op.are_read[i] && arguments.tensors[i].has_value();
    if (is_read && !is_integral(op, *arguments.tensors[i], i) &&
        is_rounded_to(common, *arguments.tensors[i])) {
      found = c10::promoteTypes(found, at::kFloat);
    }
  }
  return found;
}

/// The expression, written with ATen's operators.
inline Results composite_results(
    const RowExpression& op, const Arguments& arguments, at::ArrayRef<bool> wanted) {
  const RowSizes sizes = checked_sizes(op, arguments);
  // A length that is not known yet may be any.
  const bool counts =
      op.needs_counts && !TORCH_STATICALLY_KNOWN_TRUE(sizes.length.sym_lt(kCounted));
  const at::ScalarType computed = at::toOpMathType(computed_in(op, arguments, counts));
  const at::TensorOptions options = options_of(op, arguments).dtype(computed);
  std::vector<Value> inputs(op.inputs), numbers(op.numbers), results(op.results);
  c10::SmallVector<bool, 16> has(op.inputs + op.conditions);
  for (size_t i = 0; i < op.inputs; ++i) {
    has[i] = arguments.tensors[i].has_value();
    inputs[i] = in_place(op.defaults[i]);
    if (has[i] && op.are_read[i]) {
      const at::Tensor& tensor = *arguments.tensors[i];
      inputs[i] = is_integral(op, tensor, i)
                      ? Value::of_integers(tensor.to(at::kLong).unsqueeze(-1), computed)
                  : op.of_rows[i]
                      ? Value(tensor.to(computed).unsqueeze(-1))
                      : as_long(sliced(op, tensor.to(computed), i, sizes.length), sizes.length);
    }
  }
  for (size_t i = 0; i < op.numbers; ++i) {
    const Number& given = arguments.numbers[i];
    numbers[i] = given.is_integral ? at::Scalar(given.integer) : at::Scalar(given.real);
  }
  std::copy(arguments.conditions, arguments.conditions + op.conditions, has.data() + op.inputs);
  const auto are_wanted = wanted_parts(op, wanted);
  GivenRows<Value> given{{inputs.data(), numbers.data(), has.data(), are_wanted.data()}, {}, {}};
  if (op.uses_length) {
    given.length = at::full({}, at::Scalar(sizes.length), options);
  }
  if (op.uses_positions) {
    given.position = Value::of_integers(
        at::arange(at::Scalar(sizes.length), options.dtype(at::kLong)), computed);
  }
  op.compute(given, results.data());
  Results found(op.returns);
  std::vector<at::Tensor> parts;
  for (size_t i = 0; i < op.results; ++i) {
    if (are_wanted[i]) {
      if (op.may_be_inputs[i] && !results[i].is_number()) {
        results[i] = results[i].tensor().clone(at::MemoryFormat::Contiguous);
      }
      results[i] = apart(results[i], results.data(), i);
      const bool is_column =
          op.row_results[i] && results[i].tensor().defined() && results[i].tensor().dim() > 0;
      const Value value = is_column ? Value(results[i].tensor().squeeze(-1)) : results[i];
      const Place& place = op.places[i];
      const at::ScalarType dtype = dtype_of(op.rules[i], arguments);
      const at::OptionalTensorRef summed = like(op, arguments, i);
      const at::Tensor part = as_result(
          value, arguments, sizes.of_result(op, i), summed.has_value() ? computed : dtype);
      parts.push_back(part.contiguous());
      if (summed.has_value()) {
        parts[0] = at::sum_to(std::move(parts[0]), (*summed).sym_sizes()).to(dtype);
      }
      if (place.index + 1 == place.count) {
        found[place.result] = place.count == 1 ? parts[0] : at::cat(parts, /*dim=*/-1);
        parts.clear();
      }
    }
  }
  return found;
}

/// What rows begin with, or a part of them does: the tensor without its last dimension.
inline at::Tensor beginnings(const at::Tensor& tensor, int64_t begin = 0) {
  return tensor.as_strided(
      tensor.sizes().slice(0, tensor.dim() - 1),
      tensor.strides().slice(0, tensor.dim() - 1),
      tensor.storage_offset() + begin);
}

/// The operands of a call on the CPU, all of one dtype, but for integers that rows have one of.
struct RowOperands {
  Results results;
  at::TensorIteratorConfig config;
  c10::SmallVector<int8_t, 8> result_of, input_of;
  c10::SmallVector<bool, 8> are_integral;
  c10::SmallVector<int64_t, 16> strides; // in a row, of those that are there

  RowOperands(
      const RowExpression& op,
      const Arguments& arguments,
      at::ArrayRef<bool> wanted,
      const RowSizes& sizes,
      at::ScalarType common) {
    config.check_all_same_dtype(false).resize_outputs(false).set_check_mem_overlap(false);
    const at::TensorOptions options = options_of(op, arguments);
    results.resize(op.returns);
    for (size_t i = 0; i < op.results; ++i) {
      const Place& place = op.places[i];
      const bool is_wanted = wanted[place.result];
      const bool is_summed = is_wanted && is_row_for_all(like(op, arguments, i), sizes);
      result_of.push_back(!is_wanted ? kMissing : is_summed ? kSummed : next());
      if (!is_wanted || is_summed) {
        continue;
      }
      at::Tensor& whole = results[place.result];
      if (place.index == 0) {
        // Numbers of rows are few, and have the precision that is computed in.
        const at::ScalarType cast = op.rules[i].cast;
        const at::ScalarType dtype = op.row_results[i]                   ? at::toOpMathType(common)
                                     : cast == at::ScalarType::Undefined ? common
                                                                         : cast;
        whole = at::empty_symint(sizes.of_result(op, i, /*is_whole=*/true), options.dtype(dtype));
      }
      const int64_t begin = place.index * sizes.length.expect_int();
      config.add_owned_output(op.row_results[i] ? whole : beginnings(whole, begin));
      strides.push_back(op.row_results[i] ? 0 : static_cast<int64_t>(whole.element_size()));
    }
    for (size_t i = 0; i < op.inputs; ++i) {
      const bool is_given = arguments.tensors[i].has_value();
      const bool is_there = is_given && op.are_read[i];
      input_of.push_back(is_there ? next() : is_given ? kGiven : kMissing);
      are_integral.push_back(is_there && is_integral(op, *arguments.tensors[i], i));
      if (is_there) {
        add_input(op, *arguments.tensors[i], i, sizes, are_integral[i] ? at::kLong : common);
      }
    }
  }

  int8_t next() const {
    return static_cast<int8_t>(strides.size());
  }

  bool has_sums() const {
    return std::find(result_of.begin(), result_of.end(), kSummed) != result_of.end();
  }

 private:
  /// Whether a tensor has one row, which is broadcast to others.
  static bool is_row_for_all(const at::OptionalTensorRef& tensor, const RowSizes& sizes) {
    const int64_t length = sizes.length.expect_int();
    return tensor.has_value() && (*tensor).numel() == length && (*tensor).dim() > 0 &&
           (*tensor).size(-1) == length &&
           c10::multiply_integers(C10_AS_INTARRAYREF_SLOW(sizes.rows)) > 1;
  }

  void add_input(
      const RowExpression& op,
      const at::Tensor& tensor,
      size_t i,
      const RowSizes& sizes,
      at::ScalarType dtype) {
    c10::SymDimVector all = sizes.rows;
    if (!op.of_rows[i]) {
      all.push_back(sizes.length);
    }
    const bool is_of_row = op.of_rows[i];
    const at::Tensor own = sliced(op, tensor, i, sizes.length).to(dtype);
    const bool is_strided = !is_of_row && own.size(-1) != 1 && own.stride(-1) > 1;
    const at::Tensor expanded = (is_strided ? own.contiguous() : own).expand_symint(all);
    strides.push_back(
        is_of_row ? 0 : expanded.stride(-1) * static_cast<int64_t>(expanded.element_size()));
    config.add_owned_const_input(is_of_row ? expanded : beginnings(expanded));
  }
};

/// Refuses integers that are compared with those of rows, and that a dtype does not have.
inline void check_integers(
    const RowExpression& op, const Arguments& arguments, at::ScalarType computed) {
  for (size_t i = 0; i < op.numbers; ++i) {
    const Number& number = arguments.numbers[i];
    TORCH_CHECK_NOT_IMPLEMENTED(
        !number.is_integral || (computed == at::kDouble ? is_exact<double>(number.integer)
                                                        : is_exact<float>(number.integer)),
        op.name,
        ": ",
        number.integer,
        " is no ",
        computed,
        ", in which integers of rows are compared");
  }
}

/// New results, which a device computes: its `parts` are how many parts there are of so many rows,
/// each with sums of its own, and its `run` is given the dtype that all is computed in, an iterator over
/// the rows, and a call.
template <typename Device>
Results run_over_rows(
    const RowExpression& op,
    const Arguments& arguments,
    at::ArrayRef<bool> wanted,
    const Device& device) {
  const RowSizes sizes = checked_sizes(op, arguments);
  const int64_t length = sizes.length.expect_int();
  const bool counts = op.counts_elements && length >= kCounted;
  TORCH_CHECK_NOT_IMPLEMENTED(
      !counts || op.takes(at::kDouble),
      op.name,
      ": elements of rows of ",
      length,
      " are counted in ",
      at::kDouble,
      ", which `dtypes` leaves out");
  const at::ScalarType common = computed_in(op, arguments, counts);
  if (std::none_of(wanted.begin(), wanted.end(), [](bool is) { return is; })) {
    return Results(op.returns);
  }
  if (length == 0) {
    return composite_results(op, arguments, wanted);
  }
  RowOperands operands(op, arguments, wanted, sizes, common);
  if (std::find(operands.are_integral.begin(), operands.are_integral.end(), true) !=
      operands.are_integral.end()) {
    check_integers(op, arguments, at::toOpMathType(common));
  }
  at::TensorIterator iter = operands.config.build();
  const int64_t parts = operands.has_sums() ? device.parts(iter.numel(), length) : 0;
  std::vector<at::Tensor> sums(op.results);
  std::vector<char*> begins(op.results);
  for (size_t i = 0; i < op.results; ++i) {
    if (operands.result_of[i] == kSummed) {
      const auto options = options_of(op, arguments).dtype(at::toOpMathType(common));
      sums[i] = at::zeros({parts, length}, options);
      begins[i] = static_cast<char*>(sums[i].mutable_data_ptr());
    }
  }
  const RowCall call{
      op.name,
      op.input_names,
      operands.result_of.data(),
      operands.input_of.data(),
      operands.strides.data(),
      operands.are_integral.data(),
      arguments.numbers.data(),
      arguments.conditions,
      operands.next(),
      length,
      begins.data(),
      parts,
      /*part=*/0};
  device.run(common, iter, call);
  for (size_t i = 0; i < op.results; ++i) {
    at::Tensor& result = operands.results[op.places[i].result];
    const at::OptionalTensorRef summed = like(op, arguments, i);
    if (sums[i].defined()) {
      result = sums[i].sum(0).view((*summed).sizes());
    } else if (result.defined() && summed.has_value()) {
      result = at::sum_to(std::move(result), (*summed).sizes());
    }
    if (result.defined()) {
      result = result.to(dtype_of(op.rules[i], arguments));
    }
  }
  return std::move(operands.results);
}

/// The rows of a call on the CPU.
struct RowsOnCpu {
  const RowLoops& loops;

  /// As many as a part has rows, so that the error of sums grows slowly: whatever threads there are.
  static int64_t parts(int64_t rows, int64_t /*length*/) {
    return std::max<int64_t>(1, static_cast<int64_t>(std::sqrt(static_cast<double>(rows))));
  }

  void run(at::ScalarType common, at::TensorIterator& iter, const RowCall& call) const {
    const RowLoop loop = loops.of[static_cast<size_t>(common)];
    TORCH_CHECK_NOT_IMPLEMENTED(
        loop != nullptr,
        call.name,
        ": not implemented for ",
        common,
        ", which `dtypes` leaves out");
    const int64_t grain =
        std::max<int64_t>(1, at::internal::GRAIN_SIZE / std::max<int64_t>(1, call.length));
    if (call.parts == 0) {
      iter.for_each(
          [&](char** data, const int64_t* strides, int64_t size, int64_t rows) {
            loop(call, data, strides, size, rows);
          },
          grain);
      return;
    }
    const int64_t all = iter.numel(), parts = call.parts;
    at::parallel_for(
        0, parts, std::max<int64_t>(1, grain * parts / all), [&](int64_t i, int64_t end) {
          for (; i < end; ++i) {
            RowCall own = call;
            own.part = i;
            iter.serial_for_each(
                [&](char** data, const int64_t* strides, int64_t size, int64_t rows) {
                  loop(own, data, strides, size, rows);
                },
                {all * i / parts, all * (i + 1) / parts});
          }
        });
  }
};

inline Results new_on_cpu(
    const RowExpression& op,
    const RowLoops& loops,
    const Arguments& arguments,
    at::ArrayRef<bool> wanted) {
  return run_over_rows(op, arguments, wanted, RowsOnCpu{loops});
}

} // namespace fused
} // namespace v1
} // namespace torchext
