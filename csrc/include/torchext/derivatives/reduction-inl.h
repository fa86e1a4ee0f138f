// SPDX-License-Identifier: BSD-3-Clause
//
// The definitions of reduction.h.
#pragma once

#include <torchext/derivatives/reduction.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <c10/core/SymFloat.h>

#include <limits>
#include <tuple>

namespace torchext {
inline namespace v1 {
namespace derivatives {
namespace {

bool reduces_all(at::OptionalIntArrayRef dims) {
  return !dims.has_value() || dims->empty();
}

/// How many elements of a tensor of shape `sizes` enter one element of the result.
c10::SymInt count_reduced(c10::SymIntArrayRef sizes, at::OptionalIntArrayRef dims) {
  const bool is_whole = reduces_all(dims);
  const auto is_reduced = at::dim_list_to_bitset(
      is_whole ? at::OptionalIntArrayRef() : dims, sizes.empty() ? 1 : sizes.size());
  c10::SymInt count = 1;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (is_reduced[dim]) {
      count *= sizes[dim];
    }
  }
  return count;
}

/// restore_reduced_dims for a reduction of `self`, which may have no dims at all.
at::Tensor broadcastable_to(
    const at::Tensor& output, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim) {
  const bool has_shape = keepdim || self.dim() == 0 || reduces_all(dims);
  return has_shape ? output : restore_reduced_dims(output, *dims, false);
}

/// Along `dim`, for each element the product of all the others. No division, hence exact at zeros,
/// and differentiable there as often as cumprod is.
at::Tensor product_of_others(const at::Tensor& input, int64_t dim) {
  const c10::SymInt size = input.sym_size(dim);
  if (size == 0) {
    return input;
  }
  const at::Tensor one = at::ones_like(input.narrow_symint(dim, 0, 1));
  const at::Tensor earlier = input.narrow_symint(dim, 0, size - 1);
  const at::Tensor later = input.narrow_symint(dim, 1, size - 1);
  return at::cat({one, earlier}, dim).cumprod(dim) *
         at::cat({later, one}, dim).flip(dim).cumprod(dim).flip(dim);
}

/// Sum of two gradients of one tensor, either of which may be undefined.
at::Tensor add_gradients(const at::Tensor& first, const at::Tensor& second) {
  if (!first.defined()) {
    return second;
  }
  return second.defined() ? first + second : first;
}

/// Where `self` holds the one value that an operator returned; NaN counts as equal to NaN.
at::Tensor equals_value(const at::Tensor& self, const at::Tensor& value) {
  return at::logical_or(self == value, at::logical_and(self.isnan(), value.isnan()));
}

/// Numerator and denominator of the tangent of logsumexp. The weights exp(self_p) are scaled so that
/// the largest is one; both are zero where all of `self_p` is -inf.
std::tuple<at::Tensor, at::Tensor> weigh_tangent(
    const at::Tensor& self_p, const at::Tensor& self_t, at::IntArrayRef dim, bool keepdim) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  at::Tensor weight = self_p;
  if (self_p.sym_numel() != 0) { // amax refuses to reduce nothing
    const at::Tensor largest = at::real(self_p).detach().amax(dim, /*keepdim=*/true);
    weight = self_p - largest.masked_fill(largest == -kInf, 0);
  }
  weight = weight.exp();
  return {(weight * self_t).sum(dim, keepdim), weight.sum(dim, keepdim)};
}

} // namespace

at::Tensor restore_reduced_dims(const at::Tensor& output, at::IntArrayRef dims, bool keepdim) {
  if (keepdim) {
    return output;
  }
  const size_t rank = static_cast<size_t>(output.dim()) + dims.size();
  const auto is_reduced = at::dim_list_to_bitset(dims, rank);
  at::Tensor restored = output;
  for (size_t dim = 0; dim < rank; ++dim) {
    if (is_reduced[dim]) {
      restored = restored.unsqueeze(static_cast<int64_t>(dim));
    }
  }
  return restored;
}

at::Tensor unsqueeze_to(const at::Tensor& self, c10::SymIntArrayRef sizes) {
  at::Tensor result = self;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim] == 1) {
      result = result.unsqueeze(static_cast<int64_t>(dim));
    }
  }
  return result;
}

at::Tensor unsqueeze_to(const at::Tensor& self, int64_t dim, c10::SymIntArrayRef sizes) {
  return unsqueeze_to(self, at::IntArrayRef{dim}, sizes);
}

