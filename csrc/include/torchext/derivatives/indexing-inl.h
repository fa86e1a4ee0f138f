// SPDX-License-Identifier: BSD-3-Clause
//
// The definitions of indexing.h.
#pragma once

#include <torchext/derivatives/indexing.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <vector>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;

/// How elements of a source meet elements of `self`: through an index of the source's shape
/// (scatter_reduce), or one index for each slice along `dim` (index_reduce).
struct Destination {
  const char* op;
  int64_t dim;
  const Tensor& index;
  bool per_element;

  /// For each element of the source the element of `t` that it goes to.
  Tensor pick(const Tensor& t) const {
    return per_element ? t.gather(dim, index) : t.index_select(dim, index);
  }

  Tensor add(const Tensor& t, const Tensor& source) const {
    return per_element ? t.scatter_add(dim, index, source) : t.index_add(dim, index, source);
  }

  /// `t` with zeros wherever something goes.
  Tensor clear(const Tensor& t) const {
    return per_element ? t.scatter(dim, index, 0) : t.index_fill(dim, index, 0);
  }

  Tensor multiply(const Tensor& t, const Tensor& source, bool include_self) const {
    return per_element ? at::scatter_reduce(t, dim, index, source, "prod", include_self)
                       : at::index_reduce(t, dim, index, source, "prod", include_self);
  }

  /// Sum over the source, and over `t` where it takes part.
  Tensor sum(const Tensor& t, const Tensor& source, bool include_self) const {
    return add(include_self ? t : clear(t), source);
  }
};

using TensorPair = std::tuple<Tensor, Tensor>;

TensorPair mean_backward(
    const Destination& to, const Tensor& grad, const Tensor& source, bool include_self) {
  const Tensor count = to.sum(at::ones_like(grad), at::ones_like(source), include_self);
  const Tensor share = grad / count;
  return {share, to.pick(share)};
}

/// Product of all factors but one, for each factor. Beside a factor that is not zero it is the
/// quotient of `product`, the product of all. For one that is zero it is taken from the product of
/// the others that are not, `nonzero`. Where exactly two are zero it is zero too, but changes with
/// the other zero, hence the term in `zero_sum`, the sum of the factors that are zero: the second
/// derivatives come out right for any number of zeros.
Tensor product_of_others(
    const Tensor& factor,
    const Tensor& product,
    const Tensor& nonzero,
    const Tensor& zero_count,
    const Tensor& zero_sum) {
  const Tensor is_zero = factor == 0;
  const Tensor other_zero = at::where(zero_count == 2, nonzero * (zero_sum - factor), 0);
  return at::where(
      is_zero,
      at::where(zero_count == 1, nonzero, other_zero),
      product / factor.masked_fill(is_zero, 1));
}

TensorPair prod_backward(
    const Destination& to,
    const Tensor& grad,
    const Tensor& self,
    const Tensor& source,
    bool include_self,
    const Tensor& result) {
  const Tensor self_zero = self == 0;
  const Tensor source_zero = source == 0;
  const Tensor nonzero =
      to.multiply(self.masked_fill(self_zero, 1), source.masked_fill(source_zero, 1), include_self);
  const Tensor zero_count =
      to.sum(self_zero.to(self.scalar_type()), source_zero.to(self.scalar_type()), include_self);
  const Tensor zero_sum = to.sum(
      self.masked_fill(self_zero.logical_not(), 0),
      source.masked_fill(source_zero.logical_not(), 0),
      include_self);
  const Tensor beside_self = product_of_others(self, result, nonzero, zero_count, zero_sum);
  const Tensor beside_source = product_of_others(
      source, to.pick(result), to.pick(nonzero), to.pick(zero_count), to.pick(zero_sum));
  return {grad * beside_self.conj(), to.pick(grad) * beside_source.conj()};
}

TensorPair extreme_backward(
    const Destination& to,
    const Tensor& grad,
    const Tensor& self,
    const Tensor& source,
    bool include_self,
    const Tensor& result) {
  const Tensor self_hits = (self == result).to(grad.scalar_type());
  const Tensor source_hits = (source == to.pick(result)).to(grad.scalar_type());
  const Tensor share = grad / to.sum(self_hits, source_hits, include_self);
  return {share * self_hits, to.pick(share) * source_hits};
}

