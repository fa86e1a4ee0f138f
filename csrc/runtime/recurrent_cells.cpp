// SPDX-License-Identifier: BSD-3-Clause
#include "recurrent_cells.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

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

// Below autograd, autocast has nothing to say.
struct BelowAutocast {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::autocast_dispatch_keyset};
};

void check_size(const Tensor& tensor, at::IntArrayRef size, const char* what) {
  TORCH_CHECK(
      tensor.sizes() == size, "Expected ", what, " of size ", size, ", but got ", tensor.sizes());
}

// Chunks of a width that they do not divide would be of other sizes, or fewer.
void check_gates(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& state,
    const Given& input_bias,
    const Given& hidden_bias,
    int64_t count) {
  TORCH_CHECK(state.dim() == 2, "Expected a hidden state of 2 dimensions, but got ", state.dim());
  const int64_t width = count * state.size(1);
  check_size(input_gates, {state.size(0), width}, "gates of the input");
  check_size(hidden_gates, {state.size(0), width}, "gates of the hidden state");
  TORCH_CHECK(
      is_given(input_bias) == is_given(hidden_bias), "Expected both biases of a cell, or none");
  if (is_given(input_bias)) {
    check_size(*input_bias, {width}, "a bias of the input");
    check_size(*hidden_bias, {width}, "a bias of the hidden state");
  }
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
  const BelowAutocast below_autocast;
  check_gates(input_gates, hidden_gates, cx, input_bias, hidden_bias, 4);
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
  const BelowAutocast below_autocast;
  TORCH_CHECK(cx.dim() == 2, "Expected a cell state of 2 dimensions, but got ", cx.dim());
  check_size(cy, cx.sizes(), "a cell state");
  check_size(workspace, {cx.size(0), 4 * cx.size(1)}, "gates");
  for (const Given* grad : {&grad_hy, &grad_cy}) {
    if (is_given(*grad)) {
      check_size(**grad, cx.sizes(), "a gradient");
    }
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
  const BelowAutocast below_autocast;
  check_gates(input_gates, hidden_gates, hx, input_bias, hidden_bias, 3);
  const auto of_input = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto of_hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const Tensor reset = (of_input[0] + of_hidden[0]).sigmoid();
  const Tensor update = (of_input[1] + of_hidden[1]).sigmoid();
  const Tensor fresh = (of_input[2] + reset * of_hidden[2]).tanh();
  return {(hx - fresh) * update + fresh, at::cat({reset, update, fresh, hx, of_hidden[2]}, 1)};
}

Gradients gru_cell_backward(const Tensor& grad_hy, const Tensor& workspace, bool has_bias) {
  const BelowAutocast below_autocast;
  TORCH_CHECK(grad_hy.dim() == 2, "Expected a gradient of 2 dimensions, but got ", grad_hy.dim());
  check_size(workspace, {grad_hy.size(0), 5 * grad_hy.size(1)}, "what the forward keeps");
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
