// SPDX-License-Identifier: BSD-3-Clause
//
// The batching rules of `vmap:`: one call of the operator for all examples of a batch. Boxed: they
// serve every schema, in-place forms included. What vmap calls logical is a tensor as the
// function under vmap sees it; its physical value has the batch dimension as well.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/ops/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>
#include <torchext/boxed.h>
#include <torchext/shape.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace detail {

inline int64_t most_dimensions(const std::vector<at::Tensor>& tensors) {
  int64_t most = 0;
  for (const at::Tensor& tensor : tensors) {
    most = std::max(most, tensor.dim());
  }
  return most;
}

inline int64_t current_level() {
  const auto layer = at::functorch::maybeCurrentDynamicLayer();
  TORCH_CHECK(layer.has_value(), "a tensor was used outside of the vmap that made it");
  return layer->layerId();
}

/// The innermost vmap, and its batch among the arguments of a call.
class Batch {
 public:
  explicit Batch(const std::vector<c10::IValue>& values) : level_(current_level()) {
    for (const c10::IValue& value : values) {
      for_each_boxed_tensor(
          [this](const at::Tensor& tensor) {
            if (is_batched(tensor)) {
              size_ = front(tensor).sym_size(0);
            }
          },
          value);
    }
  }

  bool is_empty() const {
    return !size_.has_value();
  }

  const c10::SymInt& size() const {
    return *size_;
  }

  bool is_batched(const at::Tensor& tensor) const {
    const auto* impl = at::functorch::maybeGetBatchedImpl(tensor);
    return impl != nullptr && impl->level() == level_;
  }

  bool is_batched(const c10::IValue& value) const {
    const std::vector<at::Tensor> tensors = tensors_of(value);
    return std::any_of(tensors.begin(), tensors.end(), [this](const at::Tensor& tensor) {
      return is_batched(tensor);
    });
  }

  /// The physical value of a batched tensor, a view with the batch dimension in front.
  at::Tensor front(const at::Tensor& tensor) const {
    const auto* impl = at::functorch::maybeGetBatchedImpl(tensor);
    return impl->bdim() == 0 ? impl->value() : impl->value().movedim(impl->bdim(), 0);
  }

  at::Tensor example(const at::Tensor& tensor, int64_t index) const {
    return is_batched(tensor) ? front(tensor).select(0, index) : tensor;
  }

  at::Tensor logical(const at::Tensor& physical) const {
    return at::functorch::makeBatched(physical, 0, level_);
  }

 private:
  int64_t level_;
  std::optional<c10::SymInt> size_;
};

/// One call under vmap: the arguments, how they become physical, and what becomes of the results.
class BatchedCall {
 public:
  BatchedCall(const c10::OperatorHandle& op, const torch::jit::Stack& stack)
      : op_(op),
        schema_(op.schema()),
        values_(stack.end() - static_cast<int64_t>(schema_.arguments().size()), stack.end()),
        batch_(values_) {}

  const c10::FunctionSchema& schema() const {
    return schema_;
  }

  const std::vector<c10::IValue>& values() const {
    return values_;
  }

  const Batch& batch() const {
    return batch_;
  }

  /// What is written to must have the batch dimension that the values for it have.
  void check_written() const {
    for (size_t i = 0; i < values_.size(); ++i) {
      const c10::Argument& argument = schema_.arguments()[i];
      TORCH_CHECK(
          !is_written(argument) || all_batched(values_[i]),
          "vmap: ",
          schema_.name(),
          " writes to '",
          argument.name(),
          "', which is not batched, while another argument is: one tensor has no room for the "
          "results of all examples");
    }
  }

  /// Calls the operator once on the physical arguments. `restore` gives a result, or a tensor that
  /// was written to, its batch dimension in front.
  template <typename F>
  void run(const std::vector<c10::IValue>& physical, const F& restore, torch::jit::Stack& results)
      const {
    torch::jit::Stack returned = physical;
    op_.callBoxed(&returned);
    for (size_t i = 0; i < values_.size(); ++i) {
      if (is_written(schema_.arguments()[i])) {
        write_back(tensors_of(values_[i]), tensors_of(physical[i]), restore);
      }
    }
    const auto logical = [&](const at::Tensor& result) { return batch_.logical(restore(result)); };
    for (size_t i = 0; i < returned.size(); ++i) {
      const std::optional<c10::IValue> written = written_argument(schema_.returns()[i]);
      results.push_back(written.has_value() ? *written : map_boxed_tensors(logical, returned[i]));
    }
  }

  /// Calls the operator on every example of its own.
  void loop(torch::jit::Stack& results) const {
    const int64_t size = batch_.size().guard_int(__FILE__, __LINE__);
    TORCH_CHECK(
        size > 0, "vmap: ", schema_.name(), " runs on each example of its own, and there is none");
    std::vector<torch::jit::Stack> returned;
    for (int64_t index = 0; index < size; ++index) {
      returned.push_back(call_example(index));
    }
    for (size_t i = 0; i < schema_.returns().size(); ++i) {
      const std::optional<c10::IValue> written = written_argument(schema_.returns()[i]);
      results.push_back(written.has_value() ? *written : stacked(returned, i));
    }
  }

