// SPDX-License-Identifier: BSD-3-Clause
//
// The definitions of normalization.h.
#pragma once

#include <torchext/derivatives/normalization.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>
#include <torchext/derivatives/normalized-inl.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using TensorTriple = std::tuple<Tensor, Tensor, Tensor>;

/// The sum over `dims`, where none means none.
Tensor sum_over(const Tensor& t, const std::vector<int64_t>& dims) {
  return dims.empty() ? t : t.sum(dims);
}

/// The gradients of the three results of a normalization's backward, each of a shape that
/// broadcasts to that of x.
struct BackwardGradients {
  Tensor input;
  Tensor weight;
  Tensor bias;
};

/// The gradients of x, the weight and grad_out in
///   grad_in = rstd * project(weight * grad_out), grad_weight = sum(grad_out * x̂),
///   grad_bias = sum(grad_out),
/// with sums over `affine_dims`.
TensorTriple double_backward(
    const Normalized& normalized,
    const Tensor& weight,
    const BackwardGradients& given,
    const Tensor& grad_out,
    const std::vector<int64_t>& affine_dims,
    std::array<bool, 3> output_mask) {
  Tensor input_grad;
  Tensor weight_grad;
  Tensor out_grad;
  if (given.input.defined()) {
    const Tensor tangent = normalized.tangent(given.input);
    out_grad = scaled(tangent, weight);
    if (output_mask[0] && normalized.statistics != Statistics::kFixed) {
      input_grad = normalized.projection_backward(given.input, scaled(grad_out, weight));
    }
    if (output_mask[1] && weight.defined()) {
      weight_grad = sum_over(tangent * grad_out, affine_dims);
    }
  }
  if (given.weight.defined()) {
    out_grad = sum_of(out_grad, given.weight * normalized.xhat);
    if (output_mask[0]) {
      input_grad = sum_of(input_grad, normalized.tangent(given.weight * grad_out));
    }
  }
  if (given.bias.defined()) {
    out_grad = sum_of(out_grad, given.bias.expand_as(grad_out));
  }
  return {input_grad, weight_grad, output_mask[2] ? out_grad : Tensor()};
}

// ---- Batch norm: statistics over all dimensions but that of the channels, the second

/// The dimensions of a tensor of `dim` dimensions other than the second.
std::vector<int64_t> all_but_channels(int64_t dim) {
  std::vector<int64_t> dims{0};
  for (int64_t i = 2; i < dim; ++i) {
    dims.push_back(i);
  }
  return dims;
}

/// A tensor with one element a channel in a shape that broadcasts to the input's.
Tensor per_channel(const Tensor& t, int64_t dim) {
  if (!t.defined()) {
    return t;
  }
  std::vector<int64_t> shape(dim, 1);
  shape[1] = -1;
  return t.view(shape);
}

Normalized batch_normalized(
    const Tensor& input,
    const std::optional<Tensor>& running_mean,
    const std::optional<Tensor>& running_var,
    const Tensor& saved_mean,
    const Tensor& saved_rstd,
    bool training,
    double eps) {
  const int64_t dim = input.dim();
  Tensor mean = saved_mean;
  Tensor rstd = saved_rstd;
  if (!training) {
    mean = or_undefined(running_mean);
    const Tensor var = or_undefined(running_var);
    TORCH_CHECK(
        mean.defined() && var.defined(),
        "batch_norm: without running statistics it can only be differentiated in training");
    rstd = (var + eps).rsqrt();
  }
  rstd = per_channel(rstd, dim);
  return {
      training ? Statistics::kMeanAndDeviation : Statistics::kFixed,
      (input - per_channel(mean, dim)) * rstd,
      rstd,
      all_but_channels(dim)};
}

// ---- Layer norm and RMS norm: statistics over the last dimensions

std::vector<int64_t> last_dims(size_t count) {
  std::vector<int64_t> dims(count);
  std::iota(dims.begin(), dims.end(), -static_cast<int64_t>(count));
  return dims;
}

std::vector<int64_t> leading_dims(int64_t dim, size_t last_count) {
  std::vector<int64_t> dims(dim - static_cast<int64_t>(last_count));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

Normalized layer_normalized(
    const Tensor& input, const Tensor& mean, const Tensor& rstd, size_t normalized_dims) {
  return {Statistics::kMeanAndDeviation, (input - mean) * rstd, rstd, last_dims(normalized_dims)};
}

Normalized rms_normalized(const Tensor& input, const Tensor& rstd, size_t normalized_dims) {
  return {Statistics::kRootMeanSquare, input * rstd, rstd, last_dims(normalized_dims)};
}

} // namespace

