// SPDX-License-Identifier: BSD-3-Clause
//
// One number for all of a list of a fixed length: `int[2]` takes {3}, in C++ 3, for {3, 3}.
#pragma once

#include <c10/util/ArrayRef.h>
#include <c10/util/OptionalArrayRef.h>

#include <array>
#include <cstddef>
#include <optional>

namespace torchext {
inline namespace v1 {

/// A list that stands for N numbers where it has one; it refers to the list that it was made of.
template <size_t N, typename T>
class FixedList {
 public:
  explicit FixedList(c10::ArrayRef<T> given) : given_(given) {
    if (given_.size() == 1) {
      numbers_.fill(given_.front());
    }
  }

  operator c10::ArrayRef<T>() const {
    return given_.size() == 1 ? c10::ArrayRef<T>(numbers_) : given_;
  }

 private:
  std::array<T, N> numbers_{};
  c10::ArrayRef<T> given_;
};

/// The same of one that may be missing.
template <size_t N, typename T>
class OptionalFixedList {
 public:
  explicit OptionalFixedList(std::optional<c10::ArrayRef<T>> given)
      : is_there_(given.has_value()), list_(given.value_or(c10::ArrayRef<T>())) {}

  operator std::optional<c10::ArrayRef<T>>() const {
    return is_there_ ? std::optional<c10::ArrayRef<T>>(list_) : std::nullopt;
  }

  operator c10::OptionalArrayRef<T>() const {
    return is_there_ ? c10::OptionalArrayRef<T>(c10::ArrayRef<T>(list_))
                     : c10::OptionalArrayRef<T>();
  }

 private:
  bool is_there_;
  FixedList<N, T> list_;
};

template <size_t N, typename T>
FixedList<N, T> fixed_list(c10::ArrayRef<T> list) {
  return FixedList<N, T>(list);
}

template <size_t N, typename T>
OptionalFixedList<N, T> fixed_list(std::optional<c10::ArrayRef<T>> list) {
  return OptionalFixedList<N, T>(list);
}

template <size_t N, typename T>
OptionalFixedList<N, T> fixed_list(c10::OptionalArrayRef<T> list) {
  return OptionalFixedList<N, T>(list.has_value() ? std::optional(*list) : std::nullopt);
}

} // namespace v1
} // namespace torchext
