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

/// Refuses tensors whose sizes do not broadcast together, by their names.
template <typename Op>
void check_sizes(const Arguments& arguments) {
  c10::DimVector sizes;
  c10::SmallVector<size_t, c10::kDimVectorStaticSize> from; // the input that a size is of
  for (size_t i = 0; i < Op::inputs; ++i) {
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
          Op::name,
          ": ",
          Op::input_names[i],
          " has size ",
          own[j],
          " where ",
          Op::input_names[from[at]],
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

/// How TensorIterator sees the operands of a call: results that are wanted, tensors that are there.
template <typename Op>
class Operands {
 public:
  explicit Operands(const Arguments& arguments) : arguments_(arguments) {
    config_.set_check_mem_overlap(true)
        .allow_cpu_scalars(true)
        .promote_inputs_to_common_dtype(true)
        .cast_common_dtype_to_outputs(true)
        .enforce_safe_casting_to_output(true);
  }

  /// An iterator over one result, which may be undefined.
  at::TensorIteratorConfig& with_result(const at::Tensor& result) {
    config_.add_output(result);
    const at::ScalarType dtype = dtype_of(Op::rules[0], arguments_);
    if (dtype != dtype_of(Op::common, arguments_)) {
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

  at::TensorIteratorConfig& with_new_results(at::ArrayRef<bool> wanted) {
    for (const bool is_wanted : wanted) {
      if (is_wanted) {
        config_.add_owned_output(at::Tensor());
      }
    }
    add_inputs();
    return config_;
  }

 private:
  void add_inputs() {
    check_sizes<Op>(arguments_);
    check_exact<Op>(arguments_);
    const at::Tensor number = raising(Op::common, arguments_);
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

  const Arguments arguments_;
  at::TensorIteratorConfig config_;
};

/// A call as its loop is told of it.
template <typename Op>
struct Told {
  Told(const Arguments& arguments, at::ArrayRef<bool> wanted, int operands) {
    int8_t next = 0;
    for (size_t i = 0; i < Op::results; ++i) {
      results[i] = wanted[i] ? next++ : int8_t(-1);
    }
    for (size_t i = 0; i < Op::inputs; ++i) {
      inputs[i] = arguments.tensors[i].has_value() ? next++ : int8_t(-1);
    }
    call = {results, inputs, arguments.numbers.data(), arguments.conditions, operands};
  }

  int8_t results[Op::results];
  int8_t inputs[Op::inputs + 1];
  Call call;
};

[[noreturn]] inline void refuse(const char* name, at::ScalarType dtype) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, name, ": not implemented for ", dtype);
}

/// Runs the loop over operands that all have the common dtype.
template <typename Op>
void loop_on_cpu(
    at::TensorIteratorBase& iter,
    const Loops& loops,
    const Arguments& arguments,
    at::ArrayRef<bool> wanted) {
  const auto dtype = static_cast<size_t>(iter.common_dtype());
  const Loop loop = dtype < Loops::dtypes ? loops.of[dtype] : nullptr;
  if (loop == nullptr) {
    refuse(Op::name, iter.common_dtype());
  }
  const Told<Op> told(arguments, wanted, iter.ntensors());
  const Call& call = told.call;
  iter.for_each([&](char** data, const int64_t* strides, int64_t size, int64_t rows) {
    loop(call, data, strides, size, rows);
  });
  iter.cast_outputs();
}

template <typename Op>
using Results = std::array<at::Tensor, Op::results>;

/// The results of an iterator, in their own dtypes; undefined where nobody wants one.
template <typename Op>
Results<Op> taken(
    const at::TensorIteratorBase& iter, const Arguments& arguments, at::ArrayRef<bool> wanted) {
  Results<Op> found;
  int next = 0;
  for (size_t i = 0; i < Op::results; ++i) {
    if (wanted[i]) {
      found[i] = iter.output(next++).to(dtype_of(Op::rules[i], arguments));
    }
  }
  return found;
}

template <typename Op, typename Run>
Results<Op> new_results(const Arguments& arguments, at::ArrayRef<bool> wanted, const Run& run) {
  if (std::none_of(wanted.begin(), wanted.end(), [](bool is) { return is; })) {
    return {};
  }
  at::TensorIterator iter = Operands<Op>(arguments).with_new_results(wanted).build();
  run(iter);
  return taken<Op>(iter, arguments, wanted);
}

/// What a call is computed in: more than the dtype of all where some tensors, or results, would be
/// rounded to that.
template <typename Op>
at::ScalarType computed_in(const Arguments& arguments) {
  const at::ScalarType common = dtype_of(Op::common, arguments);
  at::ScalarType found = common;
  for (const at::OptionalTensorRef& tensor : arguments.tensors) {
    if (tensor.has_value() && is_rounded_to(common, *tensor)) {
      found = at::kFloat;
    }
  }
  for (const Rule& rule : Op::rules) {
    found = c10::promoteTypes(found, computed_for(rule, common, arguments));
  }
  return found;
}

template <typename Op>
Results<Op> new_on_cpu(const Loops& loops, const Arguments& arguments, at::ArrayRef<bool> wanted) {
  const at::ScalarType computed = computed_in<Op>(arguments);
  if (computed != dtype_of(Op::common, arguments)) {
    check_sizes<Op>(arguments);
    check_exact<Op>(arguments);
    std::array<at::Tensor, Op::inputs> tensors;
    std::array<at::OptionalTensorRef, Op::inputs> wide;
    for (size_t i = 0; i < Op::inputs; ++i) {
      if (arguments.tensors[i].has_value()) {
        tensors[i] = (*arguments.tensors[i]).to(computed);
        wide[i] = ref(tensors[i]);
      }
    }
    Results<Op> found = new_on_cpu<Op>(
        loops, {wide, arguments.scalars, arguments.numbers, arguments.conditions}, wanted);
    for (size_t i = 0; i < Op::results; ++i) {
      found[i] = wanted[i] ? found[i].to(dtype_of(Op::rules[i], arguments)) : at::Tensor();
    }
    return found;
  }
  return new_results<Op>(arguments, wanted, [&](at::TensorIteratorBase& iter) {
    loop_on_cpu<Op>(iter, loops, arguments, wanted);
  });
}

/// Fills the result of an iterator; one that has another dtype than is computed in, as that of a
/// condition, from a tensor of that one.
template <typename Op>
void run_on_cpu(at::TensorIteratorBase& iter, const Loops& loops, const Arguments& arguments) {
  const auto wanted = all<Op>();
  const bool is_rounded = computed_in<Op>(arguments) != dtype_of(Op::common, arguments);
  if (iter.dtype(0) == iter.common_dtype() && !is_rounded) {
    loop_on_cpu<Op>(iter, loops, arguments, wanted);
  } else {
    iter.output(0).copy_(new_on_cpu<Op>(loops, arguments, wanted)[0]);
    iter.cast_outputs();
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

/// The strides of results, as TensorIterator has them.
inline c10::SymDimVector strides_of(const Arguments& arguments, c10::SymIntArrayRef sizes) {
  c10::SmallVector<const at::Tensor*, 4> inputs;
  for (const at::OptionalTensorRef& tensor : arguments.tensors) {
    if (tensor.has_value()) {
      inputs.push_back(&*tensor);
    }
  }
  return torchext::detail::result_strides(inputs, sizes);
}

template <typename Op>
Results<Op> meta_results(const Arguments& arguments, at::ArrayRef<bool> wanted) {
  check_exact<Op>(arguments);
  const c10::SymDimVector sizes = broadcast(arguments);
  const c10::SymDimVector strides = strides_of(arguments, sizes);
  Results<Op> found;
  for (size_t i = 0; i < Op::results; ++i) {
    if (wanted[i]) {
      const auto options =
          first_of(arguments).options().dtype(dtype_of(Op::rules[i], arguments)).device(at::kMeta);
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
               ? at::where(at::ones_like(same, at::kBool), same, first.sum().to(dtype))
               : same;
  }
  const at::Tensor tensor = value.tensor().to(dtype);
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
template <typename Op>
Results<Op> composite_results(const Arguments& arguments, at::ArrayRef<bool> wanted) {
  const at::ScalarType common = dtype_of(Op::common, arguments);
  if (!Op::Types::has(common)) {
    refuse(Op::name, common);
  }
  check_exact<Op>(arguments);
  const at::ScalarType computed = at::toOpMathType(common);
  Value inputs[Op::inputs + 1], numbers[Op::numbers + 1], results[Op::results];
  bool has[Op::inputs + Op::conditions + 1], is_wanted[Op::results];
  for (size_t i = 0; i < Op::inputs; ++i) {
    has[i] = arguments.tensors[i].has_value();
    inputs[i] = has[i] ? Value((*arguments.tensors[i]).to(computed)) : in_place(Op::defaults[i]);
  }
  for (size_t i = 0; i < Op::numbers; ++i) {
    const Number& given = arguments.numbers[i];
    numbers[i] = given.is_integral ? at::Scalar(given.integer) : at::Scalar(given.real);
  }
  std::copy(arguments.conditions, arguments.conditions + Op::conditions, has + Op::inputs);
  std::copy(wanted.begin(), wanted.end(), is_wanted);
  Op::template compute<Value>(Given<Value>{inputs, numbers, has, is_wanted}, results);
  const c10::SymDimVector sizes = broadcast(arguments), strides = strides_of(arguments, sizes);
  Results<Op> found;
  for (size_t i = 0; i < Op::results; ++i) {
    if (wanted[i]) {
      results[i] = apart(results[i], results, i);
      const at::ScalarType dtype = dtype_of(Op::rules[i], arguments);
      found[i] = laid_out(as_result(results[i], arguments, sizes, dtype), strides);
    }
  }
  return found;
}

/// Whether a derivative of a call will be asked for.
template <typename Op>
bool is_differentiated(const Arguments& arguments) {
  return std::any_of(
      arguments.tensors.begin(), arguments.tensors.end(), [](const at::OptionalTensorRef& tensor) {
        return tensor.has_value() && ((at::GradMode::is_enabled() && (*tensor).requires_grad()) ||
                                      (c10::AutogradState::get_tls_state().get_fw_grad_mode() &&
                                       (*tensor)._fw_grad(/*level=*/0).defined()));
      });
}

/// Results as a kernel returns them.
inline at::Tensor returned(std::array<at::Tensor, 1> results) {
  return std::move(results[0]);
}

template <size_t N>
auto returned(std::array<at::Tensor, N> results) {
  return std::apply(
      [](auto&&... each) { return std::make_tuple(std::move(each)...); }, std::move(results));
}

} // namespace fused
} // namespace v1
} // namespace torchext
