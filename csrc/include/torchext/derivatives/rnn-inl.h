// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torchext/derivatives/basic.h>
#include <torchext/derivatives/rnn.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;

// One step of an LSTM (Hochreiter and Schmidhuber 1997; Gers et al. 2000), all (N, H):
// c' = f c + i g, h' = o tanh(c').
struct LstmStep {
  Tensor h; // before the step
  Tensor c;
  Tensor i;
  Tensor f;
  Tensor g;
  Tensor o;
  Tensor tanh_c; // of the cell after the step
};

struct LstmWeights {
  Tensor of_input;  // (4 H, F)
  Tensor of_hidden; // (4 H, H)
  Tensor bias;      // (4 H), undefined if there is none
};

// The steps in the order in which they are taken. The library's own workspace is opaque, so they
// are computed again.
std::vector<LstmStep> lstm_steps(
    const std::vector<Tensor>& inputs, Tensor h, Tensor c, const LstmWeights& weights) {
  std::vector<LstmStep> steps;
  for (const Tensor& input : inputs) {
    Tensor gates = input.matmul(weights.of_input.t()) + h.matmul(weights.of_hidden.t());
    gates = weights.bias.defined() ? gates + weights.bias : gates;
    const auto parts = gates.chunk(4, 1);
    LstmStep step{
        h,
        c,
        parts[0].sigmoid(),
        parts[1].sigmoid(),
        parts[2].tanh(),
        parts[3].sigmoid(),
        Tensor()};
    c = step.f * c + step.i * step.g;
    step.tanh_c = c.tanh();
    h = step.o * step.tanh_c;
    steps.push_back(step);
  }
  return steps;
}

// Takes the gradients of the states after the step to those before it and returns that of the
// gates' arguments (N, 4 H).
Tensor lstm_step_backward(
    const LstmStep& step, const Tensor& of_hidden, Tensor& grad_h, Tensor& grad_c) {
  const auto logistic_slope = [](const Tensor& y) { return y * (1 - y); };
  const auto tanh_slope = [](const Tensor& y) { return 1 - y * y; };
  const Tensor grad_cell = grad_c + grad_h * step.o * tanh_slope(step.tanh_c);
  const Tensor grad_gates = at::cat(
      {grad_cell * step.g * logistic_slope(step.i),
       grad_cell * step.c * logistic_slope(step.f),
       grad_cell * step.i * tanh_slope(step.g),
       grad_h * step.tanh_c * logistic_slope(step.o)},
      1);
  grad_h = grad_gates.matmul(of_hidden);
  grad_c = grad_cell * step.f;
  return grad_gates;
}

// The rows of (T, N, ...) in the order in which they are processed.
std::vector<Tensor> in_order(const Tensor& sequence, bool reverse) {
  auto rows = sequence.unbind(0);
  if (reverse) {
    std::reverse(rows.begin(), rows.end());
  }
  return rows;
}

// What going back through all steps gives; the sequences in order of time: (T, N, ...).
struct LstmGradients {
  Tensor gates;  // the gates' arguments
  Tensor hidden; // not a gradient: what entered each step
  Tensor h;
  Tensor c;
};

LstmGradients lstm_backward(
    const std::vector<LstmStep>& steps,
    const Tensor& of_hidden,
    const Tensor& grad_output,
    const Tensor& grad_hy,
    const Tensor& grad_cy,
    bool reverse) {
  const auto grads = in_order(grad_output, reverse);
  Tensor grad_h = grad_hy;
  Tensor grad_c = grad_cy;
  std::vector<Tensor> gates(steps.size());
  std::vector<Tensor> hidden(steps.size());
  for (size_t step = steps.size(); step-- > 0;) {
    const size_t time = reverse ? steps.size() - 1 - step : step;
    grad_h = grad_h + grads[step];
    gates[time] = lstm_step_backward(steps[step], of_hidden, grad_h, grad_c);
    hidden[time] = steps[step].h;
  }
  return {at::stack(gates), at::stack(hidden), grad_h, grad_c};
}

Tensor or_zeros(const std::optional<Tensor>& grad, const Tensor& like) {
  return is_given(grad) ? *grad : at::zeros_like(like);
}

// A layer and what it takes; the states may have a leading dimension of one.
struct LstmLayer {
  Tensor input;
  LstmWeights weights;
  Tensor hx;
  Tensor cx;
  bool reverse;
};

MkldnnRnnGradients lstm_layer_backward(
    const LstmLayer& layer,
    const Tensor& grad_output,
    const Tensor& grad_hy,
    const Tensor& grad_cy) {
  const auto as_state = [&](const Tensor& t) { // (N, H)
    return t.reshape_symint({layer.input.sym_size(1), layer.weights.of_hidden.sym_size(1)});
  };
  const auto inputs = in_order(layer.input, layer.reverse);
  const auto steps = lstm_steps(inputs, as_state(layer.hx), as_state(layer.cx), layer.weights);
  const LstmGradients gradients = lstm_backward(
      steps,
      layer.weights.of_hidden,
      grad_output,
      as_state(grad_hy),
      as_state(grad_cy),
      layer.reverse);
  const Tensor rows = gradients.gates.flatten(0, 1);
  const Tensor grad_bias = rows.sum(0);
  return {
      gradients.gates.matmul(layer.weights.of_input),
      rows.t().matmul(layer.input.flatten(0, 1)),
      rows.t().matmul(gradients.hidden.flatten(0, 1)),
      grad_bias,
      grad_bias,
      gradients.h.reshape_symint(layer.hx.sym_sizes()),
      gradients.c.reshape_symint(layer.cx.sym_sizes())};
}

} // namespace

MkldnnRnnGradients mkldnn_rnn_layer_differentiable_backward(
    const at::Tensor& input,
    const at::Tensor& weight0,
    const at::Tensor& weight1,
    const at::Tensor& weight2,
    const at::Tensor& weight3,
    const at::Tensor& hx_,
    const at::Tensor& cx_tmp,
    const at::Tensor& output,
    const at::Tensor& /*hy_*/,
    const at::Tensor& /*cy_*/,
    const std::optional<at::Tensor>& grad_output_r_opt,
    const std::optional<at::Tensor>& grad_hy_r_opt,
    const std::optional<at::Tensor>& grad_cy_r_opt,
    bool reverse,
    int64_t mode,
    int64_t /*hidden_size*/,
    int64_t /*num_layers*/,
    bool has_biases,
    bool /*train*/,
    bool /*bidirectional*/,
    at::IntArrayRef batch_sizes,
    bool /*batch_first*/,
    const at::Tensor& /*workspace*/) {
  constexpr int64_t lstm = 2;
  TORCH_CHECK(mode == lstm, "mkldnn_rnn_layer: only an LSTM has gradients, got mode ", mode);
  TORCH_CHECK(batch_sizes.empty(), "mkldnn_rnn_layer: packed sequences have no gradients");
  if (!is_given(grad_output_r_opt) && !is_given(grad_hy_r_opt) && !is_given(grad_cy_r_opt)) {
    return {};
  }
  const LstmWeights weights{weight0, weight1, has_biases ? weight2 + weight3 : Tensor()};
  return lstm_layer_backward(
      {input, weights, hx_, cx_tmp, reverse},
      or_zeros(grad_output_r_opt, output),
      or_zeros(grad_hy_r_opt, hx_),
      or_zeros(grad_cy_r_opt, cx_tmp));
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
