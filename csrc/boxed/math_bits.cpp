// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/core/stack.h>
#include <ATen/native/Resize.h>
#include <torchext/generated/boxed.h>
#include <torchext/generated/math_bits.h>
#include <torchext/generated/memory_overlap.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace detail {
namespace {

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

} // namespace
} // namespace detail

namespace {

class WrittenWithoutBit final : public c10::OperatorKernel {
 public:
  explicit WrittenWithoutBit(c10::DispatchKey key) : key_(key) {}

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const auto count = static_cast<int64_t>(op.schema().arguments().size());
    detail::WithoutBit call(op.schema(), key_, {stack->end() - count, stack->end()});
    torch::jit::drop(*stack, count);
    const size_t first = stack->size();
    const std::vector<c10::IValue> values = call.values();
    stack->insert(stack->end(), values.begin(), values.end());
    const c10::DispatchKeySet below(c10::DispatchKeySet::FULL_AFTER, key_);
    op.redispatchBoxed(keys & below, stack);
    call.copy_back();
    for (size_t i = first; i < stack->size(); ++i) {
      (*stack)[i] = call.given((*stack)[i]);
    }
  }

 private:
  c10::DispatchKey key_;
};

} // namespace

torch::CppFunction without_bit(c10::DispatchKey key) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<WrittenWithoutBit>(key));
}

} // namespace v1
} // namespace torchext
