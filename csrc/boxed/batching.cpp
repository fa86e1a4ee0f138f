// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torchext/generated/batching.h>
#include <torchext/generated/boxed.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batching_call.h"
#include "batching_empty.h"
#include "batching_examples.h"
#include "batching_random.h"

// Of ATen/functorch/BatchedFallback.h, which includes all of ATen.
namespace at::functorch {
TORCH_API bool isVmapFallbackEnabled();
TORCH_API bool isVmapFallbackWarningEnabled();
} // namespace at::functorch

namespace torchext {
inline namespace v1 {
namespace detail {
namespace {

int64_t most_dimensions(const std::vector<at::Tensor>& tensors) {
  int64_t most = 0;
  for (const at::Tensor& tensor : tensors) {
    most = std::max(most, tensor.dim());
  }
  return most;
}

/// The call with the batch dimension on every tensor.
BatchedCall expanded(const BatchedCall& call) {
  const auto expand = [&call](const at::Tensor& tensor) { return call.batch().expanded(tensor); };
  std::vector<c10::IValue> values;
  for (const c10::IValue& value : call.values()) {
    values.push_back(map_boxed_tensors(expand, value));
  }
  return BatchedCall(call.op(), std::move(values));
}

/// Calls the operator on every example of its own.
void call_each(const BatchedCall& call, BatchedOperator op, torch::jit::Stack& results) {
  const int64_t count = call.batch().count();
  if (count == 0) {
    return EmptyBatch(call, op).run(results);
  }
  using at::functorch::RandomnessType;
  if (!op.draws || call.batch().randomness() != RandomnessType::Same) {
    return Examples(call).run(
        count, [](int64_t) {}, results);
  }
  GeneratorStates states(call);
  states.check_not_recorded();
  const auto set_back = [&states](int64_t index) {
    if (index > 0) {
      states.restore();
    }
  };
  Examples(call).run(count, set_back, results);
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// With the batch dimension in front of all that the largest tensor of an example has.
at::Tensor aligned(const Batch& batch, const at::Tensor& tensor, int64_t rank) {
  at::Tensor physical = batch.front(tensor);
  for (int64_t dim = tensor.dim(); dim < rank; ++dim) {
    physical = physical.unsqueeze(1);
  }
  return physical;
}

/// With the batch in front, dimensions that an example's tensor has not could look like its own.
void check_ranks_written(const BatchedCall& call, int64_t rank) {
  for (size_t i = 0; i < call.values().size(); ++i) {
    const c10::Argument& argument = call.schema().arguments()[i];
    for (const at::Tensor& tensor : tensors_of(call.values()[i])) {
      TORCH_CHECK(
          !is_written(argument) || tensor.dim() == rank,
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

/// Whether the batch dimension would change what dtypes promote to: a logical tensor of no dimension
/// promotes as scalars do, its physical value no longer.
bool promotes_otherwise(const Batch& batch, const std::vector<c10::IValue>& values) {
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

} // namespace
} // namespace detail

namespace {

/// A kernel of FuncTorchBatched, and of FuncTorchVmapMode where the operator draws random numbers:
/// torch calls that one where no argument is batched, too. The derived class says how a batch is
/// served; where the condition does not hold, the operator runs on each example of its own.
template <typename Rule>
class BatchingRule : public c10::OperatorKernel {
 public:
  BatchingRule(BatchingCondition condition, BatchedOperator op)
      : condition_(condition), op_(std::move(op)) {}

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKeySet(
        {c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchVmapMode}));
    const auto count = op.schema().arguments().size();
    const detail::BatchedCall call(op, {stack->end() - static_cast<int64_t>(count), stack->end()});
    if (op_.draws) {
      detail::check_randomness(call);
    }
    using at::functorch::RandomnessType;
    const bool differs = op_.draws && call.batch().randomness() == RandomnessType::Different;
    if (call.batch().is_empty() && !differs) {
      op.callBoxed(stack);
      return;
    }
    torch::jit::drop(*stack, count);
    call.check_written();
    if (!op_.draws) {
      return serve(call, *stack);
    }
    // One call draws for all examples where each of them has all that numbers are drawn for.
    const detail::BatchedCall every = differs && Rule::kAtOnce ? detail::expanded(call) : call;
    return every.batch().is_empty() || !differs ? call_each(call, *stack) : serve(every, *stack);
  }

 protected:
  void call_each(const detail::BatchedCall& call, torch::jit::Stack& results) const {
    detail::call_each(call, op_, results);
  }

  /// The operator, as its entry describes it.
  const BatchedOperator& described() const {
    return op_;
  }

 private:
  void serve(const detail::BatchedCall& call, torch::jit::Stack& results) const {
    if (condition_ != nullptr && !condition_(call.values())) {
      return call_each(call, results);
    }
    static_cast<const Rule*>(this)->run(call, results);
  }

  BatchingCondition condition_;
  BatchedOperator op_;
};

/// Without `vmap:`, a call for each example.
class EachExample final : public BatchingRule<EachExample> {
 public:
  using BatchingRule::BatchingRule;
  static constexpr bool kAtOnce = false;

  void run(const detail::BatchedCall& call, torch::jit::Stack& results) const {
    const c10::FunctionSchema& schema = call.schema();
    TORCH_CHECK(
        at::functorch::isVmapFallbackEnabled(),
        schema.operator_name(),
        " hit the vmap fallback which is currently disabled");
    if (at::functorch::isVmapFallbackWarningEnabled() && !has_warned_.exchange(true)) {
      TORCH_WARN(
          "There is a performance drop because ",
          schema.operator_name(),
          " has no batching rule: it runs on each example of a batch of its own. `vmap:` of its "
          "entry gives it one.");
    }
    call_each(call, results);
  }

 private:
  mutable std::atomic<bool> has_warned_ = false;
};

/// `vmap: pointwise`: the batch dimension stands in front of all dimensions and broadcasts.
class PointwiseRule final : public BatchingRule<PointwiseRule> {
 public:
  using BatchingRule::BatchingRule;
  static constexpr bool kAtOnce = true;

  void run(const detail::BatchedCall& call, torch::jit::Stack& results) const {
    int64_t rank = 0;
    for (const c10::IValue& value : call.values()) {
      rank = std::max(rank, detail::most_dimensions(detail::tensors_of(value)));
    }
    if (detail::promotes_otherwise(call.batch(), call.values()) || !keeps_rule(call, rank) ||
        has_lists_of_ranks(call)) {
      return call_each(call, results);
    }
    detail::check_ranks_written(call, rank);
    std::vector<c10::IValue> physical;
    for (size_t i = 0; i < call.values().size(); ++i) {
      const bool is_expanded = has_one_shape(call.schema().arguments()[i]);
      const auto align = [&](const at::Tensor& tensor) {
        if (!call.batch().is_batched(tensor) && !is_expanded) {
          return tensor;
        }
        return detail::aligned(call.batch(), call.batch().expanded(tensor), rank);
      };
      physical.push_back(detail::map_boxed_tensors(align, call.values()[i]));
    }
    const auto restore = [&call, rank](const at::Tensor& result, size_t /*place*/) {
      call.check_result(
          result.dim() == rank + 1 && result.sym_size(0) == call.batch().size(), result, "pointwise");
      return result;
    };
    call.run(physical, restore, results);
  }

 private:
  bool has_one_shape(const c10::Argument& argument) const {
    return detail::contains(described().one_shape, argument.name());
  }

  /// Whether the operator's rule says of the batch what it says of each example.
  bool keeps_rule(const detail::BatchedCall& call, int64_t rank) const {
    for (size_t i = 0; i < call.values().size(); ++i) {
      const c10::Argument& argument = call.schema().arguments()[i];
      const std::vector<at::Tensor> tensors = detail::tensors_of(call.values()[i]);
      const bool is_expanded = has_one_shape(argument);
      const bool is_examined = detail::contains(described().examined, argument.name());
      for (const at::Tensor& tensor : tensors) {
        const bool changes = is_expanded || call.batch().is_batched(tensor);
        if ((changes && is_examined) || (is_expanded && tensor.dim() != rank)) {
          return false;
        }
      }
    }
    return true;
  }

  /// Whether a list has tensors of several ranks, whose results may be of that of each.
  static bool has_lists_of_ranks(const detail::BatchedCall& call) {
    for (const c10::IValue& value : call.values()) {
      const std::vector<at::Tensor> tensors = detail::tensors_of(value);
      for (const at::Tensor& tensor : tensors) {
        if (tensor.dim() != tensors.front().dim()) {
          return true;
        }
      }
    }
    return false;
  }
};

/// `vmap: leading`: the batch dimension joins the leading one of the arguments that have rows; where
/// each of them is a single row, it is the leading one. The other tensors belong to all rows: where
/// one of them is batched, or numbers of rows differ, the operator runs on each example of its own.
/// Of one row come one or more of a result, which lie together in the order of the rows.
class LeadingRule final : public BatchingRule<LeadingRule> {
 public:
  static constexpr bool kAtOnce = true;

  LeadingRule(
      std::vector<std::string> rows,
      BatchingCondition condition,
      BatchedOperator op,
      RowsOfRow rows_of_row)
      : BatchingRule(condition, std::move(op)), rows_(std::move(rows)), rows_of_row_(rows_of_row) {}

  void run(const detail::BatchedCall& call, torch::jit::Stack& results) const {
    std::vector<at::Tensor> with_rows;
    for (size_t i = 0; i < call.values().size(); ++i) {
      const std::vector<at::Tensor> tensors = detail::tensors_of(call.values()[i]);
      const c10::Argument& argument = call.schema().arguments()[i];
      if (has_rows(argument)) {
        with_rows.insert(with_rows.end(), tensors.begin(), tensors.end());
      } else if (call.batch().is_batched(call.values()[i])) {
        return call_each(call, results);
      }
    }
    const int64_t rank = detail::most_dimensions(with_rows);
    // A number has no leading dimension, and promotes otherwise than rows do.
    const bool any_number =
        std::any_of(with_rows.begin(), with_rows.end(), [](const at::Tensor& tensor) {
          return tensor.dim() == 0;
        });
    if (rank == 0 || any_number || !keeps_rule(call, rank)) {
      return call_each(call, results);
    }
    if (rank == 1) {
      return run_at_once(call, std::nullopt, results);
    }
    const c10::SymInt count = row_count(with_rows);
    const bool all_have_it =
        std::all_of(with_rows.begin(), with_rows.end(), [&](const at::Tensor& tensor) {
          return tensor.sym_size(0) == count;
        });
    return all_have_it ? run_at_once(call, count, results) : call_each(call, results);
  }

 private:
  static c10::SymInt row_count(const std::vector<at::Tensor>& tensors) {
    const auto matrix = std::find_if(
        tensors.begin(), tensors.end(), [](const at::Tensor& tensor) { return tensor.dim() > 1; });
    return matrix->sym_size(0);
  }

  /// Whether what is written to must be no view of the examples: autograd lets an operator with
  /// several differentiable results write to none.
  static bool writes_to_no_views(const detail::BatchedCall& call) {
    bool is_recorded = false;
    if (call.schema().returns().size() > 1 && at::GradMode::is_enabled()) {
      for (const c10::IValue& value : call.values()) {
        for (const at::Tensor& tensor : detail::tensors_of(value)) {
          is_recorded = is_recorded || detail::is_recorded_for(tensor);
        }
      }
    }
    return is_recorded;
  }

  /// Whether the operator's rule says of all rows what it says of those of an example. Of a tensor of
  /// one dimension beside one of more that is the number of rows.
  bool keeps_rule(const detail::BatchedCall& call, int64_t rank) const {
    for (size_t i = 0; i < call.values().size(); ++i) {
      const std::string& name = call.schema().arguments()[i].name();
      const std::vector<at::Tensor> tensors = detail::tensors_of(call.values()[i]);
      if (detail::contains(described().examined, name) && !tensors.empty()) {
        return false;
      }
      for (const auto& [asked, least] : described().least_ranks) {
        for (const at::Tensor& tensor : tensors) {
          if (asked == name && tensor.dim() < (rank > 1 ? std::max<int64_t>(least, 2) : least)) {
            return false;
          }
        }
      }
    }
    return true;
  }

  bool has_rows(const c10::Argument& argument) const {
    return detail::contains(rows_, argument.name());
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
    std::optional<c10::SymInt> rows = count; // of a result of an example
    if (rows_of_row_ != nullptr) {
      rows = count.value_or(1) * rows_of_row_(call.values());
    }
    const auto restore = [&](const at::Tensor& result, size_t /*place*/) {
      const c10::SymInt all = batch.size() * rows.value_or(1);
      call.check_result(result.dim() > 0 && result.sym_size(0) == all, result, "leading");
      return rows.has_value() ? result.unflatten_symint(0, {batch.size(), *rows}) : result;
    };
    const bool needs_no_views = count.has_value() && writes_to_no_views(call);
    // One that is given twice is one tensor there as well.
    const std::vector<at::Tensor> written = call.written_tensors();
    std::vector<at::Tensor> folded;
    for (const at::Tensor& tensor : written) {
      folded.push_back(needs_no_views ? fold(tensor).clone() : fold(tensor));
    }
    bool is_copied = false; // any of those that are folded, written to or not
    const auto fold_given = [&](const at::Tensor& tensor) {
      const size_t place = detail::BatchedCall::place_of(written, tensor);
      const at::Tensor found = place < folded.size() ? folded[place] : fold(tensor);
      is_copied = is_copied ||
                  !detail::lie_together(batch.is_batched(tensor) ? batch.front(tensor) : tensor, found);
      return found;
    };
    std::vector<c10::IValue> physical;
    for (size_t i = 0; i < call.values().size(); ++i) {
      const c10::IValue& value = call.values()[i];
      const bool is_folded = has_rows(call.schema().arguments()[i]);
      physical.push_back(is_folded ? detail::map_boxed_tensors(fold_given, value) : value);
    }
    if (is_copied && !written.empty()) {
      call.check_copied_apart();
    }
    call.run(std::move(physical), restore, results);
  }

  std::vector<std::string> rows_;
  RowsOfRow rows_of_row_;
};

/// Of an operator along the last dimension: to the rows of an example come those of the others.
class RowsRule final : public BatchingRule<RowsRule> {
 public:
  using BatchingRule::BatchingRule;
  static constexpr bool kAtOnce = true;

  void run(const detail::BatchedCall& call, torch::jit::Stack& results) const {
    const int64_t rank = rank_of_rows(call);
    if (rank == 0 || promotes_otherwise(call)) {
      return call_each(call, results);
    }
    detail::check_ranks_written(call, rank);
    std::vector<c10::IValue> physical;
    for (size_t i = 0; i < call.values().size(); ++i) {
      const std::string& name = call.schema().arguments()[i].name();
      const int64_t own = is_of_rows(name) ? rank - 1 : rank;
      const auto align = [&](const at::Tensor& tensor) {
        return call.batch().is_batched(tensor) || has_total(name) // of which each example has one
                   ? detail::aligned(call.batch(), call.batch().expanded(tensor), own)
                   : tensor;
      };
      physical.push_back(detail::map_boxed_tensors(align, call.values()[i]));
    }
    const auto restore = [&](at::Tensor result, size_t place) {
      const std::optional<int64_t> total = rank_of_total(call, place);
      while (total.has_value() && result.dim() > *total + 1) {
        result = result.squeeze(1); // by which its argument was aligned
      }
      const int64_t more = rank - result.dim();
      const bool has_batch = result.dim() > 0 && result.sym_size(0) == call.batch().size();
      const bool is_kept = total.has_value() ? result.dim() == *total + 1 : more == 0 || more == -1;
      call.check_result(is_kept && has_batch, result, "rows");
      return result;
    };
    call.run(physical, restore, results);
  }

 private:
  bool is_of_rows(const std::string& name) const {
    return detail::contains(described().of_rows, name);
  }

  bool has_total(const std::string& name) const {
    const auto& totals = described().totals;
    return std::any_of(
        totals.begin(), totals.end(), [&](const auto& total) { return total.first == name; });
  }

  /// The dimensions, without the batch's, of a result that is summed to the size of an argument.
  std::optional<int64_t> rank_of_total(const detail::BatchedCall& call, size_t place) const {
    for (const auto& [name, result] : described().totals) {
      for (size_t i = 0; i < call.values().size(); ++i) {
        const bool is_like = call.schema().arguments()[i].name() == name;
        if (is_like && static_cast<size_t>(result) == place && !call.values()[i].isNone()) {
          return call.values()[i].toTensor().dim();
        }
      }
    }
    return std::nullopt;
  }

  /// The dimensions that the rows of an example have together; 0 where a tensor has none, which the
  /// operator refuses.
  int64_t rank_of_rows(const detail::BatchedCall& call) const {
    int64_t rank = 1;
    for (size_t i = 0; i < call.values().size(); ++i) {
      const bool is_less = is_of_rows(call.schema().arguments()[i].name());
      for (const at::Tensor& tensor : detail::tensors_of(call.values()[i])) {
        if (tensor.dim() == 0 && !is_less) {
          return 0;
        }
        rank = std::max(rank, tensor.dim() + is_less);
      }
    }
    return rank;
  }

  /// Whether a number that an example has one of promotes otherwise than that of a batch: beside
  /// another dtype of its category.
  static bool promotes_otherwise(const detail::BatchedCall& call) {
    std::vector<at::Tensor> given;
    for (const c10::IValue& value : call.values()) {
      const std::vector<at::Tensor> tensors = detail::tensors_of(value);
      given.insert(given.end(), tensors.begin(), tensors.end());
    }
    return std::any_of(given.begin(), given.end(), [&](const at::Tensor& number) {
      const bool is_number = call.batch().is_batched(number) && number.dim() == 0;
      return is_number && std::any_of(given.begin(), given.end(), [&](const at::Tensor& other) {
               return other.scalar_type() != number.scalar_type() &&
                      other.is_floating_point() == number.is_floating_point();
             });
    });
  }
};

/// The kernel of FuncTorchVmapMode of an operator that draws random numbers and has a kernel of its
/// own for FuncTorchBatched, which draws others for each example of a batch.
class RandomnessOfOwnRule final : public BatchingRule<RandomnessOfOwnRule> {
 public:
  using BatchingRule::BatchingRule;
  static constexpr bool kAtOnce = false;

  void run(const detail::BatchedCall& call, torch::jit::Stack& results) const {
    auto keys = c10::impl::tls_local_dispatch_key_set();
    keys.excluded_ = keys.excluded_.remove(c10::DispatchKey::FuncTorchBatched);
    const c10::impl::ForceDispatchKeyGuard guard(keys);
    torch::jit::Stack stack = call.values();
    call.op().callBoxed(&stack);
    results.insert(results.end(), stack.begin(), stack.end());
  }
};

/// The kernel of FuncTorchVmapMode of out= forms that draw random numbers, as of torch's own.
void refuse_random_out(const c10::OperatorHandle& op, torch::jit::Stack* /*stack*/) {
  TORCH_CHECK(
      false,
      "vmap: We do not support calling out variants of random operations inside of vmap. Please use "
      "non-out variants as a workaround (",
      op.schema().name(),
      " draws random numbers)");
}

} // namespace

torch::CppFunction each_example(BatchedOperator op) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<EachExample>(nullptr, std::move(op)));
}

torch::CppFunction pointwise_rule(BatchingCondition condition, BatchedOperator op) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<PointwiseRule>(condition, std::move(op)));
}

torch::CppFunction leading_rule(
    std::initializer_list<const char*> rows,
    BatchingCondition condition,
    BatchedOperator op,
    RowsOfRow rows_of_row) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<LeadingRule>(
          std::vector<std::string>(rows.begin(), rows.end()),
          condition,
          std::move(op),
          rows_of_row));
}

torch::CppFunction rows_rule(BatchedOperator op) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<RowsRule>(nullptr, std::move(op)));
}

torch::CppFunction randomness_of_own_rule() {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<RandomnessOfOwnRule>(nullptr, BatchedOperator{.draws = true}));
}

torch::CppFunction refused_random_out() {
  return torch::CppFunction::makeFromBoxedFunction<&refuse_random_out>();
}

} // namespace v1
} // namespace torchext
