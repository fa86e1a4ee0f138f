// SPDX-License-Identifier: BSD-3-Clause
//
// The definitions of view.h.
#pragma once

#include <torchext/derivatives/view.h>

#include <ATen/Functions.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/native/nested/NestedTensorUtils.h>
#include <c10/core/WrapDimMinimal.h>

#include <algorithm>

namespace torchext {
inline namespace v1 {
namespace derivatives {

at::Tensor permute_backwards(const at::Tensor& grad, at::IntArrayRef dims) {
  std::vector<int64_t> inverse(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    inverse[c10::maybe_wrap_dim(dims[i], static_cast<int64_t>(dims.size()))] =
        static_cast<int64_t>(i);
  }
  return grad.permute(inverse);
}

at::Tensor unsqueeze_multiple(const at::Tensor& tensor, at::OptionalIntArrayRef dims, size_t dim) {
  const auto rank = static_cast<int64_t>(dim);
  std::vector<bool> is_new(dim, !dims.has_value());
  for (const int64_t index : dims.value_or(at::IntArrayRef())) {
    if (dim != 0) { // a number has no dimension that could be there, and squeeze takes 0 and -1
      is_new[c10::maybe_wrap_dim(index, rank)] = true;
    }
  }
  at::Tensor result = tensor;
  for (int64_t index = 0; index < rank; ++index) {
    if (is_new[index]) {
      result = result.unsqueeze(index);
    }
  }
  return result;
}

at::Tensor unbind_backward(const std::vector<at::Tensor>& grads, int64_t dim) {
  const auto any =
      std::find_if(grads.begin(), grads.end(), [](const at::Tensor& g) { return g.defined(); });
  TORCH_INTERNAL_ASSERT(any != grads.end());
  std::vector<at::Tensor> all;
  for (const at::Tensor& grad : grads) {
    all.push_back(grad.defined() ? grad : at::zeros_symint(any->sym_sizes(), any->options()));
  }
  return at::stack(all, dim);
}

at::Tensor unbind_backward_nested(
    const std::vector<at::Tensor>& grads,
    const at::Tensor& sizes,
    int64_t dim,
    const at::TensorOptions& options) {
  TORCH_CHECK(dim == 0, "the derivative of unbind of a nested tensor is for dim=0, got ", dim);
  const at::Tensor component_sizes = sizes.to(at::kLong).contiguous();
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < grads.size(); ++i) {
    const at::Tensor size = component_sizes.select(0, static_cast<int64_t>(i));
    const at::IntArrayRef values(size.const_data_ptr<int64_t>(), size.numel());
    all.push_back(grads[i].defined() ? grads[i] : at::zeros(values, options.layout(at::kStrided)));
  }
  return at::_nested_tensor_from_tensor_list(all);
}

at::Tensor unbind_backward_nested_jagged(
    const std::vector<at::Tensor>& grads, const at::Tensor& self, int64_t dim) {
  TORCH_CHECK(dim == 0, "the derivative of unbind of a nested tensor is for dim=0, got ", dim);
  at::Tensor result = at::zeros_like(self);
  const std::vector<at::Tensor> parts = result.unbind();
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined()) {
      parts[i].copy_(grads[i]);
    }
  }
  return result;
}

at::Tensor _nested_split_with_sizes_backward(
    const std::vector<at::Tensor>& grads,
    c10::SymIntArrayRef split_sizes,
    int64_t dim,
    const at::Tensor& sizes,
    const at::TensorOptions& options) {
  // the components have one dimension less
  dim = c10::maybe_wrap_dim(dim, sizes.size(1) + 1);
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined()) {
      all.push_back(grads[i]);
      continue;
    }
    const at::Tensor piece_sizes = sizes.clone();
    piece_sizes.select(1, dim - 1).fill_(split_sizes[i].guard_int(__FILE__, __LINE__));
    const int64_t count = piece_sizes.prod(1).sum().item<int64_t>();
    const at::Tensor buffer = at::zeros({count}, options.layout(at::kStrided));
    all.push_back(at::native::wrap_buffer(buffer, piece_sizes));
  }
  return at::cat(all, dim);
}

at::Tensor chunk_backward_nested(
    const std::vector<at::Tensor>& grads, const at::Tensor& self, int64_t chunks, int64_t dim) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      self.layout() == at::kJagged,
      "the derivative of chunk is for nested tensors with the layout jagged, got ",
      self.layout());
  at::Tensor result = at::zeros_like(self);
  const std::vector<at::Tensor> parts = result.chunk(chunks, dim);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined()) {
      parts[i].copy_(grads[i]);
    }
  }
  return result;
}

at::Tensor values_backward(const at::Tensor& grad, const at::Tensor& self) {
  if (!grad.defined()) {
    return grad;
  }
  if (self.layout() == at::kSparse) {
    return at::_sparse_coo_tensor_unsafe_symint(self.indices(), grad, self.sym_sizes())
        ._coalesced_(true);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      at::sparse_csr::is_sparse_compressed(self),
      "the derivative of values() is for sparse tensors, got the layout ",
      self.layout());
  const auto [compressed, plain] = at::sparse_csr::getCompressedPlainIndices(self);
  return at::_sparse_compressed_tensor_unsafe_symint(
      compressed, plain, grad, self.sym_sizes(), grad.options().layout(self.layout()));
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
