// SPDX-License-Identifier: BSD-3-Clause
//
// Refuses what a kernel returns and is not new, though its schema says so: an argument, whose history
// would become that of the operator, and which a traced call takes for memory of its own; what shares
// memory with one; and two results that are one tensor or have elements in common.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>
#include <torchext/generated/arguments.h>
#include <torchext/generated/memory_overlap.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

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

[[noreturn]] C10_NOINLINE inline void refuse_common_elements(const char* op) {
  TORCH_CHECK(
      false,
      op,
      ": the kernel returned two results that share memory, expected new tensors. Return a copy, "
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

namespace detail {

/// The new results of one call. Without elements two may be one: there is nothing to compute.
class NewResults {
 public:
  void add(const at::Tensor& tensor) {
    if (tensor.defined() && has_elements(tensor)) {
      results_.push_back(tensor);
    }
  }

  /// Refuses one tensor as two of them and, where `memory` says so, elements in common.
  void check_apart(const char* op, bool memory) {
    sort([](const at::Tensor& t) { return t.unsafeGetTensorImpl(); });
    for (size_t i = 1; i < results_.size(); ++i) {
      if (results_[i].is_same(results_[i - 1])) {
        refuse_twice(op);
      }
    }
    if (!memory) {
      return;
    }
    sort([](const at::Tensor& t) { return memory_of(t); });
    for (size_t i = 0, end = 0; i < results_.size(); i = end) {
      for (end = i + 1; end < results_.size() && share_memory(results_[i], results_[end]);) {
        ++end;
      }
      if (end - i > 1) {
        check_in_one_memory(op, i, end);
      }
    }
  }

 private:
  template <typename Key>
  void sort(const Key& key) {
    std::sort(results_.begin(), results_.end(), [&](const at::Tensor& a, const at::Tensor& b) {
      return std::less<const void*>()(key(a), key(b));
    });
  }

  static bool share_memory(const at::Tensor& a, const at::Tensor& b) {
    return memory_of(a) != nullptr && memory_of(a) == memory_of(b);
  }

  /// Sorted by where they begin, those that one can meet stand behind it: of many parts of one memory
  /// few are compared.
  C10_NOINLINE void check_in_one_memory(const char* op, size_t begin, size_t end) {
    std::vector<std::pair<MemoryExtent, const at::Tensor*>> parts;
    for (size_t i = begin; i < end; ++i) {
      parts.emplace_back(MemoryExtent(results_[i]), &results_[i]);
    }
    std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
      return a.first.start < b.first.start;
    });
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t last = parts[i].first.end();
      for (size_t j = i + 1; j < parts.size() && parts[j].first.start < last; ++j) {
        if (have_common_bytes(*parts[i].second, *parts[j].second)) {
          refuse_common_elements(op);
        }
      }
    }
  }

  std::vector<at::Tensor> results_;
};

/// Whether two of a few tensors may be one, or in one memory.
template <size_t N>
bool may_meet(const std::array<const at::Tensor*, N>& made) {
  for (size_t i = 1; i < N; ++i) {
    const void* memory = made[i]->defined() ? memory_of(*made[i]) : nullptr;
    for (size_t j = 0; j < i; ++j) {
      if (made[i]->is_same(*made[j]) ||
          (memory != nullptr && made[j]->defined() && memory == memory_of(*made[j]))) {
        return true;
      }
    }
  }
  return false;
}

template <typename... Results>
void check_apart(const char* op, bool memory, const Results&... results) {
  if constexpr ((std::is_same_v<Results, at::Tensor> && ...)) {
    if (C10_LIKELY(!may_meet(std::array<const at::Tensor*, sizeof...(Results)>{&results...}))) {
      return;
    }
  }
  NewResults made;
  (for_each_tensor([&made](const at::Tensor& tensor) { made.add(tensor); }, results), ...);
  made.check_apart(op, memory);
}

} // namespace detail

/// Refuses results that are one tensor or have elements in common.
template <typename... Results>
void check_apart(const char* op, const Results&... results) {
  detail::check_apart(op, /*memory=*/true, results...);
}

/// The same of an operator whose tags say that results may share memory.
template <typename... Results>
void check_no_twins(const char* op, const Results&... results) {
  detail::check_apart(op, /*memory=*/false, results...);
}

} // namespace v1
} // namespace torchext