  /// A result's batch dimension is checked: a rule that an operator does not keep is no silent error.
  void check_result(bool is_kept, const at::Tensor& result, const char* rule) const {
    TORCH_CHECK(
        is_kept,
        "vmap: ",
        schema_.name(),
        " is declared '",
        rule,
        "', and has a result of shape ",
        result.sym_sizes(),
        " for a batch of ",
        batch_.size());
  }

 private:
  bool all_batched(const c10::IValue& value) const {
    const std::vector<at::Tensor> tensors = tensors_of(value);
    return std::all_of(tensors.begin(), tensors.end(), [this](const at::Tensor& tensor) {
      return batch_.is_batched(tensor);
    });
  }

  template <typename F>
  void write_back(
      const std::vector<at::Tensor>& targets,
      const std::vector<at::Tensor>& computed,
      const F& restore) const {
    for (size_t t = 0; t < targets.size(); ++t) {
      const at::Tensor target = batch_.front(targets[t]);
      if (!(target.has_storage() && target.is_alias_of(computed[t]))) {
        target.copy_(restore(computed[t]));
      }
    }
  }

  std::optional<c10::IValue> written_argument(const c10::Argument& result) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      const c10::Argument& argument = schema_.arguments()[i];
      if (is_written(argument) && same_alias(result, argument) && is_there(values_[i])) {
        return values_[i];
      }
    }
    return std::nullopt;
  }

  torch::jit::Stack call_example(int64_t index) const {
    const auto example = [&](const at::Tensor& tensor) { return batch_.example(tensor, index); };
    torch::jit::Stack stack;
    for (const c10::IValue& value : values_) {
      stack.push_back(map_boxed_tensors(example, value));
    }
    op_.callBoxed(&stack);
    return stack;
  }

  c10::IValue stacked(const std::vector<torch::jit::Stack>& returned, size_t result) const {
    size_t next = 0; // of the tensors of one result
    return map_boxed_tensors(
        [&](const at::Tensor&) {
          std::vector<at::Tensor> examples;
          for (const torch::jit::Stack& example : returned) {
            examples.push_back(tensors_of(example[result]).at(next));
          }
          ++next;
          return batch_.logical(at::stack(examples));
        },
        returned.front()[result]);
  }

  const c10::OperatorHandle& op_;
  const c10::FunctionSchema& schema_;
  const std::vector<c10::IValue> values_;
  const Batch batch_;
};

/// Whether the batch dimension would change what dtypes promote to: a logical tensor of no dimension
/// promotes as scalars do, its physical value no longer.
inline bool promotes_otherwise(const Batch& batch, const std::vector<c10::IValue>& values) {
  bool any_scalar = false;
  bool any_other = false;
  std::optional<at::ScalarType> type;
  for (const c10::IValue& value : values) {
    for_each_boxed_tensor(
        [&](const at::Tensor& tensor) {
          if (!tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
            any_scalar = any_scalar || (batch.is_batched(tensor) && tensor.dim() == 0);
            any_other = any_other || (type.has_value() && *type != tensor.scalar_type());
            type = tensor.scalar_type();
          }
        },
        value);
  }
  return any_scalar && any_other;
}

} // namespace detail

/// What must hold of a call, as an example of the batch sees its arguments, for a rule to serve it.
using BatchingCondition = bool (*)(const std::vector<c10::IValue>& values);

/// An argument of a call, for such a condition.
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

/// A kernel of FuncTorchBatched. The derived class says what the physical arguments are; where the
/// condition does not hold, the operator runs on each example of its own.
template <typename Rule>
class BatchingRule : public c10::OperatorKernel {
 public:
  explicit BatchingRule(BatchingCondition condition) : condition_(condition) {}

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::FuncTorchBatched);
    const detail::BatchedCall call(op, *stack);
    if (call.batch().is_empty()) {
      op.callBoxed(stack);
      return;
    }
    torch::jit::drop(*stack, call.values().size());
    call.check_written();
    if (condition_ != nullptr && !condition_(call.values())) {
      return call.loop(*stack);
    }
    static_cast<const Rule*>(this)->run(call, *stack);
  }

 private:
  BatchingCondition condition_;
};

/// `vmap: pointwise`: the batch dimension stands in front of all dimensions and broadcasts.
class PointwiseRule final : public BatchingRule<PointwiseRule> {
 public:
  using BatchingRule::BatchingRule;

  void run(const detail::BatchedCall& call, torch::jit::Stack& results) const {
    if (detail::promotes_otherwise(call.batch(), call.values())) {
      return call.loop(results);
    }
    int64_t rank = 0;
    for (const c10::IValue& value : call.values()) {
      rank = std::max(rank, detail::most_dimensions(detail::tensors_of(value)));
    }
    check_written(call, rank);
    const auto align = [&](const at::Tensor& tensor) {
      return call.batch().is_batched(tensor) ? aligned(call.batch(), tensor, rank) : tensor;
    };
    std::vector<c10::IValue> physical;
    for (const c10::IValue& value : call.values()) {
      physical.push_back(detail::map_boxed_tensors(align, value));
    }
    const auto restore = [&call](const at::Tensor& result) {
      call.check_result(
          result.dim() > 0 && result.sym_size(0) == call.batch().size(), result, "pointwise");
      return result;
    };
    call.run(physical, restore, results);
  }

