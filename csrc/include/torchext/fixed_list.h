// SPDX-License-Identifier: BSD-3-Clause
//
// One number in C++ for all of a list of a fixed length: `int[2]` takes 3 for {3, 3}, as in Python.
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
  explicit FixedList(std::optional<c10::ArrayRef<T>> given) : given_(given) {
    if (given_.has_value() && given_->size() == 1) {
      numbers_.fill(given_->front());
    }
  }

  operator c10::ArrayRef<T>() const {
    return given_->size() == 1 ? c10::ArrayRef<T>(numbers_) : *given_;
  }

  operator std::optional<c10::ArrayRef<T>>() const {
    return given_.has_value() ? std::optional<c10::ArrayRef<T>>(c10::ArrayRef<T>(*this))
                              : std::nullopt;
  }

  operator c10::OptionalArrayRef<T>() const {
    return std::optional<c10::ArrayRef<T>>(*this);
  }

 private:
  std::array<T, N> numbers_{};
  std::optional<c10::ArrayRef<T>> given_;
};

template <size_t N, typename T>
FixedList<N, T> fixed_list(c10::ArrayRef<T> list) {
  return FixedList<N, T>(list);
}

template <size_t N, typename T>
FixedList<N, T> fixed_list(std::optional<c10::ArrayRef<T>> list) {
  return FixedList<N, T>(list);
}

template <size_t N, typename T>
FixedList<N, T> fixed_list(c10::OptionalArrayRef<T> list) {
  return FixedList<N, T>(list.has_value() ? std::optional(*list) : std::nullopt);
}

} // namespace v1
} // namespace torchext
