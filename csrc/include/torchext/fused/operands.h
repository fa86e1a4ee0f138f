// SPDX-License-Identifier: BSD-3-Clause
//
// What runs the loops of expressions: the iterator over the operands of a call, and its composite and
// Meta kernels.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>
#include <torchext/cpu_capabilities.h>
#include <torchext/elementwise.h>
#include <torchext/fused/arguments.h>
#include <torchext/fused/tensors.h>

#include <ATen/OpMathType.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace torchext {
inline namespace v1 {
namespace fused {

/// What is known of an expression of elements.
struct ElementExpression : Expression {
  void (*compute)(const Given<Value>& given, Value* results);
};

/// Refuses tensors whose sizes do not broadcast together, by their names.
inline void check_sizes(const Expression& op, const Arguments& arguments) {
  c10::DimVector sizes;
  c10::SmallVector<size_t, c10::kDimVectorStaticSize> from; // the input that a size is of
  for (size_t i = 0; i < op.inputs; ++i) {
    if (!arguments.tensors[i].has_value()) {
      continue;
    }
    const at::IntArrayRef own = (*arguments.tensors[i]).sizes();
    if (own.size() > sizes.size()) {
      const size_t added = own.size() - sizes.size();
      sizes.insert(sizes.begin(), added, 1);
      from.insert(from.begin(), added, i);
    }
    for (size_t j = 0; j < own.size(); ++j) {
      const size_t at = sizes.size() - own.size() + j;
      TORCH_CHECK(
          own[j] == sizes[at] || own[j] == 1 || sizes[at] == 1,
          op.name,
          ": ",
          op.input_names[i],
          " has size ",
          own[j],
          " where ",
          op.input_names[from[at]],
          " has ",
          sizes[at],
          ", ",
          own,
          " and ",
          (*arguments.tensors[from[at]]).sizes(),
          ": they do not broadcast");
      if (own[j] != 1) {
        sizes[at] = own[j];
        from[at] = i;
      }
    }
  }
}

/// That of the tensors of a call, beside which those of one number may be on the CPU.
inline at::Device device_of(const Arguments& arguments) {
  at::Device found = at::kCPU;
  for (const at::OptionalTensorRef& tensor : arguments.tensors) {
    if (found.is_cpu() && tensor.has_value()) {
      found = (*tensor).device();
    }
  }
  return found;
}

/// Refuses tensors on another device beside those on meta, as kernels refuse them; may_be_numbers:
/// those of one number may be on the CPU.
inline void check_all_on_meta(
    const Expression& op, const Arguments& arguments, bool may_be_numbers) {
  for (size_t i = 0; i < arguments.tensors.size(); ++i) {
    const at::OptionalTensorRef& tensor = arguments.tensors[i];
    const bool is_there = tensor.has_value() && !(*tensor).is_meta();
    const bool is_number = is_there && (*tensor).is_cpu() && (*tensor).dim() == 0;
    TORCH_CHECK(
        !is_there || (is_number && may_be_numbers),
        op.name,
        ": expected all tensors on one device, but '",
        op.input_names[i],
        "' is on ",
        (*tensor).device(),
        " and another on meta");
  }
}

/// The sizes that the tensors of a call broadcast to, which may be symbolic.
inline c10::SymDimVector broadcast(const Arguments& arguments) {
  c10::SymDimVector sizes;
  for (const at::OptionalTensorRef& tensor : arguments.tensors) {
    if (tensor.has_value()) {
      sizes = at::infer_size_symdimvector(sizes, (*tensor).sym_sizes());
    }
  }
  return sizes;
}

/// The first tensor that is there.
inline const at::Tensor& first_of(const Arguments& arguments) {
  return **std::find_if(arguments.tensors.begin(), arguments.tensors.end(), [](const auto& tensor) {
    return tensor.has_value();
  });
}

/// What a call is computed in: more than the dtype of all where some tensors, or results, would be
/// rounded to that.
inline at::ScalarType computed_in(const Expression& op, const Arguments& arguments) {
  const at::ScalarType common = dtype_of(op.common, arguments);
  at::ScalarType found = common;
  for (const at::OptionalTensorRef& tensor : arguments.tensors) {
    if (tensor.has_value() && is_rounded_to(common, *tensor)) {
      found = in_precision(common, at::kFloat);
    }
  }
  for (size_t i = 0; i < op.results; ++i) {
    found = c10::promoteTypes(found, computed_for(op.rules[i], common, arguments));
  }
  return found;
}

/// The tensors of a call as they decide on the strides of results.
inline c10::SmallVector<torchext::detail::Operand, 4> operands_of(
    const Arguments& arguments, at::ScalarType computed) {
  c10::SmallVector<const at::Tensor*, 8> tensors;
  for (const at::OptionalTensorRef& tensor : arguments.tensors) {
    if (tensor.has_value()) {
      tensors.push_back(&*tensor);
    }
  }
  return torchext::detail::converted_to(computed, tensors);
}

/// The strides of results on every device, as TensorIterator has them on the CPU.
inline c10::SymDimVector strides_of(
    const Expression& op, const Arguments& arguments, c10::SymIntArrayRef sizes) {
  return torchext::detail::result_strides(
      operands_of(arguments, dtype_of(op.common, arguments)), sizes);
}

/// Whether TensorIterator gives results other strides: on a device where it converts nothing.
inline bool is_laid_out_otherwise(const Expression& op, const Arguments& arguments) {
  if (device_of(arguments).is_cpu()) {
    return false;
  }
  const auto operands = operands_of(arguments, dtype_of(op.common, arguments));
  return std::any_of(
      operands.begin(), operands.end(), [](const auto& operand) { return operand.is_converted(); });
}

/// How TensorIterator sees the operands of a call: results that are wanted, tensors that are there.
class Operands {
 public:
  Operands(const Expression& op, const Arguments& arguments) : op_(op), arguments_(arguments) {
    config_.set_check_mem_overlap(true)
        .allow_cpu_scalars(true)
        .promote_inputs_to_common_dtype(true)
        .cast_common_dtype_to_outputs(true)
        .enforce_safe_casting_to_output(true);
  }

  /// An iterator over one result, which may be undefined.
  at::TensorIteratorConfig& with_result(const at::Tensor& result) {
    check_sizes(op_, arguments_);
    check_exact(op_, arguments_);
    config_.add_output(result);
    const at::ScalarType dtype = dtype_of(op_.rules[0], arguments_);
    if (dtype != dtype_of(op_.common, arguments_)) {
      config_.declare_static_dtype(dtype).enforce_safe_casting_to_output(false);
      TORCH_CHECK(
          !result.defined() || c10::canCast(dtype, result.scalar_type()),
          "result type ",
          dtype,
          " can't be cast to the desired output type ",
          result.scalar_type());
    }
    add_inputs();
    return config_;
  }

  /// An iterator over new results, of these strides where some are given.
  at::TensorIteratorConfig& with_new_results(
      at::ArrayRef<bool> wanted, const std::optional<c10::SymDimVector>& strides) {
    for (const bool is_wanted : wanted) {
      if (is_wanted) {
        config_.add_owned_output(strides.has_value() ? new_result(*strides) : at::Tensor());
      }
    }
    add_inputs();
    return config_;
  }

 private:
  at::Tensor new_result(c10::SymIntArrayRef strides) const {
    const auto options = first_of(arguments_).options().device(device_of(arguments_));
    const at::ScalarType common = dtype_of(op_.common, arguments_);
    return at::empty_strided_symint(broadcast(arguments_), strides, options.dtype(common));
  }

  void add_inputs() {
    const at::Tensor number = raising(op_.common, arguments_);
    const at::Device device = device_of(arguments_);
    // One number of the CPU may stand beside tensors of another device.
    bool may_pass = !number.defined();
    for (const at::OptionalTensorRef& tensor : arguments_.tensors) {
      if (!tensor.has_value()) {
        continue;
      }
      const bool is_number =
          !device.is_cpu() && (*tensor).dim() == 0 && (*tensor).device().is_cpu();
      if (is_number && !may_pass) {
        config_.add_owned_const_input((*tensor).to(device));
      } else {
        config_.add_const_input(*tensor);
      }
      may_pass = may_pass && !is_number;
    }
    if (number.defined()) {
      config_.add_owned_const_input(number);
    }
  }

  const Expression& op_;
  const Arguments arguments_;
  at::TensorIteratorConfig config_;
};

/// A call as its loop is told of it.
struct Told {
  Told(const Expression& op, const Arguments& arguments, at::ArrayRef<bool> wanted, int operands) {
    int8_t next = 0;
    for (const bool is_wanted : wanted) {
      results.push_back(is_wanted ? next++ : int8_t(-1));
    }
    for (const at::OptionalTensorRef& tensor : arguments.tensors) {
      inputs.push_back(tensor.has_value() ? next++ : int8_t(-1));
    }
    if (op.takes_complex) {
      for (const at::OptionalTensorRef& tensor : arguments.tensors) {
        reals.push_back(!tensor.has_value() || !(*tensor).is_complex());
      }
      for (const Number& number : arguments.numbers) {
        reals.push_back(!number.is_complex);
      }
    }
    call = {
        results.data(),
        inputs.data(),
        arguments.numbers.data(),
        arguments.conditions,
        reals.data(),
        operands};
  }
  Told(const Told&) = delete;

  c10::SmallVector<int8_t, 8> results, inputs;
  c10::SmallVector<bool, 8> reals;
  Call call;
};

[[noreturn]] inline void refuse(const char* name, at::ScalarType dtype) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, name, ": not implemented for ", dtype);
}

