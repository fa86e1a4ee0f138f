// SPDX-License-Identifier: BSD-3-Clause
//
// A call under torch.vmap, boxed: its batch, its arguments, and one call of the operator for all
// examples. What vmap calls logical is a tensor as the function under vmap sees it; its physical
// value has the batch dimension as well.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/stack.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/TensorWrapper.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torchext/generated/batching.h>
#include <torchext/generated/boxed.h>
#include <torchext/generated/memory_overlap.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace detail {

inline bool has_mode(c10::impl::TorchDispatchModeKey key) {
  return c10::impl::TorchDispatchModeTLS::get_mode(key).has_value();
}

/// Whether calls are recorded, to be run again as a program.
inline bool is_recorded() {
  return has_mode(c10::impl::TorchDispatchModeKey::PROXY) ||
         c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Tracer);
}

inline at::functorch::DynamicLayer current_layer() {
  const auto layer = at::functorch::maybeCurrentDynamicLayer();
  TORCH_CHECK(
      layer.has_value() && layer->key() == at::functorch::TransformType::Vmap,
      "a tensor was used outside of the vmap that made it");
  return *layer;
}

/// What a wrapper of torch.func holds; none where the tensor is no wrapper.
inline std::optional<at::Tensor> wrapped_by(const at::Tensor& tensor) {
  if (const auto* wrapper = at::functorch::maybeGetTensorWrapper(tensor)) {
    return wrapper->value();
  }
  const auto* batched = at::functorch::maybeGetBatchedImpl(tensor);
  return batched != nullptr ? std::make_optional(batched->value()) : std::nullopt;
}

inline at::Tensor unwrapped(at::Tensor tensor) {
  while (std::optional<at::Tensor> inner = wrapped_by(tensor)) {
    tensor = std::move(*inner);
  }
  return tensor;
}

/// Whether a gradient is recorded for a tensor, by whichever level.
inline bool is_recorded_for(at::Tensor tensor) {
  for (std::optional<at::Tensor> next = std::move(tensor); next.has_value();) {
    if (next->requires_grad()) {
      return true;
    }
    next = wrapped_by(*next);
  }
  return false;
}

/// Whether what was computed in a tensor is in the other one already: it is that one, or a view.
inline bool lie_together(const at::Tensor& target, const at::Tensor& computed) {
  const at::Tensor a = unwrapped(target);
  const at::Tensor b = unwrapped(computed);
  return a.has_storage() && b.has_storage() && a.is_alias_of(b);
}

/// The innermost vmap, and its batch among the arguments of a call.
class Batch {
 public:
  explicit Batch(const std::vector<c10::IValue>& values) : layer_(current_layer()) {
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

  /// Whether no argument is batched.
  bool is_empty() const {
    return !size_.has_value();
  }

  c10::SymInt size() const {
    return size_.has_value() ? *size_ : layer_.batchSize();
  }

  /// The number of examples, for a call of each.
  int64_t count() const {
    return size().guard_int(__FILE__, __LINE__);
  }

  at::functorch::RandomnessType randomness() const {
    return layer_.randomness();
  }

  bool is_batched(const at::Tensor& tensor) const {
    const auto* impl = at::functorch::maybeGetBatchedImpl(tensor);
    return impl != nullptr && impl->level() == layer_.layerId();
  }

  bool is_batched(const c10::IValue& value) const {
    const std::vector<at::Tensor> tensors = tensors_of(value);
    return std::any_of(tensors.begin(), tensors.end(), [this](const at::Tensor& tensor) {
      return is_batched(tensor);
    });
  }

  bool all_batched(const c10::IValue& value) const {
    const std::vector<at::Tensor> tensors = tensors_of(value);
    return std::all_of(tensors.begin(), tensors.end(), [this](const at::Tensor& tensor) {
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
    return at::functorch::makeBatched(physical, 0, layer_.layerId());
  }

  /// A tensor as one that every example has.
  at::Tensor expanded(const at::Tensor& tensor) const {
    if (is_batched(tensor)) {
      return tensor;
    }
    std::vector<c10::SymInt> sizes = tensor.sym_sizes().vec();
    sizes.insert(sizes.begin(), size());
    return logical(tensor.expand_symint(sizes));
  }

 private:
  at::functorch::DynamicLayer layer_;
  std::optional<c10::SymInt> size_;
};

/// One call under vmap: the arguments, how they become physical, and what becomes of the results.
class BatchedCall {
 public:
  BatchedCall(const c10::OperatorHandle& op, std::vector<c10::IValue> values)
      : op_(op), schema_(op.schema()), values_(std::move(values)), batch_(values_) {}

  const c10::OperatorHandle& op() const {
    return op_;
  }

  const c10::FunctionSchema& schema() const {
    return schema_;
  }

  const std::string& name() const {
    return schema_.name();
  }

  const std::vector<c10::IValue>& values() const {
    return values_;
  }

  const Batch& batch() const {
    return batch_;
  }

  /// What is written to must have the batch dimension that the values for it have, and memory of
  /// its own for each example.
  void check_written() const {
    for (size_t i = 0; i < values_.size(); ++i) {
      const c10::Argument& argument = schema_.arguments()[i];
      const auto check = [&](const at::Tensor& tensor) {
        TORCH_CHECK(
            !is_written(argument) || !is_expanded(tensor),
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation. "
            "(vmap: ",
            name(),
            " writes to '",
            argument.name(),
            "', whose examples are one)");
      };
      TORCH_CHECK(
          !is_written(argument) || batch_.all_batched(values_[i]),
          "vmap: ",
          name(),
          " writes to '",
          argument.name(),
          "', which is not batched, while another argument is: one tensor has no room for the "
          "results of all examples");
      for_each_boxed_tensor(check, values_[i]);
    }
  }

  /// The tensors that are written to, each once.
  std::vector<at::Tensor> written_tensors() const {
    std::vector<at::Tensor> found;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (is_written(schema_.arguments()[i])) {
        for (const at::Tensor& tensor : tensors_of(values_[i])) {
          if (place_of(found, tensor) == found.size()) {
            found.push_back(tensor);
          }
        }
      }
    }
    return found;
  }

  /// Which of some tensors it is; their number where it is none.
  static size_t place_of(const std::vector<at::Tensor>& tensors, const at::Tensor& tensor) {
    const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const at::Tensor& other) {
      return other.is_same(tensor);
    });
    return static_cast<size_t>(found - tensors.begin());
  }

