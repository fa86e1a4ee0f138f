// SPDX-License-Identifier: BSD-3-Clause
//
// The dtypes that the kernels of an operator with `dtypes:` take: what the generated wrappers ask
// before a kernel runs.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>
#include <torchext/generated/arguments.h>

#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <string>

namespace torchext {
inline namespace v1 {

/// A set of dtypes.
class Dtypes {
 public:
  constexpr Dtypes(std::initializer_list<at::ScalarType> taken) {
    for (const at::ScalarType dtype : taken) {
      bits_ |= bit(dtype);
    }
  }

  /// Raises RuntimeError for a tensor of another dtype; the message names the operator, the argument,
  /// one of `names` ("self, other"), its dtype and those that are taken. (A NotImplementedError of a
  /// Meta kernel would mean to fake tensors that there is none.)
  template <typename... Arguments>
  void check(const char* op, const char* names, const Arguments&... arguments) const {
    const auto look = [&](const at::Tensor& tensor, size_t place) {
      if (C10_UNLIKELY(tensor.defined() && (bits_ & bit(tensor.scalar_type())) == 0)) {
        refuse(op, name_at(names, place), tensor.scalar_type());
      }
    };
    for_each_argument(look, arguments...);
  }

 private:
  static_assert(static_cast<int>(at::ScalarType::NumOptions) < 64);

  static constexpr uint64_t bit(at::ScalarType dtype) {
    return uint64_t{1} << static_cast<int>(dtype);
  }

  C10_NOINLINE void refuse(const char* op, const std::string& name, at::ScalarType dtype) const {
    std::ostringstream taken;
    for (int i = 0; i < static_cast<int>(at::ScalarType::NumOptions); ++i) {
      if ((bits_ & (uint64_t{1} << i)) != 0) {
        taken << (taken.tellp() > 0 ? " or " : "") << torch_name(static_cast<at::ScalarType>(i));
      }
    }
    TORCH_CHECK(
        false, op, ": ", name, " must have dtype ", taken.str(), ", got ", torch_name(dtype));
  }

  /// As Python calls it: "float32".
  static std::string torch_name(at::ScalarType dtype) {
    return std::string(c10::getDtypeNames(dtype).first);
  }

  uint64_t bits_ = 0;
};

} // namespace v1
} // namespace torchext
