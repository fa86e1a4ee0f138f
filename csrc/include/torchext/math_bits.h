// SPDX-License-Identifier: BSD-3-Clause
//
// The Conjugate and Negative kernels of operators that write to more than one tensor that is their
// first result, which torch's own fallbacks refuse or take for that result. What has the bit is given
// as a copy without it; what was written to the copy is copied back. Boxed: they serve every schema.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>
#include <torchext/boxed.h>
#include <torchext/memory_overlap.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace detail {

/// The arguments of a call, as the operator is given them without the bit of a key.
class WithoutBit {
 public:
  WithoutBit(
      const c10::FunctionSchema& schema, c10::DispatchKey key, std::vector<c10::IValue> values)
      : schema_(schema), key_(key), values_(std::move(values)) {
    for (size_t i = 0; i < values_.size(); ++i) {
      for (const at::Tensor& tensor : tensors_of(values_[i])) {
        if (tensor.key_set().has(key_) && copy_of(tensor) == nullptr) {
          copies_.push_back({tensor, tensor.clone(), false});
        }
      }
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      if (is_written(schema_.arguments()[i])) {
        for (const at::Tensor& tensor : tensors_of(values_[i])) {
          if (Copy* copy = copy_of(tensor)) {
            copy->is_written = true;
            check_apart(i, tensor);
          }
        }
      }
    }
  }

  std::vector<c10::IValue> values() {
    std::vector<c10::IValue> found;
    for (const c10::IValue& value : values_) {
      found.push_back(map_boxed_tensors(
          [this](const at::Tensor& tensor) {
            const Copy* copy = copy_of(tensor);
            return copy != nullptr ? copy->value : tensor;
          },
          value));
    }
    return found;
  }

  void copy_back() const {
    for (const Copy& copy : copies_) {
      if (copy.is_written) {
        at::native::resize_output_symint(copy.tensor, copy.value.sym_sizes());
        copy.tensor.copy_(copy.value);
      }
    }
  }

  /// A result that is a copy is the argument that was given.
  c10::IValue given(const c10::IValue& result) const {
    return map_boxed_tensors(
        [this](const at::Tensor& tensor) {
          for (const Copy& copy : copies_) {
            if (copy.value.is_same(tensor)) {
              return copy.tensor;
            }
          }
          return tensor;
        },
        result);
  }

 private:
  struct Copy {
    at::Tensor tensor;
    at::Tensor value;
    bool is_written;
  };

  Copy* copy_of(const at::Tensor& tensor) {
    const auto found = std::find_if(copies_.begin(), copies_.end(), [&](const Copy& copy) {
      return copy.tensor.is_same(tensor);
    });
    return found == copies_.end() ? nullptr : &*found;
  }

  /// Refuses an argument that would not see what is written to the copy of another one.
  void check_apart(size_t written, const at::Tensor& tensor) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      for (const at::Tensor& other : tensors_of(values_[i])) {
        const bool share = !other.is_same(tensor) && other.has_storage() && tensor.has_storage() &&
                           other.is_alias_of(tensor) && have_common_bytes(other, tensor);
        TORCH_CHECK(
            !share,
            schema_.name(),
            ": '",
            schema_.arguments()[written].name(),
            "' is a lazily ",
            key_ == c10::DispatchKey::Conjugate ? "conjugated" : "negated",
            " view, whose values are written to a copy, and shares memory with '",
            schema_.arguments()[i].name(),
            "', which would not see them; pass a .clone() of one of them");
      }
    }
  }

  const c10::FunctionSchema& schema_;
  c10::DispatchKey key_;
  std::vector<c10::IValue> values_;
  std::vector<Copy> copies_;
};

template <c10::DispatchKey key>
void write_without_bit(
    const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto count = static_cast<int64_t>(op.schema().arguments().size());
  WithoutBit call(op.schema(), key, {stack->end() - count, stack->end()});
  torch::jit::drop(*stack, count);
  const size_t first = stack->size();
  const std::vector<c10::IValue> values = call.values();
  stack->insert(stack->end(), values.begin(), values.end());
  const c10::DispatchKeySet below(c10::DispatchKeySet::FULL_AFTER, key);
  op.redispatchBoxed(keys & below, stack);
  call.copy_back();
  for (size_t i = first; i < stack->size(); ++i) {
    (*stack)[i] = call.given((*stack)[i]);
  }
}

} // namespace detail

/// The kernel for a key whose bit says that the values of a tensor are conjugated, or negated.
template <c10::DispatchKey key>
torch::CppFunction without_bit() {
  return torch::CppFunction::makeFromBoxedFunction<&detail::write_without_bit<key>>();
}

} // namespace v1
} // namespace torchext
