// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of torchext/derivatives/group_normalization.h as operators. A tensor that may be
// undefined is an optional one here.
#include <torch/library.h>
#include <torchext/derivatives/group_normalization-inl.h>

namespace {

namespace derivatives = torchext::derivatives;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

Tensor group_norm_jvp(
    const Tensor& input_p,
    const OptionalTensor& input_t,
    const OptionalTensor& weight_p,
    const OptionalTensor& weight_t,
    const OptionalTensor& bias_p,
    const OptionalTensor& bias_t,
    const Tensor& saved_mean,
    const Tensor& saved_invstd,
    int64_t groups) {
  return derivatives::group_norm_jvp(
      input_p,
      derivatives::or_undefined(input_t),
      derivatives::or_undefined(weight_p),
      derivatives::or_undefined(weight_t),
      derivatives::or_undefined(bias_p),
      derivatives::or_undefined(bias_t),
      saved_mean,
      saved_invstd,
      groups);
}

Tensor group_norm_mean_jvp(const OptionalTensor& input_t, const Tensor& mean_p, int64_t groups) {
  return derivatives::group_norm_mean_jvp(derivatives::or_undefined(input_t), mean_p, groups);
}

Tensor group_norm_invstd_jvp(
    const Tensor& input_p,
    const OptionalTensor& input_t,
    const Tensor& mean_p,
    const Tensor& invstd_p,
    int64_t groups) {
  return derivatives::group_norm_invstd_jvp(
      input_p, derivatives::or_undefined(input_t), mean_p, invstd_p, groups);
}

std::tuple<Tensor, Tensor, Tensor> group_norm_backward(
    const OptionalTensor& dY,
    const OptionalTensor& dmean,
    const OptionalTensor& drstd,
    const Tensor& X,
    const Tensor& mean,
    const Tensor& rstd,
    const OptionalTensor& gamma,
    c10::SymInt N,
    c10::SymInt C,
    c10::SymInt HxW,
    int64_t group,
    double eps,
    std::array<bool, 3> mask) {
  return derivatives::infinitely_differentiable_native_group_norm_backward(
      derivatives::or_undefined(dY),
      derivatives::or_undefined(dmean),
      derivatives::or_undefined(drstd),
      X,
      mean,
      rstd,
      gamma,
      N,
      C,
      HxW,
      group,
      eps,
      mask);
}

std::tuple<Tensor, Tensor, Tensor> group_norm_backward_dispatcher(
    const OptionalTensor& dY,
    const OptionalTensor& dmean,
    const OptionalTensor& drstd,
    const Tensor& X,
    const Tensor& mean,
    const Tensor& rstd,
    const OptionalTensor& gamma,
    c10::SymInt N,
    c10::SymInt C,
    c10::SymInt HxW,
    int64_t group,
    std::array<bool, 3> mask) {
  return derivatives::native_group_norm_backward_dispatcher(
      derivatives::or_undefined(dY),
      derivatives::or_undefined(dmean),
      derivatives::or_undefined(drstd),
      X,
      mean,
      rstd,
      gamma,
      N,
      C,
      HxW,
      group,
      mask);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def(
      "group_norm_jvp(Tensor input_p, Tensor? input_t, Tensor? weight_p, Tensor? weight_t, "
      "Tensor? bias_p, Tensor? bias_t, Tensor saved_mean, Tensor saved_invstd, int groups) "
      "-> Tensor",
      &group_norm_jvp);
  m.def(
      "group_norm_mean_jvp(Tensor? input_t, Tensor mean_p, int groups) -> Tensor",
      &group_norm_mean_jvp);
  m.def(
      "group_norm_invstd_jvp(Tensor input_p, Tensor? input_t, Tensor mean_p, Tensor invstd_p, "
      "int groups) -> Tensor",
      &group_norm_invstd_jvp);
  m.def(
      "infinitely_differentiable_native_group_norm_backward(Tensor? dY, Tensor? dmean, "
      "Tensor? drstd, Tensor X, Tensor mean, Tensor rstd, Tensor? gamma, SymInt N, SymInt C, "
      "SymInt HxW, int group, float eps, bool[3] grad_input_mask) -> (Tensor, Tensor, Tensor)",
      &group_norm_backward);
  m.def(
      "native_group_norm_backward_dispatcher(Tensor? dY, Tensor? dmean, Tensor? drstd, "
      "Tensor X, Tensor mean, Tensor rstd, Tensor? gamma, SymInt N, SymInt C, SymInt HxW, "
      "int group, bool[3] grad_input_mask) -> (Tensor, Tensor, Tensor)",
      &group_norm_backward_dispatcher);
}
