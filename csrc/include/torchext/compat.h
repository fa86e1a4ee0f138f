// SPDX-License-Identifier: BSD-3-Clause
//
// What differs between the versions of torch that are supported, each with the version that
// brought it. Nothing else in the project asks for a version of torch.
#pragma once

#include <memory>
#include <utility>

#include <c10/util/intrusive_ptr.h>
#include <torch/headeronly/version.h>

#define TORCHEXT_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||           \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

// 2.13: the tags of in-place and out= forms. For an initialiser list, with its comma.
#if TORCHEXT_TORCH_AT_LEAST(2, 13)
#define TORCHEXT_TAG_INPLACE at::Tag::inplace,
#define TORCHEXT_TAG_OUT at::Tag::out,
#else
#define TORCHEXT_TAG_INPLACE
#define TORCHEXT_TAG_OUT
#include <torch/csrc/autograd/function.h>
#endif

// Before 2.13: outputs of a TensorIterator have names. Behind the last parameter or argument.
#if TORCHEXT_TORCH_AT_LEAST(2, 13)
#define TORCHEXT_NAMES_PARAMETER
#define TORCHEXT_NAMES_ARGUMENT
#else
#define TORCHEXT_NAMES_PARAMETER , at::DimnameList names
#define TORCHEXT_NAMES_ARGUMENT , names
#endif

namespace torchext {
inline namespace v1 {

// 2.14: a value that clamp finds equal to a bound takes half of the gradient where the bound is a
// tensor and none where it is a scalar; before, all of it.
inline constexpr bool kClampSharesTies = TORCHEXT_TORCH_AT_LEAST(2, 14);

// 2.13: nodes are held by c10::intrusive_ptr; before by std::shared_ptr.
#if TORCHEXT_TORCH_AT_LEAST(2, 13)
template <typename T>
using NodePtr = c10::intrusive_ptr<T>;

template <typename T, typename... Args>
NodePtr<T> make_node(Args&&... args) {
  return c10::make_intrusive<T>(std::forward<Args>(args)...);
}
#else
template <typename T>
using NodePtr = std::shared_ptr<T>;

template <typename T, typename... Args>
NodePtr<T> make_node(Args&&... args) {
  return NodePtr<T>(new T(std::forward<Args>(args)...), torch::autograd::deleteNode);
}
#endif

} // namespace v1
} // namespace torchext