/// Runs the loop over operands that all have the common dtype.
inline void loop_on_cpu(
    const Expression& op,
    at::TensorIteratorBase& iter,
    const Loops& loops,
    const Arguments& arguments,
    at::ArrayRef<bool> wanted) {
  const auto dtype = static_cast<size_t>(iter.common_dtype());
  const Loop loop = dtype < Loops::dtypes ? loops.of[dtype] : nullptr;
  if (loop == nullptr) {
    refuse(op.name, iter.common_dtype());
  }
  const Told told(op, arguments, wanted, iter.ntensors());
  const Call& call = told.call;
  iter.for_each([&](char** data, const int64_t* strides, int64_t size, int64_t rows) {
    loop(call, data, strides, size, rows);
  });
  iter.cast_outputs();
}

using Results = c10::SmallVector<at::Tensor, 4>;

/// A tensor in another dtype; of complex numbers that are real, real ones, which are no view.
inline at::Tensor converted(const at::Tensor& tensor, at::ScalarType dtype) {
  if (tensor.is_complex() && !at::isComplexType(dtype)) {
    return at::real(tensor).to(dtype, /*non_blocking=*/false, /*copy=*/true);
  }
  return tensor.to(dtype);
}

/// A tensor in the precision that is computed in; a real one stays real where others are complex.
inline at::Tensor widened(const at::Tensor& tensor, at::ScalarType computed) {
  const bool is_real = at::isComplexType(computed) && !tensor.is_complex();
  return tensor.to(is_real ? c10::toRealValueType(computed) : computed);
}

