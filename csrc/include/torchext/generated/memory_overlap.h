// SPDX-License-Identifier: BSD-3-Clause
//
// Whether two tensors of one memory have an element in common, from their geometry alone: tensors
// that are traced have no addresses. Those that torch.func wraps are asked for what they wrap.
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/TensorWrapper.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace detail {

/// The bytes that a tensor lies on: `start + sum of step * i + [0, width)`, with `0 <= i < size`.
struct MemoryExtent {
  struct Dim {
    int64_t step;
    int64_t size;
  };

  explicit MemoryExtent(const at::Tensor& tensor)
      : width(static_cast<int64_t>(tensor.itemsize())),
        start(tensor.sym_storage_offset().guard_int(__FILE__, __LINE__) * width) {
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      const int64_t size = tensor.sym_size(d).guard_int(__FILE__, __LINE__);
      is_empty = is_empty || size == 0;
      if (size > 1) {
        dims.push_back({tensor.sym_stride(d).guard_int(__FILE__, __LINE__) * width, size});
      }
    }
  }

  /// Where nothing of it is any more, of a tensor whose steps are not negative.
  int64_t end() const {
    int64_t last = start + width;
    for (const Dim& dim : dims) {
      last += dim.step * (dim.size - 1);
    }
    return last;
  }

  int64_t width;
  int64_t start;
  bool is_empty = false;
  std::vector<Dim> dims;
};

/// Searches `low <= sum of step * i <= high`, the steps from the largest to the smallest, which
/// leaves one or two choices of most indices. A search that takes too long finds one, as numpy's
/// `shares_memory` with a limit says "may".
class OverlapSearch {
 public:
  explicit OverlapSearch(std::vector<MemoryExtent::Dim> dims) : dims_(std::move(dims)) {
    std::sort(dims_.begin(), dims_.end(), [](const auto& a, const auto& b) {
      return a.step > b.step;
    });
    reach_.assign(dims_.size() + 1, 0);
    for (size_t d = dims_.size(); d-- > 0;) {
      reach_[d] = reach_[d + 1] + dims_[d].step * (dims_[d].size - 1);
    }
  }

  bool found(int64_t low, int64_t high, size_t d = 0) {
    if (high < 0 || low > reach_[d]) {
      return false;
    }
    if (low <= 0 || d == dims_.size() || ++visited_ > kLimit) {
      return true;
    }
    const auto [step, size] = dims_[d];
    // What the smaller steps cannot reach, this one must.
    const int64_t missing = low - reach_[d + 1];
    const int64_t first = missing <= 0 ? 0 : (missing + step - 1) / step;
    const int64_t last = std::min(size - 1, high / step);
    for (int64_t i = first; i <= last; ++i) {
      if (found(low - i * step, high - i * step, d + 1)) {
        return true;
      }
    }
    return false;
  }

 private:
  static constexpr int64_t kLimit = 100'000;

  std::vector<MemoryExtent::Dim> dims_;
  std::vector<int64_t> reach_; // of the dims from one on
  int64_t visited_ = 0;
};

/// The tensor that has the memory of one that torch.func wraps: with those of the other examples of a
/// batch.
inline at::Tensor in_memory(at::Tensor tensor) {
  while (tensor.defined() && !tensor.has_storage()) {
    if (const auto* wrapper = at::functorch::maybeGetTensorWrapper(tensor)) {
      tensor = at::Tensor(wrapper->value());
    } else if (const auto* batched = at::functorch::maybeGetBatchedImpl(tensor)) {
      tensor = at::Tensor(batched->value());
    } else {
      break;
    }
  }
  return tensor;
}

/// Whether tensors that lie in one memory have a byte in common. Sizes that are symbols become
/// numbers of the trace, with a guard.
inline bool have_common_bytes(const at::Tensor& a, const at::Tensor& b) {
  const MemoryExtent left(a);
  const MemoryExtent right(b);
  if (left.is_empty || right.is_empty) {
    return false;
  }
  // left.start + l + [0, left.width) meets right.start + r + [0, right.width): l - r lies between
  // low and high. An index that counts down counts up from its other end.
  int64_t low = right.start - left.start - left.width + 1;
  int64_t high = right.start - left.start + right.width - 1;
  std::vector<MemoryExtent::Dim> dims;
  const auto add = [&](int64_t step, int64_t size) {
    if (step < 0) {
      low -= step * (size - 1);
      high -= step * (size - 1);
    }
    if (step != 0) {
      dims.push_back({std::abs(step), size});
    }
  };
  for (const auto& dim : left.dims) {
    add(dim.step, dim.size);
  }
  for (const auto& dim : right.dims) {
    add(-dim.step, dim.size);
  }
  return OverlapSearch(std::move(dims)).found(low, high);
}

/// Whether two tensors have a byte in common, whatever wraps them.
inline bool share_memory(const at::Tensor& first, const at::Tensor& second) {
  const at::Tensor a = in_memory(first);
  const at::Tensor b = in_memory(second);
  return a.defined() && b.defined() && a.has_storage() && b.has_storage() && a.is_alias_of(b) &&
      have_common_bytes(a, b);
}

/// at::get_overlap_status, which does not tell where a tensor is no dense block of its memory.
inline at::MemOverlapStatus overlap_status(const at::Tensor& a, const at::Tensor& b) {
  const at::MemOverlapStatus known = at::get_overlap_status(a, b);
  if (known != at::MemOverlapStatus::TooHard) {
    return known;
  }
  if (!a.has_storage() || !b.has_storage() || !a.is_alias_of(b)) {
    return at::MemOverlapStatus::No;
  }
  bool are_one = a.sizes() == b.sizes() && a.storage_offset() == b.storage_offset() &&
                 a.itemsize() == b.itemsize();
  for (int64_t dim = 0; are_one && dim < a.dim(); ++dim) {
    are_one = a.size(dim) == 1 || a.stride(dim) == b.stride(dim); // of one element it says nothing
  }
  if (are_one) {
    return at::MemOverlapStatus::Full;
  }
  return have_common_bytes(a, b) ? at::MemOverlapStatus::Partial : at::MemOverlapStatus::No;
}

} // namespace detail
} // namespace v1
} // namespace torchext
