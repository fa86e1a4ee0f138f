// SPDX-License-Identifier: BSD-3-Clause
#include "recurrent_cells.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include <vector>

namespace torchext::runtime {
namespace {

using at::Tensor;
using Given = std::optional<Tensor>;

bool is_given(const Given& tensor) {
  return tensor.has_value() && tensor->defined();
}

Tensor with_bias(const Tensor& gates, const Given& bias) {
  return is_given(bias) ? gates + *bias : gates;
}

// The derivatives of functions in terms of their results.
Tensor sigmoid_slope(const Tensor& result) {
  return result * (1 - result);
}

Tensor tanh_slope(const Tensor& result) {
  return 1 - result * result;
}

// A bias is added to every row.
Tensor grad_of_bias(const Tensor& grad_gates, bool has_bias) {
  return has_bias ? grad_gates.sum(at::IntArrayRef{0}) : Tensor();
}

} // namespace

std::tuple<Tensor, Tensor, Tensor> lstm_cell(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& cx,
    const Given& input_bias,
    const Given& hidden_bias) {
  const auto gates =
      (with_bias(input_gates, input_bias) + with_bias(hidden_gates, hidden_bias)).chunk(4, 1);
  const Tensor input = gates[0].sigmoid(), forget = gates[1].sigmoid();
  const Tensor cell = gates[2].tanh(), output = gates[3].sigmoid();
  const Tensor cy = forget * cx + input * cell;
  return {output * cy.tanh(), cy, at::cat({input, forget, cell, output}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(
    const Given& grad_hy,
    const Given& grad_cy,
    const Tensor& cx,
    const Tensor& cy,
    const Tensor& workspace,
    bool has_bias) {
  if (!is_given(grad_hy) && !is_given(grad_cy)) {
    return {};
  }
  const auto gates = workspace.chunk(4, 1);
  const Tensor &input = gates[0], &forget = gates[1], &cell = gates[2], &output = gates[3];
  Tensor grad_cell_state = is_given(grad_cy) ? *grad_cy : at::zeros_like(cy);
  Tensor grad_output = at::zeros_like(output);
  if (is_given(grad_hy)) {
    const Tensor squashed = cy.tanh();
    grad_cell_state = grad_cell_state + *grad_hy * output * tanh_slope(squashed);
    grad_output = *grad_hy * squashed * sigmoid_slope(output);
  }
  const Tensor grad_gates = at::cat(
      {grad_cell_state * cell * sigmoid_slope(input),
       grad_cell_state * cx * sigmoid_slope(forget),
       grad_cell_state * input * tanh_slope(cell),
       grad_output},
      1);
  return {grad_gates, grad_cell_state * forget, grad_of_bias(grad_gates, has_bias)};
}

std::tuple<Tensor, Tensor> gru_cell(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& hx,
    const Given& input_bias,
    const Given& hidden_bias) {
  const auto of_input = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto of_hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const Tensor reset = (of_input[0] + of_hidden[0]).sigmoid();
  const Tensor update = (of_input[1] + of_hidden[1]).sigmoid();
  const Tensor fresh = (of_input[2] + reset * of_hidden[2]).tanh();
  return {(hx - fresh) * update + fresh, at::cat({reset, update, fresh, hx, of_hidden[2]}, 1)};
}

Gradients gru_cell_backward(const Tensor& grad_hy, const Tensor& workspace, bool has_bias) {
  const auto saved = workspace.chunk(5, 1);
  const Tensor &reset = saved[0], &update = saved[1], &fresh = saved[2];
  const Tensor &hx = saved[3], &fresh_of_hidden = saved[4];
  const Tensor grad_fresh = grad_hy * (1 - update) * tanh_slope(fresh);
  const Tensor grad_update = grad_hy * (hx - fresh) * sigmoid_slope(update);
  const Tensor grad_reset = grad_fresh * fresh_of_hidden * sigmoid_slope(reset);
  const Tensor of_input = at::cat({grad_reset, grad_update, grad_fresh}, 1);
  const Tensor of_hidden = at::cat({grad_reset, grad_update, grad_fresh * reset}, 1);
  return {
      of_input,
      of_hidden,
      grad_hy * update,
      grad_of_bias(of_input, has_bias),
      grad_of_bias(of_hidden, has_bias)};
}

} // namespace torchext::runtime
