// SPDX-License-Identifier: BSD-3-Clause
//
// Views of a whole batch: where the results of all examples are views of one tensor at even
// distances, they are one strided view of it, through which it can be written to and differentiated.
#pragma once

#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/TensorWrapper.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/GradMode.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace detail {

/// Sizes, strides and offset of a tensor.
struct StridedLayout {
  explicit StridedLayout(const at::Tensor& tensor)
      : sizes(tensor.sym_sizes().vec()),
        strides(tensor.sym_strides().vec()),
        offset(tensor.sym_storage_offset()) {}

  bool operator==(const StridedLayout& other) const {
    return sizes == other.sizes && strides == other.strides && offset == other.offset;
  }

  bool has_elements() const {
    return std::none_of(sizes.begin(), sizes.end(), [](const c10::SymInt& s) { return s == 0; });
  }

  /// How many elements of the storage lie between the first and the last one.
  c10::SymInt extent() const {
    c10::SymInt last = 0;
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      last = last + (sizes[dim] - 1) * strides[dim];
    }
    return has_elements() ? last + 1 : c10::SymInt(0);
  }

  void insert(int64_t dim, c10::SymInt size, c10::SymInt stride) {
    sizes.insert(sizes.begin() + dim, std::move(size));
    strides.insert(strides.begin() + dim, std::move(stride));
  }

  std::vector<c10::SymInt> sizes;
  std::vector<c10::SymInt> strides;
  c10::SymInt offset;
};

/// The distance of tensors that are laid out alike in the storage; none where they are not.
inline std::optional<c10::SymInt> even_distance(const std::vector<StridedLayout>& layouts) {
  const StridedLayout& first = layouts.front();
  if (!first.has_elements()) {
    const auto alike = [&](const StridedLayout& other) { return other.sizes == first.sizes; };
    return std::all_of(layouts.begin(), layouts.end(), alike) ? std::make_optional(c10::SymInt(0))
                                                              : std::nullopt;
  }
  const c10::SymInt distance = layouts.size() > 1 ? layouts[1].offset - first.offset : 1;
  for (size_t i = 1; i < layouts.size(); ++i) {
    StridedLayout expected = first;
    expected.offset = first.offset + distance * static_cast<int64_t>(i);
    if (!(layouts[i] == expected)) {
      return std::nullopt;
    }
  }
  return distance < 0 ? std::nullopt : std::make_optional(distance);
}

/// What is inside the tensors of torch's transforms: what has the memory, and that which any of the
/// transforms asks of it.
template <typename F>
bool any_inside(const F& asks, at::Tensor tensor) {
  while (true) {
    if (asks(tensor)) {
      return true;
    }
    if (const auto* batched = at::functorch::maybeGetBatchedImpl(tensor)) {
      tensor = batched->value();
    } else if (const auto* wrapper = at::functorch::maybeGetTensorWrapper(tensor)) {
      tensor = wrapper->value();
    } else {
      return false;
    }
  }
}

inline at::Tensor innermost(const at::Tensor& tensor) {
  at::Tensor last;
  any_inside([&last](const at::Tensor& inside) { return last = inside, false; }, tensor);
  return last;
}

inline bool shares_memory(const at::Tensor& view, const at::Tensor& base) {
  const at::Tensor a = innermost(view);
  const at::Tensor b = innermost(base);
  return a.has_storage() && b.has_storage() && a.is_alias_of(b);
}

/// Whether the memory between the first and the last element of `base` has all of the view.
inline bool covers(const at::Tensor& base, const at::Tensor& view) {
  const StridedLayout outer(innermost(base));
  const StridedLayout inner(innermost(view));
  const auto width = static_cast<int64_t>(base.element_size());
  const auto own = static_cast<int64_t>(view.element_size());
  return outer.offset * width <= inner.offset * own &&
         (inner.offset + inner.extent()) * own <= (outer.offset + outer.extent()) * width;
}

/// Whether a gradient or a tangent flows through a tensor.
inline bool is_differentiated(const at::Tensor& tensor) {
  return any_inside(
      [](const at::Tensor& inside) {
        return inside.requires_grad() || inside._fw_grad(/*level=*/0).defined();
      },
      tensor);
}

inline at::Tensor strided(const at::Tensor& base, const StridedLayout& layout) {
  return at::as_strided_symint(base, layout.sizes, layout.strides, layout.offset);
}

/// The part of the memory of `base` that a view of another dtype has, one element after another.
inline at::Tensor elements_of(
    const at::Tensor& base, const StridedLayout& layout, int64_t element_size) {
  const auto width = static_cast<int64_t>(base.element_size());
  StridedLayout flat = layout;
  flat.offset = layout.offset * element_size / width;
  const c10::SymInt end = (layout.offset + layout.extent()) * element_size;
  flat.sizes = {(end + (width - 1)) / width - flat.offset};
  flat.strides = {1};
  return strided(base, flat);
}

/// The memory of `base` in the dtype of `like`.
inline at::Tensor strided_as(
    const at::Tensor& base, const at::Tensor& like, const StridedLayout& layout) {
  const at::ScalarType from = base.scalar_type();
  const at::ScalarType to = like.scalar_type();
  if (from == to) {
    return strided(base, layout);
  }
  if (at::isComplexType(from) && to == c10::toRealValueType(from)) {
    const at::Tensor plain = base.is_conj() ? at::_conj(base) : base;
    return strided(at::view_as_real(plain.is_neg() ? at::_neg_view(plain) : plain), layout);
  }
  if (at::isComplexType(to) && from == c10::toRealValueType(to)) {
    StridedLayout pairs = layout;
    for (c10::SymInt& stride : pairs.strides) {
      stride = stride * 2;
    }
    pairs.offset = layout.offset * 2;
    pairs.insert(static_cast<int64_t>(pairs.sizes.size()), 2, 1);
    return at::view_as_complex(strided(base.is_neg() ? at::_neg_view(base) : base, pairs));
  }
  const auto size = static_cast<int64_t>(like.element_size());
  return strided(elements_of(base, layout, size).view(to), layout);
}

/// The view of `base` that has the layout, and is otherwise as `like`, a view of one of its parts.
inline at::Tensor view_as(
    const at::Tensor& base, const at::Tensor& like, const StridedLayout& layout) {
  at::Tensor view = strided_as(base, like, layout);
  if (view.is_conj() != like.is_conj()) {
    view = at::_conj(view);
  }
  return view.is_neg() != like.is_neg() ? at::_neg_view(view) : view;
}

} // namespace detail
} // namespace v1
} // namespace torchext
