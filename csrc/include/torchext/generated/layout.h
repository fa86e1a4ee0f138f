// SPDX-License-Identifier: BSD-3-Clause
//
// Arguments as the kernels of an operator with `layout:` rely on them: the tensor itself where it is
// laid out so, a copy where it is not. What a kernel writes to a copy is written back.
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <torchext/generated/arguments.h>
#include <torchext/generated/memory_overlap.h>

#include <optional>
#include <type_traits>
#include <vector>

namespace torchext {
inline namespace v1 {

enum class StridesOf {
  kContiguous,        ///< torch's contiguous format
  kLastDimContiguous, ///< stride 1 in the last dimension
  kAny,
};

template <StridesOf strides>
at::Tensor laid_out(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return tensor;
  }
  if constexpr (strides == StridesOf::kAny) {
    return tensor;
  } else if constexpr (strides == StridesOf::kContiguous) {
    return tensor.contiguous();
  } else {
    // contiguous() would keep the stride of a dimension of one element
    const bool is_so = tensor.dim() == 0 || tensor.sym_stride(-1) == 1;
    return is_so ? tensor : tensor.clone(at::MemoryFormat::Contiguous);
  }
}

template <StridesOf strides>
std::optional<at::Tensor> laid_out(const std::optional<at::Tensor>& tensor) {
  const bool is_there = tensor.has_value() && tensor->defined();
  return is_there ? std::optional(laid_out<strides>(*tensor)) : std::nullopt;
}

/// A list of tensors, whichever of ATen's types it has.
template <
    StridesOf strides,
    typename List,
    std::enable_if_t<
        std::is_same_v<List, at::TensorList> || std::is_same_v<List, at::ITensorListRef>,
        int> = 0>
std::vector<at::Tensor> laid_out(const List& tensors) {
  std::vector<at::Tensor> found;
  found.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    found.push_back(laid_out<strides>(tensor));
  }
  return found;
}

/// A list that the dispatcher does not look into: what its tensors are read as is in memory then.
template <StridesOf strides>
std::optional<std::vector<at::Tensor>> laid_out(const std::optional<at::TensorList>& tensors) {
  if (!tensors.has_value()) {
    return std::nullopt;
  }
  std::vector<at::Tensor> found;
  found.reserve(tensors->size());
  for (const at::Tensor& tensor : *tensors) {
    const at::Tensor plain = tensor.defined() ? tensor.resolve_conj().resolve_neg() : tensor;
    found.push_back(laid_out<strides>(plain));
  }
  return found;
}

template <StridesOf strides>
c10::List<std::optional<at::Tensor>> laid_out(const c10::List<std::optional<at::Tensor>>& tensors) {
  c10::List<std::optional<at::Tensor>> found;
  found.reserve(tensors.size());
  for (const std::optional<at::Tensor> tensor : tensors) {
    found.push_back(laid_out<strides>(tensor));
  }
  return found;
}

/// Refuses an argument that is copied for the kernel and has memory of another one, where one of
/// the two is written to: the kernel would see two tensors where there is one.
template <typename Argument, typename Copy, typename... Others>
void check_copied(
    const char* op,
    const char* name,
    const Argument& given,
    const Copy& copied,
    const Others&... others) {
  if constexpr (std::is_same_v<Argument, at::Tensor>) {
    if (C10_LIKELY(copied.is_same(given))) {
      return;
    }
  }
  std::vector<at::Tensor> own;
  for_each_tensor([&own](const at::Tensor& tensor) { own.push_back(tensor); }, given);
  size_t next = 0;
  const auto check = [&](const at::Tensor& copy) {
    const at::Tensor& tensor = own[next++];
    if (!tensor.defined() || copy.is_same(tensor) || tensor.is_meta()) {
      return;
    }
    const auto compare = [&](const at::Tensor& other) {
      const auto found = other.defined() ? detail::overlap_status(tensor, other)
                                         : at::MemOverlapStatus::No;
      TORCH_CHECK(
          found != at::MemOverlapStatus::Full && found != at::MemOverlapStatus::Partial,
          op,
          ": '",
          name,
          "' shares memory with another argument, of which one is written to, and would be copied "
          "for the kernel, which needs another layout");
    };
    (for_each_tensor(compare, others), ...);
  };
  for_each_tensor(check, copied);
}

/// The same of the tensors of a list that is written to, each with the others.
template <typename List, typename Copies>
void check_copied_list(const char* op, const char* name, const List& given, const Copies& copied) {
  std::vector<at::Tensor> own;
  for_each_tensor([&own](const at::Tensor& tensor) { own.push_back(tensor); }, given);
  size_t next = 0;
  const auto check = [&](const at::Tensor& copy) {
    const size_t place = next++;
    const at::Tensor& tensor = own[place];
    if (!tensor.defined() || copy.is_same(tensor) || tensor.is_meta()) {
      return;
    }
    for (size_t other = 0; other < own.size(); ++other) {
      const bool is_apart =
          other == place || !own[other].defined() ||
          detail::overlap_status(tensor, own[other]) == at::MemOverlapStatus::No;
      TORCH_CHECK(
          is_apart,
          op,
          ": two tensors of '",
          name,
          "' share memory and are written to, and would be copied for the kernel, which needs another "
          "layout");
    }
  };
  for_each_tensor(check, copied);
}

inline void write_back(const at::Tensor& argument, const at::Tensor& laid_out) {
  if (!laid_out.is_same(argument)) {
    argument.copy_(laid_out);
  }
}

inline void write_back(
    const std::optional<at::Tensor>& argument, const std::optional<at::Tensor>& laid_out) {
  if (laid_out.has_value()) {
    write_back(*argument, *laid_out);
  }
}

inline void write_back(at::TensorList arguments, const std::vector<at::Tensor>& laid_out) {
  for (size_t i = 0; i < laid_out.size(); ++i) {
    write_back(arguments[i], laid_out[i]);
  }
}

inline void write_back(
    const c10::List<std::optional<at::Tensor>>& arguments,
    const c10::List<std::optional<at::Tensor>>& laid_out) {
  for (size_t i = 0; i < laid_out.size(); ++i) {
    write_back(arguments.get(i), laid_out.get(i));
  }
}

} // namespace v1
} // namespace torchext