/// The results of an iterator, in their own dtypes; undefined where nobody wants one.
inline Results taken(
    const Expression& op,
    const at::TensorIteratorBase& iter,
    const Arguments& arguments,
    at::ArrayRef<bool> wanted) {
  Results found(op.results);
  int next = 0;
  for (size_t i = 0; i < op.results; ++i) {
    if (wanted[i]) {
      found[i] = converted(iter.output(next++), dtype_of(op.rules[i], arguments));
    }
  }
  return found;
}

/// New results, which `run` computes with an iterator, and the tensors that it runs over: those of
/// the call, or in the precision that is computed in where some would be rounded.
template <typename Run>
Results new_results(
    const Expression& op, const Arguments& arguments, at::ArrayRef<bool> wanted, const Run& run) {
  if (std::none_of(wanted.begin(), wanted.end(), [](bool is) { return is; })) {
    return Results(op.results);
  }
  check_sizes(op, arguments);
  check_exact(op, arguments);
  const at::ScalarType computed = computed_in(op, arguments);
  const bool is_rounded = computed != dtype_of(op.common, arguments);
  c10::SmallVector<at::Tensor, 8> tensors(op.inputs);
  c10::SmallVector<at::OptionalTensorRef, 8> wide;
  for (size_t i = 0; is_rounded && i < op.inputs; ++i) {
    if (arguments.tensors[i].has_value()) {
      tensors[i] = widened(*arguments.tensors[i], computed);
    }
    wide.push_back(ref(tensors[i]));
  }
  std::optional<c10::SymDimVector> strides;
  if (is_rounded || is_laid_out_otherwise(op, arguments)) {
    strides = strides_of(op, arguments, broadcast(arguments));
  }
  Arguments own = arguments;
  own.tensors = is_rounded ? at::ArrayRef<at::OptionalTensorRef>(wide) : arguments.tensors;
  at::TensorIterator iter = Operands(op, own).with_new_results(wanted, strides).build();
  run(iter, own);
  return taken(op, iter, arguments, wanted);
}

