// SPDX-License-Identifier: BSD-3-Clause
//
// What the dispatcher lets through and a schema does not mean; generated wrappers ask before a
// kernel runs.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <torchext/generated/arguments.h>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace torchext {
inline namespace v1 {

namespace detail {

[[noreturn]] C10_NOINLINE inline void refuse_undefined(
    const char* name, const char* arguments, size_t place) {
  TORCH_CHECK(
      false,
      name,
      ": expected a tensor for argument '",
      name_at(arguments, place),
      "', got None, in C++ an undefined tensor (an argument of type Tensor? may be missing)");
}

[[noreturn]] C10_NOINLINE inline void refuse_length(
    const char* name, const char* argument, size_t expected, size_t given) {
  TORCH_CHECK(
      false,
      name,
      ": expected a list of length ",
      expected,
      " for argument '",
      argument,
      "', got one of length ",
      given);
}

template <typename List, typename = void>
constexpr bool is_optional_list = false;

template <typename List>
constexpr bool is_optional_list<List, std::void_t<decltype(std::declval<List>().has_value())>> =
    true;

} // namespace detail

/// Refuses an undefined tensor, or one in a list; `names` are those of the arguments, "self, other".
template <typename... Arguments>
void check_defined(const char* name, const char* names, const Arguments&... arguments) {
  const auto check = [&](const at::Tensor& tensor, size_t place) {
    if (C10_UNLIKELY(!tensor.defined())) {
      detail::refuse_undefined(name, names, place);
    }
  };
  for_each_argument(check, arguments...);
}

/// Refuses a list, which may be missing, of another length than that of its type or one of `others`.
template <typename List, typename... Lengths>
void check_length(
    const char* name, const char* argument, const List& list, size_t expected, Lengths... others) {
  size_t given = 0;
  if constexpr (detail::is_optional_list<List>) {
    if (!list.has_value()) {
      return;
    }
    given = list->size();
  } else {
    given = list.size();
  }
  if (C10_UNLIKELY(!((given == expected) || ... || (given == static_cast<size_t>(others))))) {
    detail::refuse_length(name, argument, expected, given);
  }
}

} // namespace v1
} // namespace torchext