  /// Refuses tensors that are written to on copies and have elements in common with another one, which
  /// would not see it.
  void check_copied_apart() const {
    for (size_t i = 0; i < values_.size(); ++i) {
      for (size_t j = 0; j < values_.size(); ++j) {
        const bool is_asked =
            is_written(schema_.arguments()[i]) && (!is_written(schema_.arguments()[j]) || i <= j);
        for (const at::Tensor& a : is_asked ? tensors_of(values_[i]) : std::vector<at::Tensor>()) {
          for (const at::Tensor& b : tensors_of(values_[j])) {
            TORCH_CHECK(
                a.is_same(b) || !have_common_elements(a, b),
                name(),
                ": '",
                schema_.arguments()[i].name(),
                "' and '",
                schema_.arguments()[j].name(),
                is_written(schema_.arguments()[j]) ? "' are written to and share memory"
                                                   : "' share memory, and the first is written to",
                ", and vmap calls the operator on copies here, which do not; pass a .clone() of one "
                "of them");
          }
        }
      }
    }
  }

  /// Calls the operator once on the physical arguments. `restore` gives a result, or a tensor that
  /// was written to, its batch dimension in front; it is told which result that is.
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
    for (size_t i = 0; i < returned.size(); ++i) {
      const auto logical = [&](const at::Tensor& result) {
        return batch_.logical(restore(result, i));
      };
      const std::optional<c10::IValue> written = written_argument(schema_.returns()[i]);
      results.push_back(written.has_value() ? *written : map_boxed_tensors(logical, returned[i]));
    }
  }

  /// A result's batch dimension is checked: a rule that an operator does not keep is no silent error.
  void check_result(bool is_kept, const at::Tensor& result, const char* rule) const {
    TORCH_CHECK(
        is_kept,
        "vmap: ",
        name(),
        " is declared '",
        rule,
        "', and has a result of shape ",
        result.sym_sizes(),
        " for a batch of ",
        batch_.size());
  }

  /// The argument that a result is; none where it is new or a view.
  std::optional<c10::IValue> written_argument(const c10::Argument& result) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      const c10::Argument& argument = schema_.arguments()[i];
      if (is_written(argument) && same_alias(result, argument) && is_there(values_[i])) {
        return values_[i];
      }
    }
    return std::nullopt;
  }

 private:
  /// With the other examples of a batch: where those of one meet, or one those of another.
  static bool have_common_elements(const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor left = in_memory(a);
    const at::Tensor right = in_memory(b);
    return left.defined() && right.defined() && left.has_storage() && right.has_storage() &&
           left.is_alias_of(right) && have_common_bytes(left, right);
  }

  bool is_expanded(const at::Tensor& tensor) const {
    if (!batch_.is_batched(tensor) || op_.hasTag(at::Tag::inplace_view)) {
      return false;
    }
    const at::Tensor front = batch_.front(tensor);
    // without elements a stride says nothing
    return front.sym_size(0) > 1 && front.sym_stride(0) == 0 && front.sym_numel() > 0;
  }

  template <typename F>
  void write_back(
      const std::vector<at::Tensor>& targets,
      const std::vector<at::Tensor>& computed,
      const F& restore) const {
    for (size_t t = 0; t < targets.size(); ++t) {
      const at::Tensor target = batch_.front(targets[t]);
      if (!lie_together(target, computed[t])) {
        target.copy_(restore(computed[t], schema_.returns().size()));
      }
    }
  }

  const c10::OperatorHandle& op_;
  const c10::FunctionSchema& schema_;
  const std::vector<c10::IValue> values_;
  const Batch batch_;
};

} // namespace detail
} // namespace v1
} // namespace torchext