inline Results new_on_cpu(
    const ElementExpression& op,
    const Loops& loops,
    const Arguments& arguments,
    at::ArrayRef<bool> wanted) {
  return new_results(
      op, arguments, wanted, [&](at::TensorIteratorBase& iter, const Arguments& own) {
        loop_on_cpu(op, iter, loops, own, wanted);
      });
}

/// Fills the result of an iterator; one that has another dtype than is computed in, as that of a
/// condition, from a tensor of that one.
inline void run_on_cpu(
    const ElementExpression& op,
    at::TensorIteratorBase& iter,
    const Loops& loops,
    const Arguments& arguments) {
  const bool wanted[] = {true};
  const bool is_rounded = computed_in(op, arguments) != dtype_of(op.common, arguments);
  if (iter.dtype(0) == iter.common_dtype() && !is_rounded) {
    loop_on_cpu(op, iter, loops, arguments, wanted);
  } else {
    iter.output(0).copy_(new_on_cpu(op, loops, arguments, wanted)[0]);
    iter.cast_outputs();
  }
}

inline Results meta_results(
    const ElementExpression& op, const Arguments& arguments, at::ArrayRef<bool> wanted) {
  check_all_on_meta(op, arguments, /*may_be_numbers=*/true);
  check_exact(op, arguments);
  const c10::SymDimVector sizes = broadcast(arguments);
  const c10::SymDimVector strides = strides_of(op, arguments, sizes);
  Results found(op.results);
  for (size_t i = 0; i < op.results; ++i) {
    if (wanted[i]) {
      const auto options =
          first_of(arguments).options().dtype(dtype_of(op.rules[i], arguments)).device(at::kMeta);
      found[i] = at::empty_strided_symint(sizes, strides, options);
    }
  }
  return found;
}

/// A tensor whose dimensions lie in memory as those of these strides do, the largest ones outside.
inline at::Tensor laid_out(const at::Tensor& tensor, c10::SymIntArrayRef strides) {
  const c10::SymIntArrayRef own = tensor.sym_strides(), sizes = tensor.sym_sizes();
  bool is_laid_out = true;
  c10::DimVector order(own.size()), back(own.size());
  for (size_t i = 0; i < own.size(); ++i) {
    order[i] = static_cast<int64_t>(i);
    is_laid_out = is_laid_out && (TORCH_GUARD_OR_TRUE(own[i].sym_eq(strides[i])) ||
                                  TORCH_GUARD_OR_FALSE(sizes[i].sym_eq(1)));
  }
  if (is_laid_out) {
    return tensor;
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return TORCH_GUARD_OR_FALSE(strides[a].sym_gt(strides[b]));
  });
  for (size_t i = 0; i < order.size(); ++i) {
    back[order[i]] = static_cast<int64_t>(i);
  }
  return tensor.permute(order).contiguous().permute(back);
}

