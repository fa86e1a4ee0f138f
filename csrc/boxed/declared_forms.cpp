// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/MemoryOverlap.h>
#include <ATen/core/stack.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/TensorWrapper.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/new_ones.h>
#include <ATen/ops/where.h>
#include <torchext/generated/boxed.h>
#include <torchext/generated/declared_forms.h>
#include <torchext/generated/memory_overlap.h>
#include <torchext/shape.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "declared_form.h"

namespace torchext {
inline namespace v1 {
namespace detail {
namespace {

/// The out= tensors of a call with the results that are copied to them.
class ResultsToWrite {
 public:
  explicit ResultsToWrite(const char* op) : op_(op) {}

  void add(const c10::IValue& out, const c10::IValue& result) {
    if (out.isTensor()) {
      return add(out.toTensor(), result.toTensor());
    }
    const std::vector<at::Tensor> outs = out.toTensorVector();
    const std::vector<at::Tensor> results = result.toTensorVector();
    TORCH_CHECK(
        outs.size() == results.size(),
        op_,
        ": the out= list must have ",
        results.size(),
        " tensors, got ",
        outs.size());
    for (size_t i = 0; i < outs.size(); ++i) {
      add(outs[i], results[i]);
    }
  }

  /// Brings them to the results' sizes and copies the values.
  void write() const {
    for (const Pair& pair : pairs_) {
      at::native::resize_output_symint(pair.out, pair.result.sym_sizes());
    }
    for (const Pair& pair : pairs_) {
      pair.out.copy_(pair.result);
    }
  }

 private:
  struct Pair {
    at::Tensor out;
    at::Tensor result;
    bool is_resized;
  };

  /// Refuses what cannot be written, before anything is. Values are never converted.
  void add(const at::Tensor& out, const at::Tensor& result) {
    TORCH_CHECK(
        out.scalar_type() == result.scalar_type(),
        op_,
        ": the out= tensor must have dtype ",
        result.scalar_type(),
        ", got ",
        out.scalar_type());
    TORCH_CHECK(
        out.device() == result.device(),
        op_,
        ": the out= tensor must be on ",
        result.device(),
        ", got one on ",
        out.device());
    const Pair pair{out, result, out.sym_sizes() != result.sym_sizes()};
    if (!pair.is_resized && out.layout() == at::kStrided) {
      at::assert_no_internal_overlap(out);
    }
    for (const Pair& other : pairs_) {
      TORCH_CHECK(
          !meet(pair, other),
          op_,
          ": two out= tensors share memory, and each is written; pass a .clone() of one of them");
    }
    pairs_.push_back(pair);
  }

  /// Whether what is written to one would be read from the other. One that is resized may reach as
  /// far as their storage.
  static bool meet(const Pair& a, const Pair& b) {
    if (a.out.is_same(b.out)) {
      return true;
    }
    if (!a.is_resized && !b.is_resized) {
      return share_memory(a.out, b.out);
    }
    const at::Tensor first = in_memory(a.out);
    const at::Tensor second = in_memory(b.out);
    return first.has_storage() && second.has_storage() && first.is_alias_of(second);
  }

  const char* op_;
  std::vector<Pair> pairs_;
};

/// The levels of torch.vmap at which a tensor has a batch dimension.
std::vector<int64_t> batch_levels(at::Tensor tensor) {
  std::vector<int64_t> levels;
  while (true) {
    if (const auto* wrapper = at::functorch::maybeGetTensorWrapper(tensor)) {
      tensor = at::Tensor(wrapper->value());
    } else if (const auto* batched = at::functorch::maybeGetBatchedImpl(tensor)) {
      levels.push_back(batched->level());
      tensor = at::Tensor(batched->value());
    } else {
      return levels;
    }
  }
}

/// A copy of what is written to, with the batch dimensions that the arguments of the call have:
/// under torch.vmap the values of all examples are written to it.
at::Tensor writable_copy(const at::Tensor& tensor, const std::vector<c10::IValue>& values) {
  std::vector<int64_t> levels = batch_levels(tensor);
  at::Tensor batched; // of no other dimension, with those that are missing
  for (const c10::IValue& value : values) {
    for (const at::Tensor& other : tensors_of(value)) {
      bool is_missing = false;
      for (const int64_t level : batch_levels(other)) {
        if (std::find(levels.begin(), levels.end(), level) == levels.end()) {
          levels.push_back(level);
          is_missing = true;
        }
      }
      if (is_missing) {
        const auto options = at::TensorOptions(at::kBool).device(tensor.device());
        const at::Tensor ones = other.new_ones({}, options);
        batched = batched.defined() ? batched.logical_and(ones) : ones;
      }
    }
  }
  return batched.defined() ? at::where(batched, tensor, tensor) : tensor.clone();
}

/// The same of all tensors of an argument, which may be missing.
c10::IValue writable_copy(const c10::IValue& written, const std::vector<c10::IValue>& values) {
  return map_boxed_tensors(
      [&values](const at::Tensor& tensor) { return writable_copy(tensor, values); }, written);
}

} // namespace
} // namespace detail

namespace {

/// Of an out= form, by the functional one; by the in-place one, on a copy, where there is no other.
class OutFormOf final : public detail::DeclaredForm {
 public:
  using DeclaredForm::DeclaredForm;

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
    const c10::FunctionSchema& schema = op.schema();
    const auto count = schema.arguments().size();
    const std::vector<c10::IValue> values = torch::jit::pop(*stack, count);
    std::vector<c10::IValue> outs;
    for (size_t i = 0; i < count; ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      if (argument.kwarg_only() && detail::is_written(argument)) {
        outs.push_back(values[i]);
      }
    }
    const c10::OperatorHandle called = other();
    torch::jit::Stack results = detail::arguments_of(called.schema(), schema, values);
    if (is_inplace(called.schema())) {
      results[0] = detail::writable_copy(results[0], values);
    }
    detail::call_without_policy(called, &results);
    detail::ResultsToWrite written(schema.name().c_str());
    size_t next = 0;
    for (const c10::IValue& result : results) {
      if (result.isTensor() || result.isTensorList()) {
        TORCH_INTERNAL_ASSERT(next < outs.size(), schema);
        written.add(outs[next++], result);
      }
    }
    written.write();
    if (!schema.returns().empty()) {
      stack->insert(stack->end(), outs.begin(), outs.end());
    }
  }

 private:
  static bool is_inplace(const c10::FunctionSchema& schema) {
    return schema.name().back() == '_' && detail::is_written(schema.arguments()[0]);
  }
};

/// Of an in-place form, by the functional one.
class InplaceFormOf final : public detail::DeclaredForm {
 public:
  using DeclaredForm::DeclaredForm;

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
    const c10::FunctionSchema& schema = op.schema();
    const auto count = schema.arguments().size();
    const at::Tensor written = (*stack)[stack->size() - count].toTensor();
    detail::call_without_policy(other(), stack);
    const at::Tensor result = stack->back().toTensor();
    stack->pop_back();
    TORCH_CHECK(
        written.scalar_type() == result.scalar_type(),
        schema.name(),
        ": the in-place tensor must have dtype ",
        result.scalar_type(),
        ", got ",
        written.scalar_type());
    TORCH_CHECK(
        shape::holds(shape::same(written.sym_sizes(), result.sym_sizes())),
        schema.name(),
        ": the in-place tensor must have the shape of the result, ",
        result.sym_sizes(),
        ", got ",
        written.sym_sizes());
    written.copy_(result);
    stack->emplace_back(written);
  }
};

/// Of a functional form, by the one that writes.
class FunctionalFormOf final : public detail::DeclaredForm {
 public:
  using DeclaredForm::DeclaredForm;

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
    const c10::OperatorHandle writing = other();
    const c10::FunctionSchema& schema = writing.schema();
    const auto count = op.schema().arguments().size();
    torch::jit::Stack values = torch::jit::pop(*stack, count);
    const torch::jit::Stack given = values;
    for (size_t i = 0; i < count; ++i) {
      if (detail::is_written(schema.arguments()[i])) {
        values[i] = detail::writable_copy(given[i], given);
      }
    }
    torch::jit::Stack returned = values;
    writing.callBoxed(&returned);
    stack->insert(stack->end(), returned.begin(), returned.end());
    // What is written and not returned comes behind, `self` first.
    for (const bool is_self : {true, false}) {
      for (size_t i = 0; i < count; ++i) {
        const c10::Argument& argument = schema.arguments()[i];
        if (detail::is_written(argument) && (argument.name() == "self") == is_self &&
            !is_returned(schema, argument)) {
          const bool is_none = values[i].isNone();
          stack->push_back(is_none ? c10::IValue(at::Tensor()) : values[i]);
        }
      }
    }
    clone_twins(*stack, op.schema().returns().size());
  }

 private:
  /// An argument that is returned twice is two results of the functional form, which are all new.
  static void clone_twins(torch::jit::Stack& stack, size_t count) {
    for (size_t i = stack.size() - count; i < stack.size(); ++i) {
      for (size_t j = stack.size() - count; j < i; ++j) {
        if (stack[i].isTensor() && stack[j].isTensor() &&
            stack[i].toTensor().is_same(stack[j].toTensor())) {
          stack[i] = stack[i].toTensor().clone();
        }
      }
    }
  }

  static bool is_returned(const c10::FunctionSchema& schema, const c10::Argument& argument) {
    for (const c10::Argument& result : schema.returns()) {
      if (detail::same_alias(result, argument)) {
        return true;
      }
    }
    return false;
  }
};

} // namespace

torch::CppFunction out_form_of(const char* name, const char* overload) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<OutFormOf>(name, overload));
}

torch::CppFunction inplace_form_of(const char* name, const char* overload) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<InplaceFormOf>(name, overload));
}

torch::CppFunction functional_form_of(const char* name, const char* overload) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<FunctionalFormOf>(name, overload));
}

} // namespace v1
} // namespace torchext
