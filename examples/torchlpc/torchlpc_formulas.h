// SPDX-License-Identifier: BSD-3-Clause
//
// The derivatives, by which both operators differentiate through themselves, to any order.
#pragma once

#include <ATen/ATen.h>
#include <torchlpc/ops/lpc.h>
#include <torchlpc/ops/scan.h>

#include <array>
#include <tuple>

namespace torchlpc::formulas {

using at::Tensor;
using Gradients = std::tuple<Tensor, Tensor, Tensor>;

// y [B, T], zi [B, order] -> [B, T, order], of which [:, t, i] is y[:, t - 1 - i].
inline Tensor delayed(const Tensor& y, const Tensor& zi) {
  return at::cat({zi.flip(1), y}, 1).unfold(1, zi.size(1), 1).slice(1, 0, -1).flip(2);
}

// The filter backwards in time, over the initial values too where their gradient is asked for.
inline Gradients lpc_backward(
    const Tensor& grad, const Tensor& y, const Tensor& a, const Tensor& zi,
    std::array<bool, 3> mask) {
  const int64_t order = zi.size(1);
  const int64_t early = mask[2] ? order : 0;
  // [:, t, i] is a[:, t + 1 + i, i], from t = -early on
  const Tensor later = at::constant_pad_nd(a, {0, 0, early, order})
                           .unfold(1, order, 1)
                           .slice(1, 1)
                           .diagonal(0, 2, 3);
  const Tensor backwards = at::constant_pad_nd(grad, {early, 0}).flip(1);
  const Tensor all =
      torchlpc::lpc(backwards, later.flip(1).conj(), at::zeros_like(zi)).flip(1);
  const Tensor grad_x = all.slice(1, early);
  return {grad_x,
          mask[1] ? delayed(y, zi).conj() * -grad_x.unsqueeze(2) : Tensor(),
          mask[2] ? all.slice(1, 0, early).flip(1) : Tensor()};
}

// y [B, T], initials [B] -> [B, T], of which [:, t] is y[:, t - 1].
inline Tensor before(const Tensor& y, const Tensor& initials) {
  return at::cat({initials.unsqueeze(1), y}, 1).slice(1, 0, -1);
}

inline Gradients scan_backward(
    const Tensor& grad, const Tensor& y, const Tensor& weights, const Tensor& initials,
    std::array<bool, 3> mask) {
  const Tensor later = at::constant_pad_nd(weights, {0, 1}).slice(1, 1);
  const Tensor grad_input =
      torchlpc::scan(grad.flip(1), later.flip(1).conj(), at::zeros_like(initials)).flip(1);
  return {grad_input,
          mask[1] ? before(y, initials).conj() * grad_input : Tensor(),
          mask[2] ? (weights.slice(1, 0, 1).conj() * grad_input.slice(1, 0, 1)).sum(1) : Tensor()};
}

} // namespace torchlpc::formulas
