// SPDX-License-Identifier: BSD-3-Clause
//
// In-place views of a whole batch: where an example of it got another layout in its place, the batch
// gets one of which each example has that.
#pragma once

#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/TensorWrapper.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batching_views.h"

namespace torchext {
inline namespace v1 {
namespace detail {

/// A new order of dimensions, without some that have one element and with new ones.
class Rearrangement {
 public:
  /// None where one layout is no rearrangement of the other.
  static std::optional<Rearrangement> between(const StridedLayout& from, const StridedLayout& to) {
    Rearrangement found;
    std::vector<bool> is_used(from.sizes.size(), false);
    for (size_t dim = 0; dim < to.sizes.size(); ++dim) {
      const std::optional<size_t> same = matching(from, to, dim, is_used);
      if (same.has_value()) {
        is_used[*same] = true;
        found.kept_.push_back(*same);
      } else if (to.sizes[dim] == 1) {
        found.added_.push_back(static_cast<int64_t>(dim));
      } else {
        return std::nullopt;
      }
    }
    for (size_t dim = 0; dim < is_used.size(); ++dim) {
      if (!is_used[dim] && from.sizes[dim] != 1) {
        return std::nullopt;
      }
    }
    found.rank_ = from.sizes.size();
    return from.offset == to.offset ? std::make_optional(found) : std::nullopt;
  }

  /// Rearranges a tensor that has another dimension at `bdim`; returns where that is then.
  int64_t apply(const at::Tensor& tensor, int64_t bdim) const {
    std::vector<size_t> order; // of the dimensions that the tensor has, by their old places
    for (size_t dim = 0; dim < rank_; ++dim) {
      order.push_back(dim);
    }
    for (size_t dim = rank_; dim-- > 0;) {
      if (std::find(kept_.begin(), kept_.end(), dim) == kept_.end()) {
        tensor.squeeze_(beside(bdim, dim));
        bdim -= static_cast<int64_t>(dim) < bdim ? 1 : 0;
        order.erase(order.begin() + static_cast<int64_t>(dim));
      }
    }
    for (size_t dim = 0; dim < kept_.size(); ++dim) {
      const auto place = std::find(order.begin(), order.end(), kept_[dim]);
      const auto other = static_cast<size_t>(place - order.begin());
      if (other != dim) {
        tensor.transpose_(beside(bdim, dim), beside(bdim, other));
        std::swap(order[dim], order[other]);
      }
    }
    for (const int64_t dim : added_) {
      tensor.unsqueeze_(beside(bdim, dim));
      bdim += dim < bdim ? 1 : 0;
    }
    return bdim;
  }

 private:
  static int64_t beside(int64_t bdim, size_t dim) {
    const auto logical = static_cast<int64_t>(dim);
    return logical < bdim ? logical : logical + 1;
  }

  static std::optional<size_t> matching(
      const StridedLayout& from,
      const StridedLayout& to,
      size_t dim,
      const std::vector<bool>& is_used) {
    const auto fits = [&](size_t old) {
      return !is_used[old] && from.sizes[old] == to.sizes[dim] &&
             (to.sizes[dim] == 1 || from.strides[old] == to.strides[dim]);
    };
    if (dim < from.sizes.size() && fits(dim)) {
      return dim;
    }
    for (size_t old = 0; old < from.sizes.size(); ++old) {
      if (fits(old)) {
        return old;
      }
    }
    return std::nullopt;
  }

  std::vector<size_t> kept_;   // the old places of the dimensions that stay, in their new order
  std::vector<int64_t> added_; // new places
  size_t rank_ = 0;
};

/// Gives a tensor, and those of the batches around it, any layout in its place.
inline void stride_in_place(
    const std::string& op, const at::Tensor& tensor, const StridedLayout& layout) {
  auto* batched = at::functorch::maybeGetBatchedImpl(tensor);
  if (batched == nullptr) {
    // torch does not change the layouts of what is batched inside of tangents and gradients.
    const auto* wrapper = at::functorch::maybeGetTensorWrapper(tensor);
    for (const at::functorch::DynamicLayer& layer : at::functorch::getDynamicLayerStack()) {
      TORCH_CHECK(
          wrapper == nullptr || layer.key() != at::functorch::TransformType::Vmap ||
              layer.layerId() > wrapper->level().value_or(0),
          "vmap: ",
          op,
          " gives its argument a layout in its place that is no other order of its dimensions, which "
          "no vmap around a gradient or tangent takes");
    }
    tensor.as_strided__symint(layout.sizes, layout.strides, layout.offset);
    return;
  }
  const at::Tensor& value = batched->value();
  const int64_t bdim = std::min(batched->bdim(), static_cast<int64_t>(layout.sizes.size()));
  StridedLayout physical = layout;
  physical.insert(bdim, value.sym_size(batched->bdim()), value.sym_stride(batched->bdim()));
  stride_in_place(op, value, physical);
  batched->unsafe_set_bdim(bdim);
  batched->refreshTensorMetadata();
}

/// Gives a batched tensor in its place the layout that an example got: `after`, from `before`.
inline void lay_out(
    const std::string& op,
    const at::Tensor& tensor,
    const StridedLayout& before,
    const StridedLayout& after) {
  const auto rearranged = Rearrangement::between(before, after);
  if (!rearranged.has_value()) {
    return stride_in_place(op, tensor, after);
  }
  auto* batched = at::functorch::maybeGetBatchedImpl(tensor);
  batched->unsafe_set_bdim(rearranged->apply(batched->value(), batched->bdim()));
  batched->refreshTensorMetadata();
}

} // namespace detail
} // namespace v1
} // namespace torchext
