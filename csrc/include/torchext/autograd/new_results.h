// SPDX-License-Identifier: BSD-3-Clause
//
// Refuses what a kernel returns and is not new, though its schema says so: an argument, whose history
// would become that of the operator, and which a traced call takes for memory of its own; what shares
// memory with one; and one tensor as two results.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>
#include <torchext/arguments.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <type_traits>

namespace torchext {
inline namespace v1 {
namespace detail {

constexpr auto kReturnACopy =
    ", expected a new tensor. Return a copy, at::clone(x), or decide before the call whether there "
    "is something to do; an operator that returns ";

[[noreturn]] C10_NOINLINE inline void refuse_argument(const char* op) {
  TORCH_CHECK(
      false,
      op,
      ": the kernel returned one of its arguments",
      kReturnACopy,
      "its argument says so in its schema, Tensor(a) -> Tensor(a)");
}

[[noreturn]] C10_NOINLINE inline void refuse_shared(const char* op) {
  TORCH_CHECK(
      false,
      op,
      ": the kernel returned a tensor that shares memory with one of its arguments",
      kReturnACopy,
      "a view of its argument says so in its schema, Tensor(a) -> Tensor(a)");
}

[[noreturn]] C10_NOINLINE inline void refuse_twice(const char* op) {
  TORCH_CHECK(
      false,
      op,
      ": the kernel returned one tensor as two results, expected new tensors. Return a copy, "
      "at::clone(x), for one of them");
}

/// Its memory; null where it has none of its own.
inline const void* memory_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

/// Asked where two tensors share memory only: a size that is a symbol is of a tensor with elements.
C10_NOINLINE inline bool has_elements(const at::Tensor& tensor) {
  return tensor.sym_numel().maybe_as_int().value_or(1) != 0;
}

/// Refuses a defined tensor that is another one or, where `memory` says so, shares its memory.
inline void compare_with(
    const char* op, bool memory, const at::Tensor& made, const at::Tensor& given) {
  if (C10_UNLIKELY(made.unsafeGetTensorImpl() == given.unsafeGetTensorImpl())) {
    refuse_argument(op);
  }
  const void* own = memory_of(made);
  if (C10_UNLIKELY(memory && own != nullptr && own == memory_of(given)) && has_elements(made)) {
    refuse_shared(op);
  }
}

/// The arguments and results of one call, where there are lists: each is looked up, so that long
/// ones are not compared tensor by tensor.
class Identities {
 public:
  void add(const at::Tensor& given) {
    if (given.defined()) {
      tensors_.push_back(given.unsafeGetTensorImpl());
      if (memory_of(given) != nullptr) {
        memories_.push_back(memory_of(given));
      }
    }
  }

  /// Before the first question.
  void sort() {
    std::sort(tensors_.begin(), tensors_.end(), std::less<>());
    std::sort(memories_.begin(), memories_.end(), std::less<>());
  }

  bool has(const at::Tensor& tensor) const {
    return has(tensors_, tensor.unsafeGetTensorImpl());
  }

  bool has_memory_of(const at::Tensor& tensor) const {
    return has(memories_, memory_of(tensor));
  }

  /// Whether one tensor was added twice.
  bool has_twins() const {
    return std::adjacent_find(tensors_.begin(), tensors_.end()) != tensors_.end();
  }

 private:
  using Places = c10::SmallVector<const void*, 8>;

  static bool has(const Places& places, const void* place) {
    return std::binary_search(places.begin(), places.end(), place, std::less<>());
  }

  Places tensors_;
  Places memories_;
};

template <typename... Arguments>
void compare_all(
    const char* op, bool memory, const at::Tensor& made, const Arguments&... arguments) {
  if (made.defined()) {
    const auto compare = [&](const at::Tensor& given) { compare_with(op, memory, made, given); };
    (for_each_tensor(compare, arguments), ...);
  }
}

/// The same of a list.
template <typename List, typename... Arguments>
void compare_all(const char* op, bool memory, const List& made, const Arguments&... arguments) {
  Identities given;
  (for_each_tensor([&](const at::Tensor& t) { given.add(t); }, arguments), ...);
  given.sort();
  const auto compare = [&](const at::Tensor& tensor) {
    if (given.has(tensor)) {
      refuse_argument(op);
    }
    if (memory && given.has_memory_of(tensor) && has_elements(tensor)) {
      refuse_shared(op);
    }
  };
  for_each_tensor(compare, made);
}

} // namespace detail

/// Refuses a result that is an argument or shares memory with one.
template <typename Result, typename... Arguments>
void check_new(const char* op, const Result& result, const Arguments&... arguments) {
  detail::compare_all(op, /*memory=*/true, result, arguments...);
}

/// The same of an operator whose tags say that a result may share memory with an argument.
template <typename Result, typename... Arguments>
void check_no_argument(const char* op, const Result& result, const Arguments&... arguments) {
  detail::compare_all(op, /*memory=*/false, result, arguments...);
}

/// Refuses one tensor as two results. One without elements may be: there is nothing to compute.
template <typename... Results>
void check_apart(const char* op, const Results&... results) {
  if constexpr ((std::is_same_v<Results, at::Tensor> && ...)) {
    const std::array<const at::Tensor*, sizeof...(Results)> made{&results...};
    for (size_t i = 1; i < made.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (C10_UNLIKELY(made[i]->is_same(*made[j])) && made[i]->defined() &&
            detail::has_elements(*made[i])) {
          detail::refuse_twice(op);
        }
      }
    }
  } else {
    detail::Identities made;
    const auto add = [&made](const at::Tensor& tensor) {
      if (tensor.defined() && detail::has_elements(tensor)) {
        made.add(tensor);
      }
    };
    (for_each_tensor(add, results), ...);
    made.sort();
    if (made.has_twins()) {
      detail::refuse_twice(op);
    }
  }
}

} // namespace v1
} // namespace torchext
