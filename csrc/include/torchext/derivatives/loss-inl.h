// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torchext/derivatives/basic.h>
#include <torchext/derivatives/loss.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;
using OptionalTensor = std::optional<at::Tensor>;

Tensor weighted(const Tensor& t, const OptionalTensor& weight) {
  return is_given(weight) ? t * *weight : t;
}

// The share that an element's loss has in the reduced loss, of as many elements as `like`.
Tensor scaled(const Tensor& t, const Tensor& like, int64_t reduction) {
  return reduction == at::Reduction::Mean ? t / like.sym_numel() : t;
}

} // namespace

at::Tensor apply_loss_reduction(const at::Tensor& unreduced, int64_t reduction) {
  if (reduction == at::Reduction::Mean) {
    return unreduced.mean();
  }
  return reduction == at::Reduction::Sum ? unreduced.sum() : unreduced;
}

// The loss of an element is -w (t log x + (1 - t) log(1 - x)).

at::Tensor binary_cross_entropy_target_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const at::Tensor& target,
    const std::optional<at::Tensor>& weight,
    int64_t reduction) {
  // Not clamped as the loss itself is, so that it is infinite at x = 0 and x = 1, as ATen's.
  const Tensor slope = (-self).log1p() - self.log();
  return scaled(weighted(grad * slope, weight), target, reduction);
}

namespace {

// What ATen's kernels keep denominators away from zero by.
constexpr double kDenominatorFloor = 1e-12;

} // namespace

at::Tensor binary_cross_entropy_double_backward(
    const at::Tensor& grad_output,
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Tensor& target,
    const std::optional<at::Tensor>& weight,
    int64_t reduction) {
  // The slope by x of (x - t) / (x (1 - x)).
  const Tensor yes = input + kDenominatorFloor;
  const Tensor no = (1 - input) + kDenominatorFloor;
  const Tensor numerator = input * input - 2 * input * target + target;
  const Tensor slope = numerator / (yes.square() * no.square());
  return scaled(weighted(slope * (grad * grad_output), weight), input, reduction);
}

at::Tensor binary_cross_entropy_double_backward_target(
    const at::Tensor& grad,
    const at::Tensor& grad_output,
    const at::Tensor& self,
    const at::Tensor& target,
    const std::optional<at::Tensor>& weight,
    int64_t reduction) {
  const Tensor denominator = (self * (1 - self)).clamp_min(kDenominatorFloor);
  const Tensor gradient = -grad * grad_output / denominator;
  return scaled(weighted(gradient, weight), target, reduction);
}

at::Tensor binary_cross_entropy_double_backward_grad_output(
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Tensor& target,
    const std::optional<at::Tensor>& weight,
    int64_t reduction) {
  const Tensor yes = input + kDenominatorFloor;
  const Tensor no = (1 - input) + kDenominatorFloor;
  const Tensor slope = (input - target) / (yes * no);
  // Not summed: as a gradient the engine sums it, as a tangent it is one for each element.
  return scaled(weighted(slope * grad, weight), input, reduction);
}

// With x = sigmoid(z), and p for `pos_weight`: -w (p t log x + (1 - t) log(1 - x)).

at::Tensor binary_cross_entropy_with_logits_backward(
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Tensor& target,
    const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& pos_weight,
    int64_t reduction) {
  const Tensor sigmoid = input.sigmoid();
  Tensor slope;
  if (is_given(pos_weight)) {
    const Tensor positive = *pos_weight * target;
    slope = (positive + 1 - target) * sigmoid - positive;
  } else {
    slope = sigmoid - target;
  }
  return scaled(weighted(slope * grad, weight), input, reduction);
}

at::Tensor binary_cross_entropy_with_logits_target_backward(
    const at::Tensor& grad_output,
    const at::Tensor& self,
    const at::Tensor& target,
    const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& pos_weight,
    int64_t reduction) {
  Tensor slope;
  if (is_given(pos_weight)) {
    slope = at::log_sigmoid(-self) - *pos_weight * at::log_sigmoid(self);
  } else {
    slope = -self; // log(1 - x) - log x
  }
  return scaled(weighted(slope * grad_output, weight), target, reduction);
}

at::Tensor mse_loss_double_backward(
    const at::Tensor& grad, const at::Tensor& input, int64_t reduction) {
  return scaled(2 * grad, input, reduction);
}

namespace {

// `grad` where the loss is quadratic: where the arguments differ by less than `width`.
Tensor where_quadratic(
    const Tensor& grad, const Tensor& input, const Tensor& target, double width) {
  const Tensor is_quadratic = (input - target).abs() < width;
  return at::where(is_quadratic, grad, at::zeros({}, grad.options()));
}

} // namespace

at::Tensor smooth_l1_loss_double_backward(
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Tensor& target,
    int64_t reduction,
    double beta) {
  if (beta == 0.0) { // linear on both sides
    return at::zeros_like(grad);
  }
  return scaled(where_quadratic(grad, input, target, beta) / beta, input, reduction);
}

at::Tensor huber_loss_double_backward(
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Tensor& target,
    int64_t reduction,
    double delta) {
  return scaled(where_quadratic(grad, input, target, delta), input, reduction);
}

namespace {

// The adjoint of `backward`, which is linear in its first argument. That one is a single number
// where the loss is reduced.
template <typename Backward>
Tensor grad_output_gradient(
    const Tensor& grad, const Tensor& grad_output, int64_t reduction, const Backward& backward) {
  if (reduction == at::Reduction::None) {
    return backward(grad);
  }
  return (backward(at::ones_like(grad_output)) * grad).sum();
}

} // namespace

at::Tensor huber_loss_double_backward_grad_output(
    const at::Tensor& grad,
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& target,
    int64_t reduction,
    double delta) {
  return grad_output_gradient(grad, grad_output, reduction, [&](const Tensor& g) {
    return at::huber_loss_backward(g, input, target, reduction, delta);
  });
}

at::Tensor soft_margin_loss_double_backward(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& target, int64_t reduction) {
  // The loss is softplus(-t x), and so its curvature that of the logistic function.
  const Tensor sigmoid = (-target * input).sigmoid();
  const Tensor curvature = target * target * sigmoid * (1 - sigmoid);
  return scaled(grad * curvature, input, reduction);
}

at::Tensor soft_margin_loss_double_backward_grad_output(
    const at::Tensor& grad,
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& target,
    int64_t reduction) {
  return grad_output_gradient(grad, grad_output, reduction, [&](const Tensor& g) {
    return at::soft_margin_loss_backward(g, input, target, reduction);
  });
}

at::Tensor _cudnn_ctc_loss_backward(
    const at::Tensor& grad_out,
    const at::Tensor& loss,
    const at::Tensor& raw_grad,
    bool zero_infinity) {
  const auto of_sequences = [](const Tensor& t) { return t.unsqueeze(0).unsqueeze(2); };
  const Tensor gradient = raw_grad * of_sequences(grad_out);
  if (!zero_infinity) {
    return gradient;
  }
  // The forward has replaced the loss of impossible sequences by zero; their gradient may be NaN.
  return gradient.masked_fill(of_sequences(loss) == 0, 0);
}

at::Tensor _miopen_ctc_loss_backward(
    const at::Tensor& grad_out,
    const at::Tensor& loss,
    const at::Tensor& raw_grad,
    bool zero_infinity) {
  return _cudnn_ctc_loss_backward(grad_out, loss, raw_grad, zero_infinity);
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