at::Tensor batch_norm_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& weight_p,
    const at::Tensor& weight_t,
    const at::Tensor& /*bias_p*/,
    const at::Tensor& bias_t,
    const std::optional<at::Tensor>& running_mean,
    const std::optional<at::Tensor>& running_var,
    const at::Tensor& saved_mean,
    const at::Tensor& saved_invstd,
    bool train,
    double eps) {
  const int64_t dim = input_p.dim();
  const Normalized normalized =
      batch_normalized(input_p, running_mean, running_var, saved_mean, saved_invstd, train, eps);
  const Tensor result = affine_jvp(
      normalized,
      input_t,
      per_channel(weight_p, dim),
      per_channel(weight_t, dim),
      per_channel(bias_t, dim));
  return to_dtype_of(input_p, result);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> batchnorm_double_backward(
    const at::Tensor& input,
    const std::optional<at::Tensor>& gamma,
    const at::Tensor& ggI,
    const at::Tensor& ggG,
    const at::Tensor& ggB,
    const at::Tensor& gO,
    const std::optional<at::Tensor>& running_mean,
    const std::optional<at::Tensor>& running_var,
    bool training,
    double eps,
    const std::optional<at::Tensor>& save_mean,
    const std::optional<at::Tensor>& save_invstd,
    std::array<bool, 3> output_mask) {
  const int64_t dim = input.dim();
  const Tensor weight = or_undefined(gamma);
  const Normalized normalized = batch_normalized(
      input,
      running_mean,
      running_var,
      or_undefined(save_mean),
      or_undefined(save_invstd),
      training,
      eps);
  const auto [gI, gG, ggO] = double_backward(
      normalized,
      per_channel(weight, dim),
      {ggI, per_channel(ggG, dim), per_channel(ggB, dim)},
      gO,
      normalized.dims,
      output_mask);
  return {to_dtype_of(input, gI), to_dtype_of(weight, gG), to_dtype_of(gO, ggO)};
}

at::Tensor layer_norm_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& weight_p,
    const at::Tensor& weight_t,
    const at::Tensor& /*bias_p*/,
    const at::Tensor& bias_t,
    const at::Tensor& saved_mean,
    const at::Tensor& saved_invstd,
    c10::SymIntArrayRef normalized_shape) {
  // Both follow from the input, and what was saved has no derivative, which that of a tangent needs:
  // of it only the epsilon is taken.
  const auto dims = last_dims(normalized_shape.size());
  const Tensor mean = input_p.to(saved_mean.scalar_type()).mean(dims, /*keepdim=*/true);
  const Tensor variance = (input_p - mean).square().mean(dims, /*keepdim=*/true);
  const Tensor epsilon = (saved_invstd.pow(-2) - variance).detach();
  const Tensor invstd = (variance + epsilon).rsqrt();
  const Normalized normalized = layer_normalized(input_p, mean, invstd, normalized_shape.size());
  return to_dtype_of(input_p, affine_jvp(normalized, input_t, weight_p, weight_t, bias_t));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_double_backward(
    const at::Tensor& input,
    const std::optional<at::Tensor>& gamma,
    const at::Tensor& ggI,
    const at::Tensor& ggG,
    const at::Tensor& ggB,
    const at::Tensor& gO,
    const at::Tensor& save_mean,
    const at::Tensor& save_invstd,
    c10::SymIntArrayRef normalized_shape,
    std::array<bool, 3> output_mask) {
  const size_t normalized_dims = normalized_shape.size();
  const Tensor weight = or_undefined(gamma);
  const auto [gI, gG, ggO] = double_backward(
      layer_normalized(input, save_mean, save_invstd, normalized_dims),
      weight,
      {ggI, ggG, ggB},
      gO,
      leading_dims(input.dim(), normalized_dims),
      output_mask);
  return {to_dtype_of(input, gI), to_dtype_of(weight, gG), to_dtype_of(gO, ggO)};
}

at::Tensor rms_norm_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& weight_p,
    const at::Tensor& weight_t,
    const at::Tensor& saved_rstd,
    at::IntArrayRef normalized_shape) {
  const Normalized normalized = rms_normalized(input_p, saved_rstd, normalized_shape.size());
  return to_dtype_of(input_p, affine_jvp(normalized, input_t, weight_p, weight_t, Tensor()));
}

at::Tensor rms_norm_rstd_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& saved_rstd,
    at::IntArrayRef normalized_shape) {
  if (!input_t.defined()) {
    return {};
  }
  const Normalized normalized = rms_normalized(input_p, saved_rstd, normalized_shape.size());
  return to_dtype_of(saved_rstd, normalized.rstd_tangent(input_t));
}

std::tuple<at::Tensor, at::Tensor> infinitely_differentiable_native_rms_norm_backward(
    const at::Tensor& dY,
    const at::Tensor& drstd,
    const at::Tensor& input,
    at::IntArrayRef normalized_shape,
    const at::Tensor& rstd,
    const std::optional<at::Tensor>& weight_opt,
    std::array<bool, 2> grad_input_mask) {
  const Normalized normalized = rms_normalized(input, rstd, normalized_shape.size());
  const Tensor weight = or_undefined(weight_opt);
  Tensor input_grad;
  Tensor weight_grad;
  if (grad_input_mask[0] && dY.defined()) {
    input_grad = normalized.tangent(scaled(dY, weight));
  }
  if (grad_input_mask[0] && drstd.defined()) {
    const int64_t count = c10::multiply_integers(normalized_shape);
    input_grad = sum_of(input_grad, normalized.xhat * (-drstd * rstd.square() / count));
  }
  if (grad_input_mask[1] && dY.defined() && weight.defined()) {
    const std::vector<int64_t> dims = leading_dims(input.dim(), normalized_shape.size());
    weight_grad = sum_over(dY * normalized.xhat, dims);
  }
  return {to_dtype_of(input, input_grad), to_dtype_of(weight, weight_grad)};
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