at::Tensor unsqueeze_to(const at::Tensor& self, at::IntArrayRef dim, c10::SymIntArrayRef sizes) {
  if (sizes.empty()) {
    return self;
  }
  const auto is_squeezed = at::dim_list_to_bitset(dim, sizes.size());
  at::Tensor result = self;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (is_squeezed[i] && sizes[i] == 1) {
      result = result.unsqueeze(static_cast<int64_t>(i));
    }
  }
  return result;
}

at::Tensor sum_backward(
    const at::Tensor& grad, c10::SymIntArrayRef sizes, at::OptionalIntArrayRef dims, bool keepdim) {
  const bool has_shape = keepdim || sizes.empty() || reduces_all(dims);
  const at::Tensor restored = has_shape ? grad : restore_reduced_dims(grad, *dims, false);
  return restored.expand_symint(sizes);
}

at::Tensor sum_backward(
    const at::Tensor& grad, c10::SymIntArrayRef sizes, at::IntArrayRef dims, bool keepdim) {
  return sum_backward(grad, sizes, at::OptionalIntArrayRef(dims), keepdim);
}

at::Tensor nansum_backward(
    const at::Tensor& grad, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim) {
  return sum_backward(grad, self.sym_sizes(), dims, keepdim).masked_fill(self.isnan(), 0);
}

at::Tensor mean_backward(
    const at::Tensor& grad,
    c10::SymIntArrayRef sizes,
    at::OptionalIntArrayRef dim,
    const c10::SymInt& numel,
    bool keepdim) {
  const c10::SymInt count = reduces_all(dim) ? numel : count_reduced(sizes, dim);
  return sum_backward(grad, sizes, dim, keepdim) / c10::Scalar(count);
}

at::Tensor prod_backward(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& /*result*/) {
  if (input.dim() == 0) {
    return grad;
  }
  const at::Tensor others = product_of_others(input.flatten(), 0);
  return grad * others.reshape_symint(input.sym_sizes()).conj();
}

at::Tensor prod_backward(
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Tensor& /*result*/,
    int64_t dim,
    bool keepdim) {
  if (input.dim() == 0) {
    return grad;
  }
  return broadcastable_to(grad, input, at::IntArrayRef{dim}, keepdim) *
         product_of_others(input, dim).conj();
}

// d var / d x = 2 (x - mean) / (n - correction): the mean's own dependence on x drops out because
// the deviations sum to zero.
at::Tensor var_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    at::OptionalIntArrayRef dim,
    const std::optional<c10::Scalar>& correction,
    bool keepdim) {
  const c10::SymFloat count = count_reduced(self.sym_sizes(), dim);
  const c10::SymFloat dof = count - correction.value_or(1).toSymFloat();
  const bool is_total = self.dim() == 0 || !dim.has_value();
  if (is_total && dof <= 0) {
    // The variance itself is NaN or infinite, and so is its slope, whatever the deviations.
    const at::Tensor infinite = at::full_like(self, std::numeric_limits<double>::infinity());
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return grad * infinite.masked_fill(self == self.mean(), nan);
  }
  const at::Tensor mean = reduces_all(dim) ? self.mean() : self.mean(dim, /*keepdim=*/true);
  const at::Tensor slope = (self - mean) * c10::Scalar(c10::SymFloat(2.0) / dof);
  return broadcastable_to(grad, self, dim, keepdim) * slope;
}

at::Tensor std_backward(
    const at::Tensor& result,
    const at::Tensor& grad,
    const at::Tensor& self,
    at::OptionalIntArrayRef dim,
    const std::optional<c10::Scalar>& correction,
    bool keepdim) {
  // Division by infinity gives the zero where std is zero, and leaves no NaN behind to enter a
  // second derivative as masking afterwards would.
  const at::Tensor std = result.masked_fill(result == 0, std::numeric_limits<double>::infinity());
  return var_backward(grad / (std * 2), self, dim, correction, keepdim);
}

at::Tensor var_mean_backward(
    const at::Tensor& gvar,
    const at::Tensor& gmean,
    const at::Tensor& self,
    at::OptionalIntArrayRef dim,
    const std::optional<c10::Scalar>& correction,
    bool keepdim) {
  at::Tensor from_var;
  at::Tensor from_mean;
  if (gvar.defined()) {
    from_var = var_backward(gvar, self, dim, correction, keepdim);
  }
  if (gmean.defined()) {
    from_mean = mean_backward(gmean, self.sym_sizes(), dim, self.sym_numel(), keepdim);
  }
  return add_gradients(from_var, from_mean);
}

