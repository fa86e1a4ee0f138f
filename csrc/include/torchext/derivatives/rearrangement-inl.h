// SPDX-License-Identifier: BSD-3-Clause
//
// The definitions of rearrangement.h.
#pragma once

#include <torchext/derivatives/rearrangement.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/SymBool.h>
#include <c10/core/WrapDimMinimal.h>
#include <torchext/derivatives/basic.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;

/// Where the elements of a tensor lie, counted in elements of its storage.
struct StridedLayout {
  std::vector<c10::SymInt> sizes;
  std::vector<c10::SymInt> strides;
  c10::SymInt offset;

  /// One past the last location, or the offset where there is no element.
  c10::SymInt end() const {
    c10::SymInt last = offset;
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      if (sizes[dim] == 0) {
        return offset;
      }
      last += (sizes[dim] - 1) * strides[dim];
    }
    return last + 1;
  }

  /// False only if no two elements share a location. With the strides in ascending order it is
  /// enough that each one exceeds all that the smaller ones reach together.
  bool may_overlap() const {
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(
        order.begin(), order.end(), [this](size_t a, size_t b) { return strides[a] < strides[b]; });
    c10::SymInt reach = 0;
    bool overlap = false;
    for (const size_t dim : order) {
      if (sizes[dim] == 0) {
        return false;
      }
      if (sizes[dim] != 1) {
        overlap = overlap || strides[dim] <= reach;
        reach += (sizes[dim] - 1) * strides[dim];
      }
    }
    return overlap;
  }

  Tensor of(const Tensor& storage) const {
    return storage.as_strided_symint(sizes, strides, offset);
  }

  /// The location of each element, in row-major order of the elements.
  Tensor locations(const c10::SymInt& storage_size, const at::TensorOptions& options) const {
    return of(at::arange(storage_size, options.dtype(at::kLong))).reshape(-1);
  }
};

/// Two layouts of one storage, counted from the first location that either one reaches.
struct SharedStorage {
  StridedLayout input;
  StridedLayout view;
  c10::SymInt size;
};

SharedStorage shared_storage(
    const at::TensorGeometry& input_geometry,
    c10::SymIntArrayRef sizes,
    c10::SymIntArrayRef strides,
    const std::optional<c10::SymInt>& storage_offset) {
  const c10::SymInt input_offset = input_geometry.sym_storage_offset();
  const c10::SymInt view_offset = storage_offset.value_or(input_offset);
  const c10::SymInt first = input_offset.min(view_offset);
  StridedLayout input{
      input_geometry.sym_sizes().vec(), input_geometry.sym_strides().vec(), input_offset - first};
  StridedLayout view{sizes.vec(), strides.vec(), view_offset - first};
  c10::SymInt size = input.end().max(view.end());
  return {std::move(input), std::move(view), std::move(size)};
}

/// Adds `values`, laid out as `view`, to `storage`, which is all zero and may be written to.
Tensor add_to_storage(const Tensor& storage, Tensor values, StridedLayout view) {
  // A dimension of stride 0 has one location, which gets its sum.
  std::vector<int64_t> expanded;
  for (int64_t dim = values.dim() - 1; dim >= 0; --dim) {
    if (view.strides[dim] == 0 && view.sizes[dim] != 1) {
      expanded.push_back(dim);
      view.sizes.erase(view.sizes.begin() + dim);
      view.strides.erase(view.strides.begin() + dim);
    }
  }
  if (!expanded.empty()) {
    values = values.sum(expanded);
  }
  if (!view.may_overlap()) {
    view.of(storage).copy_(values);
    return storage;
  }
  const Tensor locations = view.locations(storage.sym_size(0), storage.options());
  return storage.index_add(0, locations, values.reshape(-1));
}

/// How many elements of `layout` lie at each location, but at least one.
Tensor elements_per_location(
    const StridedLayout& layout,
    const c10::SymInt& storage_size,
    const at::TensorOptions& options) {
  const Tensor locations = layout.locations(storage_size, options);
  return at::zeros_symint({storage_size}, locations.options())
      .index_add(0, locations, at::ones_like(locations))
      .clamp_min(1);
}