 private:
  /// With the batch in front, dimensions that an example's tensor has not could look like its own.
  static void check_written(const detail::BatchedCall& call, int64_t rank) {
    for (size_t i = 0; i < call.values().size(); ++i) {
      const c10::Argument& argument = call.schema().arguments()[i];
      for (const at::Tensor& tensor : detail::tensors_of(call.values()[i])) {
        TORCH_CHECK(
            !detail::is_written(argument) || tensor.dim() == rank,
            call.schema().name(),
            ": '",
            argument.name(),
            "' with shape ",
            tensor.sym_sizes(),
            " doesn't match the broadcast shape, which has ",
            rank,
            " dimensions");
      }
    }
  }

  static at::Tensor aligned(const detail::Batch& batch, const at::Tensor& tensor, int64_t rank) {
    at::Tensor physical = batch.front(tensor);
    for (int64_t dim = tensor.dim(); dim < rank; ++dim) {
      physical = physical.unsqueeze(1);
    }
    return physical;
  }
};

/// `vmap: leading`: the batch dimension joins the leading one of the arguments that have rows; where
/// each of them is a single row, it is the leading one. The other tensors belong to all rows: where
/// one of them is batched, or numbers of rows differ, the operator runs on each example of its own.
class LeadingRule final : public BatchingRule<LeadingRule> {
 public:
  LeadingRule(std::vector<std::string> rows, BatchingCondition condition)
      : BatchingRule(condition), rows_(std::move(rows)) {}

  void run(const detail::BatchedCall& call, torch::jit::Stack& results) const {
    std::vector<at::Tensor> with_rows;
    for (size_t i = 0; i < call.values().size(); ++i) {
      const std::vector<at::Tensor> tensors = detail::tensors_of(call.values()[i]);
      const c10::Argument& argument = call.schema().arguments()[i];
      if (has_rows(argument)) {
        with_rows.insert(with_rows.end(), tensors.begin(), tensors.end());
      } else if (call.batch().is_batched(call.values()[i])) {
        return call.loop(results);
      }
    }
    const int64_t rank = detail::most_dimensions(with_rows);
    if (rank == 0) {
      return call.loop(results); // no example has a leading dimension
    }
    if (rank == 1) {
      return run_at_once(call, std::nullopt, results);
    }
    const c10::SymInt count = row_count(with_rows);
    const bool all_have_it =
        std::all_of(with_rows.begin(), with_rows.end(), [&](const at::Tensor& tensor) {
          return tensor.dim() > 0 && tensor.sym_size(0) == count;
        });
    return all_have_it ? run_at_once(call, count, results) : call.loop(results);
  }

 private:
  static c10::SymInt row_count(const std::vector<at::Tensor>& tensors) {
    const auto matrix = std::find_if(
        tensors.begin(), tensors.end(), [](const at::Tensor& tensor) { return tensor.dim() > 1; });
    return matrix->sym_size(0);
  }

  bool has_rows(const c10::Argument& argument) const {
    return std::find(rows_.begin(), rows_.end(), argument.name()) != rows_.end();
  }

  /// count: how many rows an example has; none where it is a single one.
  void run_at_once(
      const detail::BatchedCall& call,
      const std::optional<c10::SymInt>& count,
      torch::jit::Stack& results) const {
    const detail::Batch& batch = call.batch();
    const auto fold = [&](const at::Tensor& tensor) {
      std::vector<c10::SymInt> sizes = tensor.sym_sizes().vec();
      sizes.insert(sizes.begin(), batch.size());
      const at::Tensor value =
          batch.is_batched(tensor) ? batch.front(tensor) : tensor.expand_symint(sizes);
      return count.has_value() ? value.flatten(0, 1) : value;
    };
    const auto restore = [&](const at::Tensor& result) {
      const c10::SymInt rows = count.has_value() ? batch.size() * *count : batch.size();
      call.check_result(result.dim() > 0 && result.sym_size(0) == rows, result, "leading");
      return count.has_value() ? result.unflatten_symint(0, {batch.size(), *count}) : result;
    };
    std::vector<c10::IValue> physical;
    for (size_t i = 0; i < call.values().size(); ++i) {
      const bool rows = has_rows(call.schema().arguments()[i]);
      physical.push_back(
          rows ? detail::map_boxed_tensors(fold, call.values()[i]) : call.values()[i]);
    }
    call.run(std::move(physical), restore, results);
  }

  std::vector<std::string> rows_;
};

inline torch::CppFunction pointwise_rule(BatchingCondition condition = nullptr) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<PointwiseRule>(condition));
}

/// rows: the arguments that have the leading dimension.
inline torch::CppFunction leading_rule(
    std::initializer_list<const char*> rows, BatchingCondition condition = nullptr) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<LeadingRule>(
      std::vector<std::string>(rows.begin(), rows.end()), condition));
}

} // namespace v1
} // namespace torchext