at::Tensor std_mean_backward(
    const at::Tensor& gstd,
    const at::Tensor& gmean,
    const at::Tensor& self,
    const at::Tensor& std,
    at::OptionalIntArrayRef dim,
    const std::optional<c10::Scalar>& correction,
    bool keepdim) {
  at::Tensor from_std;
  at::Tensor from_mean;
  if (gstd.defined()) {
    from_std = std_backward(std, gstd, self, dim, correction, keepdim);
  }
  if (gmean.defined()) {
    from_mean = mean_backward(gmean, self.sym_sizes(), dim, self.sym_numel(), keepdim);
  }
  return add_gradients(from_std, from_mean);
}

at::Tensor logsumexp_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const at::Tensor& result,
    at::IntArrayRef dim,
    bool keepdim) {
  const at::Tensor softmax = (self - broadcastable_to(result, self, dim, keepdim)).exp();
  return broadcastable_to(grad, self, dim, keepdim) * softmax.conj();
}

at::Tensor logsumexp_jvp(
    const at::Tensor& self_p, const at::Tensor& self_t, at::IntArrayRef dim, bool keepdim) {
  const auto [weighted, total] = weigh_tangent(self_p, self_t, dim, keepdim);
  return weighted / total;
}

at::Tensor safe_logsumexp_jvp(
    const at::Tensor& self_p, const at::Tensor& self_t, at::IntArrayRef dim, bool keepdim) {
  const auto [weighted, total] = weigh_tangent(self_p, self_t, dim, keepdim);
  return weighted / total.masked_fill(total == 0, 1);
}

at::Tensor gather_with_keepdimed_indices(
    const at::Tensor& input, int64_t dim, const at::Tensor& indices, bool keepdim) {
  if (keepdim) {
    return at::gather(input, dim, indices);
  }
  return at::gather(input, dim, indices.unsqueeze(dim)).squeeze(dim);
}

at::Tensor scale_grad_by_count(
    const at::Tensor& grad, const at::Tensor& mask, at::IntArrayRef dims) {
  return (grad * mask) / mask.sum(dims, /*keepdim=*/true);
}

at::Tensor amaxamin_jvp(
    const at::Tensor& x,
    const at::Tensor& dx,
    const at::Tensor& result,
    at::IntArrayRef dim,
    bool keepdim) {
  const at::Tensor mask = x == broadcastable_to(result, x, dim, keepdim);
  return at::where(mask, dx, 0).sum(dim, keepdim) / mask.sum(dim, keepdim);
}

at::Tensor aminmax_backward(
    const at::Tensor& self,
    std::optional<int64_t> dim,
    bool keepdim,
    const at::Tensor& grad_min,
    const at::Tensor& grad_max,
    const at::Tensor& min,
    const at::Tensor& max) {
  const auto dims = dim.has_value() ? at::IntArrayRef(*dim) : at::IntArrayRef();
  const auto spread = [&](const at::Tensor& grad, const at::Tensor& result) {
    if (!grad.defined()) {
      return at::Tensor();
    }
    const at::Tensor mask = broadcastable_to(result, self, dims, keepdim) == self;
    return scale_grad_by_count(broadcastable_to(grad, self, dims, keepdim), mask, dims);
  };
  return add_gradients(spread(grad_min, min), spread(grad_max, max));
}

at::Tensor aminmax_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    const at::Tensor& result,
    std::optional<int64_t> dim,
    bool keepdim) {
  const auto dims = dim.has_value() ? at::IntArrayRef(*dim) : at::IntArrayRef();
  return amaxamin_jvp(self_p, self_t, result, dims, keepdim);
}

at::Tensor evenly_distribute_backward(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& value) {
  const at::Tensor mask = equals_value(input, value);
  return at::where(mask, grad / mask.sum(), 0);
}

at::Tensor evenly_read_jvp(
    const at::Tensor& fw_grad, const at::Tensor& input, const at::Tensor& value) {
  const at::Tensor mask = equals_value(input, value);
  return at::where(mask, fw_grad, 0).sum() / mask.sum();
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