/// A result of ATen's operators as that of a kernel: of all tensors' sizes, and a tensor of its own.
inline at::Tensor as_result(
    const Value& value,
    const Arguments& arguments,
    c10::SymIntArrayRef sizes,
    at::ScalarType dtype) {
  if (value.is_number()) {
    const at::Tensor& first = first_of(arguments);
    const at::Tensor same = at::full_symint(sizes, value.number(), first.options().dtype(dtype));
    // Results of one call require grad together; of slices the sizes are others.
    return first.requires_grad()
               ? at::where(at::ones_like(same, at::kBool), same, converted(first.sum(), dtype))
               : same;
  }
  const at::Tensor tensor = converted(value.tensor(), dtype);
  if (!torchext::detail::same_sizes(tensor.sym_sizes(), sizes)) {
    return tensor.expand_symint(sizes).clone(at::MemoryFormat::Contiguous);
  }
  const bool is_an_input =
      std::any_of(arguments.tensors.begin(), arguments.tensors.end(), [&](const auto& argument) {
        return argument.has_value() && tensor.is_same(*argument);
      });
  return is_an_input ? tensor.clone() : tensor;
}

/// The expression, written with ATen's operators: computed in the precision that the kernels have.
inline Results composite_results(
    const ElementExpression& op, const Arguments& arguments, at::ArrayRef<bool> wanted) {
  const at::ScalarType common = dtype_of(op.common, arguments);
  if (!op.takes(common)) {
    refuse(op.name, common);
  }
  check_exact(op, arguments);
  const at::ScalarType computed = at::toOpMathType(computed_in(op, arguments));
  c10::SmallVector<Value, 8> inputs(op.inputs), numbers(op.numbers), results(op.results);
  const size_t reals = op.takes_complex ? op.inputs + op.numbers : 0;
  c10::SmallVector<bool, 16> has(
      op.inputs + op.conditions + reals); // what is real is a real tensor
  for (size_t i = 0; i < op.inputs; ++i) {
    has[i] = arguments.tensors[i].has_value();
    inputs[i] = has[i] ? Value(widened(*arguments.tensors[i], computed)) : in_place(op.defaults[i]);
  }
  for (size_t i = 0; i < op.numbers; ++i) {
    const Number& given = arguments.numbers[i];
    numbers[i] = given.is_integral ? at::Scalar(given.integer) : at::Scalar(given.real);
    if (given.is_complex) {
      const c10::complex<double> number(given.real, given.imaginary);
      numbers[i] = Value::of_complex(number, first_of(arguments).options().dtype(computed));
    }
  }
  std::copy(arguments.conditions, arguments.conditions + op.conditions, has.data() + op.inputs);
  op.compute({inputs.data(), numbers.data(), has.data(), wanted.data()}, results.data());
  const c10::SymDimVector sizes = broadcast(arguments), strides = strides_of(op, arguments, sizes);
  Results found(op.results);
  for (size_t i = 0; i < op.results; ++i) {
    if (wanted[i]) {
      results[i] = apart(results[i], results.data(), i);
      const at::ScalarType dtype = dtype_of(op.rules[i], arguments);
      found[i] = laid_out(as_result(results[i], arguments, sizes, dtype), strides);
    }
  }
  return found;
}

/// Whether a derivative of a call will be asked for.
inline bool is_differentiated(const Arguments& arguments) {
  return std::any_of(
      arguments.tensors.begin(), arguments.tensors.end(), [](const at::OptionalTensorRef& tensor) {
        return tensor.has_value() && ((at::GradMode::is_enabled() && (*tensor).requires_grad()) ||
                                      (c10::AutogradState::get_tls_state().get_fw_grad_mode() &&
                                       (*tensor)._fw_grad(/*level=*/0).defined()));
      });
}

template <size_t... index>
auto returned(Results& results, std::index_sequence<index...> /*of*/) {
  if constexpr (sizeof...(index) == 1) {
    return std::move(results[0]);
  } else {
    return std::make_tuple(std::move(results[index])...);
  }
}

/// Results as a kernel returns them.
template <typename Op>
auto returned(Results results) {
  return returned(results, std::make_index_sequence<Op::returns>());
}

} // namespace fused
} // namespace v1
} // namespace torchext
