// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of torchext/derivatives/normalization.h as operators. A tensor that may be
// undefined is an optional one here.
#include <torch/library.h>
#include <torchext/derivatives/normalization-inl.h>

namespace {

namespace derivatives = torchext::derivatives;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

Tensor batch_norm_jvp(
    const Tensor& input_p,
    const OptionalTensor& input_t,
    const OptionalTensor& weight_p,
    const OptionalTensor& weight_t,
    const OptionalTensor& bias_p,
    const OptionalTensor& bias_t,
    const OptionalTensor& running_mean,
    const OptionalTensor& running_var,
    const Tensor& saved_mean,
    const Tensor& saved_invstd,
    bool train,
    double eps) {
  return derivatives::batch_norm_jvp(
      input_p,
      derivatives::or_undefined(input_t),
      derivatives::or_undefined(weight_p),
      derivatives::or_undefined(weight_t),
      derivatives::or_undefined(bias_p),
      derivatives::or_undefined(bias_t),
      running_mean,
      running_var,
      saved_mean,
      saved_invstd,
      train,
      eps);
}

std::tuple<Tensor, Tensor, Tensor> batchnorm_double_backward(
    const Tensor& input,
    const OptionalTensor& gamma,
    const OptionalTensor& ggI,
    const OptionalTensor& ggG,
    const OptionalTensor& ggB,
    const Tensor& gO,
    const OptionalTensor& running_mean,
    const OptionalTensor& running_var,
    bool training,
    double eps,
    const OptionalTensor& save_mean,
    const OptionalTensor& save_invstd,
    std::array<bool, 3> output_mask) {
  return derivatives::batchnorm_double_backward(
      input,
      gamma,
      derivatives::or_undefined(ggI),
      derivatives::or_undefined(ggG),
      derivatives::or_undefined(ggB),
      gO,
      running_mean,
      running_var,
      training,
      eps,
      save_mean,
      save_invstd,
      output_mask);
}

Tensor layer_norm_jvp(
    const Tensor& input_p,
    const OptionalTensor& input_t,
    const OptionalTensor& weight_p,
    const OptionalTensor& weight_t,
    const OptionalTensor& bias_p,
    const OptionalTensor& bias_t,
    const Tensor& saved_mean,
    const Tensor& saved_invstd,
    c10::SymIntArrayRef normalized_shape) {
  return derivatives::layer_norm_jvp(
      input_p,
      derivatives::or_undefined(input_t),
      derivatives::or_undefined(weight_p),
      derivatives::or_undefined(weight_t),
      derivatives::or_undefined(bias_p),
      derivatives::or_undefined(bias_t),
      saved_mean,
      saved_invstd,
      normalized_shape);
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_double_backward(
    const Tensor& input,
    const OptionalTensor& gamma,
    const OptionalTensor& ggI,
    const OptionalTensor& ggG,
    const OptionalTensor& ggB,
    const Tensor& gO,
    const Tensor& save_mean,
    const Tensor& save_invstd,
    c10::SymIntArrayRef normalized_shape,
    std::array<bool, 3> output_mask) {
  return derivatives::layer_norm_double_backward(
      input,
      gamma,
      derivatives::or_undefined(ggI),
      derivatives::or_undefined(ggG),
      derivatives::or_undefined(ggB),
      gO,
      save_mean,
      save_invstd,
      normalized_shape,
      output_mask);
}

Tensor rms_norm_jvp(
    const Tensor& input_p,
    const OptionalTensor& input_t,
    const OptionalTensor& weight_p,
    const OptionalTensor& weight_t,
    const Tensor& saved_rstd,
    at::IntArrayRef normalized_shape) {
  return derivatives::rms_norm_jvp(
      input_p,
      derivatives::or_undefined(input_t),
      derivatives::or_undefined(weight_p),
      derivatives::or_undefined(weight_t),
      saved_rstd,
      normalized_shape);
}

Tensor rms_norm_rstd_jvp(
    const Tensor& input_p,
    const OptionalTensor& input_t,
    const Tensor& saved_rstd,
    at::IntArrayRef normalized_shape) {
  return derivatives::rms_norm_rstd_jvp(
      input_p, derivatives::or_undefined(input_t), saved_rstd, normalized_shape);
}

std::tuple<Tensor, Tensor> rms_norm_backward(
    const OptionalTensor& dY,
    const OptionalTensor& drstd,
    const Tensor& input,
    at::IntArrayRef normalized_shape,
    const Tensor& rstd,
    const OptionalTensor& weight,
    std::array<bool, 2> mask) {
  return derivatives::infinitely_differentiable_native_rms_norm_backward(
      derivatives::or_undefined(dY),
      derivatives::or_undefined(drstd),
      input,
      normalized_shape,
      rstd,
      weight,
      mask);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def(
      "batch_norm_jvp(Tensor input_p, Tensor? input_t, Tensor? weight_p, Tensor? weight_t, "
      "Tensor? bias_p, Tensor? bias_t, Tensor? running_mean, Tensor? running_var, "
      "Tensor saved_mean, Tensor saved_invstd, bool train, float eps) -> Tensor",
      &batch_norm_jvp);
  m.def(
      "batchnorm_double_backward(Tensor input, Tensor? gamma, Tensor? ggI, Tensor? ggG, "
      "Tensor? ggB, Tensor gO, Tensor? running_mean, Tensor? running_var, bool training, "
      "float eps, Tensor? save_mean, Tensor? save_invstd, bool[3] output_mask) "
      "-> (Tensor, Tensor, Tensor)",
      &batchnorm_double_backward);
  m.def(
      "layer_norm_jvp(Tensor input_p, Tensor? input_t, Tensor? weight_p, Tensor? weight_t, "
      "Tensor? bias_p, Tensor? bias_t, Tensor saved_mean, Tensor saved_invstd, "
      "SymInt[] normalized_shape) -> Tensor",
      &layer_norm_jvp);
  m.def(
      "layer_norm_double_backward(Tensor input, Tensor? gamma, Tensor? ggI, Tensor? ggG, "
      "Tensor? ggB, Tensor gO, Tensor save_mean, Tensor save_invstd, "
      "SymInt[] normalized_shape, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
      &layer_norm_double_backward);
  m.def(
      "rms_norm_jvp(Tensor input_p, Tensor? input_t, Tensor? weight_p, Tensor? weight_t, "
      "Tensor saved_rstd, int[] normalized_shape) -> Tensor",
      &rms_norm_jvp);
  m.def(
      "rms_norm_rstd_jvp(Tensor input_p, Tensor? input_t, Tensor saved_rstd, "
      "int[] normalized_shape) -> Tensor",
      &rms_norm_rstd_jvp);
  m.def(
      "infinitely_differentiable_native_rms_norm_backward(Tensor? dY, Tensor? drstd, "
      "Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight, "
      "bool[2] grad_input_mask) -> (Tensor, Tensor)",
      &rms_norm_backward);
}
