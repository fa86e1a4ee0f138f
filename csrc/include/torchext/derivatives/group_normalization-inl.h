// SPDX-License-Identifier: BSD-3-Clause
//
// The definitions of group_normalization.h.
#pragma once

#include <torchext/derivatives/group_normalization.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/Scalar.h>
#include <torchext/derivatives/normalized-inl.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

/// The shape [batch, groups, channels of a group, elements of a channel] of an input; statistics
/// are taken over the last two.
struct GroupedShape {
  c10::SymInt batch;
  c10::SymInt groups;
  c10::SymInt channels;
  c10::SymInt elements;

  static GroupedShape of(const Tensor& input, int64_t groups) {
    c10::SymInt elements = 1;
    for (int64_t dim = 2; dim < input.dim(); ++dim) {
      elements *= input.sym_size(dim);
    }
    return {input.sym_size(0), groups, input.sym_size(1) / groups, elements};
  }

  Tensor view_input(const Tensor& t) const {
    return t.defined() ? t.reshape_symint({batch, groups, channels, elements}) : t;
  }

  Tensor view_statistic(const Tensor& t) const {
    return t.defined() ? t.reshape_symint({batch, groups, 1, 1}) : t;
  }

  Tensor view_weight(const Tensor& t) const {
    return t.defined() ? t.reshape_symint({1, groups, channels, 1}) : t;
  }

  Normalized normalized(const Tensor& input, const Tensor& mean, const Tensor& rstd) const {
    const Tensor grouped_rstd = view_statistic(rstd);
    return {
        Statistics::kMeanAndDeviation,
        (view_input(input) - view_statistic(mean)) * grouped_rstd,
        grouped_rstd,
        {2, 3}};
  }
};

} // namespace

at::Tensor group_norm_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& weight_p,
    const at::Tensor& weight_t,
    const at::Tensor& /*bias_p*/,
    const at::Tensor& bias_t,
    const at::Tensor& saved_mean,
    const at::Tensor& saved_invstd,
    int64_t groups) {
  const GroupedShape shape = GroupedShape::of(input_p, groups);
  const Tensor result = affine_jvp(
      shape.normalized(input_p, saved_mean, saved_invstd),
      shape.view_input(input_t),
      shape.view_weight(weight_p),
      shape.view_weight(weight_t),
      shape.view_weight(bias_t));
  return result.defined() ? to_dtype_of(input_p, result.reshape_symint(input_p.sym_sizes()))
                          : result;
}

at::Tensor group_norm_mean_jvp(
    const at::Tensor& input_t, const at::Tensor& mean_p, int64_t groups) {
  if (!input_t.defined()) {
    return {};
  }
  const Tensor grouped = GroupedShape::of(input_t, groups).view_input(input_t);
  return to_dtype_of(mean_p, grouped.mean({2, 3}).reshape_symint(mean_p.sym_sizes()));
}

at::Tensor group_norm_invstd_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& mean_p,
    const at::Tensor& invstd_p,
    int64_t groups) {
  if (!input_t.defined()) {
    return {};
  }
  const GroupedShape shape = GroupedShape::of(input_p, groups);
  const Tensor tangent =
      shape.normalized(input_p, mean_p, invstd_p).rstd_tangent(shape.view_input(input_t));
  return to_dtype_of(invstd_p, tangent.reshape_symint(invstd_p.sym_sizes()));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> infinitely_differentiable_native_group_norm_backward(
    const at::Tensor& dY,
    const at::Tensor& dmean,
    const at::Tensor& drstd,
    const at::Tensor& X,
    const at::Tensor& mean,
    const at::Tensor& rstd,
    const std::optional<at::Tensor>& gamma,
    const c10::SymInt& N,
    const c10::SymInt& C,
    const c10::SymInt& HxW,
    int64_t group,
    double /*eps*/,
    std::array<bool, 3> grad_input_mask) {
  const GroupedShape shape{N, group, C / group, HxW};
  const Normalized normalized = shape.normalized(X, mean, rstd);
  const Tensor weight = or_undefined(gamma);
  const Tensor grouped = shape.view_input(dY);
  Tensor input_grad;
  if (dY.defined()) {
    input_grad = normalized.tangent(scaled(grouped, shape.view_weight(weight)));
  }
  const at::Scalar count = shape.channels * shape.elements;
  if (dmean.defined()) {
    const Tensor per_element = shape.view_statistic(dmean) / count;
    input_grad = sum_of(input_grad, per_element.expand_as(normalized.xhat));
  }
  if (drstd.defined()) {
    const Tensor scale = -shape.view_statistic(drstd) * normalized.rstd.square() / count;
    input_grad = sum_of(input_grad, normalized.xhat * scale);
  }
  const bool has_input_grad = grad_input_mask[0] && input_grad.defined();
  const bool has_weight_grad = grad_input_mask[1] && dY.defined() && weight.defined();
  const bool has_bias_grad = grad_input_mask[2] && dY.defined();
  const auto by_channel = [](const Tensor& values) {
    return values.sum(at::IntArrayRef{0, 3}).reshape({-1}); // in 2.11, {0, 3} may be names as well
  };
  return {
      has_input_grad ? to_dtype_of(X, input_grad.reshape_symint(X.sym_sizes())) : Tensor(),
      has_weight_grad ? to_dtype_of(weight, by_channel(grouped * normalized.xhat)) : Tensor(),
      has_bias_grad ? by_channel(grouped) : Tensor()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_group_norm_backward_dispatcher(
    const at::Tensor& dY,
    const at::Tensor& dmean,
    const at::Tensor& drstd,
    const at::Tensor& X,
    const at::Tensor& mean,
    const at::Tensor& rstd,
    const std::optional<at::Tensor>& gamma,
    const c10::SymInt& N,
    const c10::SymInt& C,
    const c10::SymInt& HxW,
    int64_t group,
    std::array<bool, 3> grad_input_mask) {
  return infinitely_differentiable_native_group_norm_backward(
      dY, dmean, drstd, X, mean, rstd, gamma, N, C, HxW, group, /*eps=*/0, grad_input_mask);
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