/// The tangents of `tensors`, zero where one has none; empty where none has one.
template <typename List>
std::vector<Tensor> list_tangents(const List& tensors) {
  std::vector<Tensor> tangents;
  bool any_defined = false;
  for (const Tensor& tensor : tensors) {
    const Tensor& tangent = tensor._fw_grad(/*level=*/0);
    any_defined = any_defined || tangent.defined();
    tangents.push_back(tangent.defined() ? tangent : at::zeros_like(tensor));
  }
  return any_defined ? tangents : std::vector<Tensor>();
}

} // namespace

at::Tensor as_strided_backward(
    at::Tensor grad,
    const at::TensorGeometry& input_geometry,
    c10::SymIntArrayRef sizes,
    c10::SymIntArrayRef strides,
    const std::optional<c10::SymInt>& storage_offset) {
  if (!grad.defined()) {
    return grad;
  }
  // The view's gradient is summed into the storage, and the input reads its own from there.
  const SharedStorage shared = shared_storage(input_geometry, sizes, strides, storage_offset);
  const Tensor zeros = grad.new_zeros_symint({shared.size});
  Tensor storage = add_to_storage(zeros, grad, shared.view);
  if (shared.input.may_overlap()) {
    // Elements at one location can only move together: each has an equal part in it.
    storage = storage / elements_per_location(shared.input, shared.size, grad.options());
  }
  return shared.input.of(storage);
}

at::Tensor as_strided_scatter_backward(
    const at::Tensor& grad,
    const at::TensorGeometry& input_geometry,
    const at::TensorGeometry& /*src_geometry*/,
    c10::SymIntArrayRef sizes,
    c10::SymIntArrayRef strides,
    std::optional<c10::SymInt> storage_offset) {
  if (!grad.defined()) {
    return grad;
  }
  // A mask in the input's layout, because the gradient may have another one.
  const SharedStorage shared = shared_storage(input_geometry, sizes, strides, storage_offset);
  const Tensor written = at::zeros_symint({shared.size}, grad.options().dtype(at::kBool));
  shared.view.of(written).fill_(true);
  return grad.masked_fill(shared.input.of(written), 0);
}

at::Tensor slice_backward_wrapper(
    const at::Tensor& grad,
    const c10::SymIntArrayRef& input_sizes,
    int64_t dim,
    std::optional<c10::SymInt> start,
    std::optional<c10::SymInt> end,
    const c10::SymInt& step) {
  const c10::SymInt last = std::numeric_limits<int64_t>::max();
  return at::slice_backward_symint(
      grad, input_sizes, dim, start.value_or(0), end.value_or(last), step);
}

at::Tensor constant_pad_nd_backward(const at::Tensor& grad, c10::SymIntArrayRef pad) {
  std::vector<c10::SymInt> crop;
  crop.reserve(pad.size());
  for (const c10::SymInt& width : pad) {
    crop.push_back(-width);
  }
  return at::constant_pad_nd_symint(grad, crop, 0);
}

at::Tensor repeat_backward(
    at::Tensor grad, c10::SymIntArrayRef repeats, c10::SymIntArrayRef input_shape) {
  const auto is_none = [](const c10::SymInt& count) {
    return TORCH_GUARD_OR_FALSE(count.sym_eq(0));
  };
  if (std::any_of(repeats.begin(), repeats.end(), is_none)) {
    return at::zeros_symint(input_shape, grad.options()); // no function of the gradient
  }
  // Each dimension of the result is split into copies and elements.
  const size_t new_dims = repeats.size() - input_shape.size();
  std::vector<c10::SymInt> shape;
  std::vector<int64_t> copies;
  for (size_t dim = 0; dim < repeats.size(); ++dim) {
    const bool is_new = dim < new_dims;
    if (is_new || repeats[dim] != 1) {
      copies.push_back(static_cast<int64_t>(shape.size()));
      shape.push_back(repeats[dim]);
    }
    if (!is_new) {
      shape.push_back(input_shape[dim - new_dims]);
    }
  }
  return copies.empty() ? grad : grad.reshape_symint(shape).sum(copies);
}

std::vector<c10::SymInt> reverse_list_symint(const c10::SymIntArrayRef list) {
  return std::vector<c10::SymInt>(list.rbegin(), list.rend());
}

std::vector<int64_t> reverse_list(const at::IntArrayRef list) {
  return std::vector<int64_t>(list.rbegin(), list.rend());
}