TensorPair reduce_backward(
    const Destination& to,
    const Tensor& grad,
    const Tensor& self,
    const Tensor& source,
    std::string_view reduce,
    bool include_self,
    const Tensor& result) {
  if (!grad.defined()) {
    return {};
  }
  TensorPair gradients;
  if (reduce == "sum") {
    gradients = {grad, to.pick(grad)};
  } else if (reduce == "mean") {
    gradients = mean_backward(to, grad, source, include_self);
  } else if (reduce == "prod") {
    gradients = prod_backward(to, grad, self, source, include_self, result);
  } else if (reduce == "amax" || reduce == "amin") {
    gradients = extreme_backward(to, grad, self, source, include_self, result);
  } else {
    TORCH_CHECK(false, to.op, ": reduce must be sum, mean, prod, amax or amin, got ", reduce);
  }
  // A self that takes no part only shows where nothing was sent.
  return include_self ? gradients : TensorPair{to.clear(grad), std::get<1>(gradients)};
}

} // namespace

at::Tensor index_backward(
    at::Tensor zeros_like_self,
    const c10::List<std::optional<at::Tensor>>& indices,
    const at::Tensor& grad) {
  if (at::areAnyTensorSubclassLike({zeros_like_self, grad}) ||
      at::areAnyOptionalTensorSubclassLike(indices)) {
    return at::index_put(zeros_like_self, indices, grad, /*accumulate=*/true);
  }
  // The forward call has checked the indices.
  return at::_index_put_impl_(zeros_like_self, indices, grad, /*accumulate=*/true, /*unsafe=*/true);
}

at::Tensor take_backward(
    const at::Tensor& grad, const at::Tensor& self, const at::Tensor& indices) {
  Tensor zeros = at::zeros_like(self);
  if (at::areAnyTensorSubclassLike({zeros, grad, indices})) {
    return zeros.put(indices, grad, /*accumulate=*/true);
  }
  return zeros.put_(indices, grad, /*accumulate=*/true);
}

std::tuple<at::Tensor, at::Tensor> index_reduce_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    int dim,
    const at::Tensor& index,
    const at::Tensor& source,
    std::string_view reduce,
    bool include_self,
    const at::Tensor& result) {
  const Destination to{"index_reduce", dim, index, /*per_element=*/false};
  return reduce_backward(to, grad, self, source, reduce, include_self, result);
}

std::tuple<at::Tensor, at::Tensor> scatter_reduce_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    int dim,
    const at::Tensor& index,
    const at::Tensor& src,
    std::string_view reduce,
    bool include_self,
    const at::Tensor& result) {
  const Destination to{"scatter_reduce", dim, index, /*per_element=*/true};
  return reduce_backward(to, grad, self, src, reduce, include_self, result);
}

at::Tensor scatter_reduce_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    int dim,
    const at::Tensor& index,
    const at::Tensor& src_p,
    const at::Tensor& src_t,
    std::string_view reduce,
    bool include_self,
    const at::Tensor& result) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      reduce != "prod", "scatter_reduce: no forward-mode derivative for reduce='prod'");
  if (!self_t.defined() && !src_t.defined()) {
    return {};
  }
  const Tensor self_tangent = self_t.defined() ? self_t : at::zeros_like(self_p);
  const Tensor src_tangent = src_t.defined() ? src_t : at::zeros_like(src_p);
  if (reduce == "sum" || reduce == "mean") {
    return at::scatter_reduce(self_tangent, dim, index, src_tangent, reduce, include_self);
  }
  // Equal extremes have equal parts in the result: it moves with the mean of their tangents.
  const Destination to{"scatter_reduce", dim, index, /*per_element=*/true};
  const Tensor self_hits = self_p == result;
  const Tensor src_hits = src_p == to.pick(result);
  const auto dtype = self_tangent.scalar_type();
  return to.sum(
             at::where(self_hits, self_tangent, 0),
             at::where(src_hits, src_tangent, 0),
             include_self) /
         to.sum(self_hits.to(dtype), src_hits.to(dtype), include_self);
}

at::Tensor masked_fill_backward(const at::Tensor& grad, const at::Tensor& mask) {
  return at::where(mask, grad, 0).sum();
}

at::Tensor masked_fill_inplace_if_safe(
    at::Tensor tensor, const at::Tensor& mask, const at::Scalar& value) {
  const bool safe = !c10::GradMode::is_enabled() && !tensor._fw_grad(/*level=*/0).defined() &&
                    !at::areAnyTensorSubclassLike({tensor, mask});
  return safe ? tensor.masked_fill_(mask, value) : tensor.masked_fill(mask, value);
}

at::Tensor embedding_dense_double_backward_symint(
    const at::Tensor& grad, const at::Tensor& indices, const c10::SymInt& padding_idx) {
  std::vector<c10::SymInt> shape = indices.sym_sizes().vec();
  shape.push_back(grad.sym_size(-1));
  const Tensor rows = grad.index_select(0, indices.reshape(-1)).reshape_symint(shape);
  if (padding_idx < 0) {
    return rows;
  }
  return rows.masked_fill((indices == padding_idx).unsqueeze(-1), 0);
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