at::Tensor split_backward(
    const std::vector<at::Tensor>& grads,
    const c10::SymInt& split_size,
    int64_t dim,
    c10::SymIntArrayRef sizes,
    const at::TensorOptions& options) {
  dim = c10::maybe_wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  // All pieces are of one size but the last, which has what is left.
  const auto others = static_cast<int64_t>(grads.size()) - 1;
  std::vector<c10::SymInt> split_sizes(grads.size(), split_size);
  split_sizes.back() = sizes[dim] - split_size * others;
  return split_with_sizes_backward(grads, split_sizes, dim, sizes, options);
}

at::Tensor split_with_sizes_backward(
    const std::vector<at::Tensor>& grads,
    c10::SymIntArrayRef split_sizes,
    int64_t dim,
    c10::SymIntArrayRef sizes,
    const at::TensorOptions& options) {
  dim = c10::maybe_wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  std::vector<c10::SymInt> piece_sizes = sizes.vec();
  std::vector<Tensor> pieces;
  pieces.reserve(grads.size());
  for (size_t i = 0; i < grads.size(); ++i) {
    piece_sizes[dim] = split_sizes[i];
    pieces.push_back(grads[i].defined() ? grads[i] : at::zeros_symint(piece_sizes, options));
  }
  return at::cat(pieces, dim);
}

at::Tensor cat_jvp(const at::ITensorListRef& tensors, int64_t dim) {
  const std::vector<Tensor> tangents = list_tangents(tensors);
  return tangents.empty() ? Tensor() : at::cat(tangents, dim);
}

std::vector<at::Tensor> cat_tensors_backward(
    const at::Tensor& grad,
    const std::vector<std::vector<c10::SymInt>>& sizes,
    const std::vector<at::ScalarType>& dtypes,
    int64_t dim) {
  std::vector<Tensor> gradients(sizes.size());
  if (!grad.defined()) {
    return gradients;
  }
  dim = c10::maybe_wrap_dim(dim, grad.dim());
  c10::SymInt start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    // cat takes tensors of shape [0] beside ones of any number of dimensions, and skips them.
    const bool is_skipped = sizes[i].size() == 1 && sizes[i][0] == 0;
    if (is_skipped) {
      gradients[i] = grad.new_zeros_symint(sizes[i]);
    } else {
      gradients[i] = grad.narrow_symint(dim, start, sizes[i][dim]);
      start += sizes[i][dim];
    }
    gradients[i] = handle_r_to_c(dtypes[i], gradients[i]);
  }
  return gradients;
}

at::Tensor stack_jvp(at::TensorList tensors, int64_t dim) {
  const std::vector<Tensor> tangents = list_tangents(tensors);
  return tangents.empty() ? Tensor() : at::stack(tangents, dim);
}

std::vector<at::Tensor> stack_tensors_backward(
    const at::Tensor& grad, int64_t dim, const std::vector<at::ScalarType>& dtypes) {
  if (!grad.defined()) {
    return std::vector<Tensor>(dtypes.size());
  }
  std::vector<Tensor> gradients = grad.unbind(dim);
  for (size_t i = 0; i < gradients.size(); ++i) {
    gradients[i] = handle_r_to_c(dtypes[i], gradients[i]);
  }
  return gradients;
}

at::Tensor block_diag_jvp(at::TensorList tensors) {
  const std::vector<Tensor> tangents = list_tangents(tensors);
  return tangents.empty() ? Tensor() : at::block_diag(tangents);
}

std::vector<at::Tensor> block_diag_backward(
    const at::Tensor& grad,
    const std::vector<std::vector<int64_t>>& sizes,
    const std::vector<at::ScalarType>& dtypes) {
  std::vector<Tensor> gradients(sizes.size());
  if (!grad.defined()) {
    return gradients;
  }
  int64_t row = 0;
  int64_t column = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    // A tensor of fewer dimensions is a block of one row, and of one column if it has none.
    const int64_t rows = sizes[i].size() == 2 ? sizes[i][0] : 1;
    const int64_t columns = sizes[i].empty() ? 1 : sizes[i].back();
    const Tensor block = grad.narrow(0, row, rows).narrow(1, column, columns);
    gradients[i] = handle_r_to_c(dtypes[i], block.reshape(sizes[i]));
    row += rows;
    column += columns;
  }
  return gradients;
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
