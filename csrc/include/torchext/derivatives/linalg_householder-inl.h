// SPDX-License-Identifier: BSD-3-Clause
//
// Definitions of linalg_householder.h.
#pragma once

#include <torchext/derivatives/linalg_householder.h>

#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;

/// Reflector vectors as columns: the first `k` of `input`, below a unit diagonal.
Tensor reflector_vectors(const Tensor& input, int64_t k) {
  const Tensor lower = input.narrow(-1, 0, k).tril(-1);
  return lower + at::eye_symint(input.sym_size(-2), k, input.options());
}

/// Element `i` of the last dimension, to be broadcast against matrices.
Tensor coefficient(const Tensor& tau, int64_t i) {
  return tau.narrow(-1, i, 1).unsqueeze(-1);
}

} // namespace

// Write result = L_i H_i R_i, with H_i = I - tau v v^H, L_i the reflectors before it and R_i what
// stands behind it. The gradient of H_i is K = G_i R_i^H with G_i = L_i^H grad, which gives tau the
// gradient -v^H K v and v the gradient -(conj(tau) K + tau K^H) v. From one factor to the next, G
// is multiplied by H^H and R by H^-1 = I - sigma v v^H, sigma = tau / (tau |v|^2 - 1).
std::tuple<at::Tensor, at::Tensor> householder_product_backward(
    const at::Tensor& grad,
    const at::Tensor& result,
    const at::Tensor& input,
    const at::Tensor& tau,
    const bool flip_order) {
  if (!grad.defined() || input.sym_numel() == 0 || tau.sym_numel() == 0) {
    return {};
  }
  const int64_t k = tau.sym_size(-1).guard_int(__FILE__, __LINE__);
  const Tensor vectors = reflector_vectors(input, k);
  const Tensor squared_norms = (vectors * vectors.conj()).sum(-2);
  const Tensor sigma = tau / (tau * squared_norms - 1);

  Tensor G = grad;
  Tensor R = result;
  std::vector<Tensor> vector_grads(k);
  std::vector<Tensor> tau_grads(k);
  for (int64_t position = 0; position < k; ++position) {
    const int64_t i = flip_order ? k - 1 - position : position;
    const Tensor v = vectors.narrow(-1, i, 1);
    const Tensor vH = v.mH();
    const Tensor t = coefficient(tau, i);
    R = R - coefficient(sigma, i) * at::matmul(v, at::matmul(vH, R));
    const Tensor vH_G = at::matmul(vH, G);
    const Tensor RH_v = at::matmul(vH, R).mH();
    tau_grads[i] = -at::matmul(vH_G, RH_v).squeeze(-1);
    vector_grads[i] = -(t.conj() * at::matmul(G, RH_v) + t * at::matmul(R, vH_G.mH()));
    G = G - t.conj() * at::matmul(v, vH_G);
  }

  // The entries on and above the diagonal are constants.
  Tensor input_grad = at::cat(vector_grads, -1).tril(-1);
  const auto unused_columns = input.sym_size(-1) - k;
  if (unused_columns > 0) {
    input_grad = at::constant_pad_nd_symint(input_grad, {c10::SymInt(0), unused_columns});
  }
  return std::make_tuple(input_grad, at::cat(tau_grads, -1));
}

// Apply the reflectors from the last to the first to the identity and its zero tangent: the product
// rule for X := X - tau v (v^H X).
at::Tensor householder_product_jvp(
    const at::Tensor& dV,
    const at::Tensor& dtau,
    const at::Tensor& prod,
    const at::Tensor& V,
    const at::Tensor& tau) {
  const int64_t k = tau.sym_size(-1).guard_int(__FILE__, __LINE__);
  const Tensor vectors = reflector_vectors(V, k);
  const Tensor d_vectors = dV.narrow(-1, 0, k).tril(-1);
  Tensor X = at::eye_symint(prod.sym_size(-2), prod.sym_size(-1), prod.options());
  Tensor dX = at::zeros_like(prod);
  for (int64_t i = k - 1; i >= 0; --i) {
    const Tensor v = vectors.narrow(-1, i, 1);
    const Tensor dv = d_vectors.narrow(-1, i, 1);
    const Tensor t = coefficient(tau, i);
    const Tensor vH_X = at::matmul(v.mH(), X);
    const Tensor d_vH_X = at::matmul(dv.mH(), X) + at::matmul(v.mH(), dX);
    const Tensor d_scaled = coefficient(dtau, i) * v + t * dv;
    dX = dX - at::matmul(d_scaled, vH_X) - t * at::matmul(v, d_vH_X);
    X = X - t * at::matmul(v, vH_X);
  }
  return dX;
}

// A product from the right is the adjoint of one from the left, and the adjoint of the product
// H_1 ... H_k is H_k^H ... H_1^H, where H^H is the reflector with the conjugate tau.
std::tuple<at::Tensor, at::Tensor, at::Tensor> ormqr_backward(
    const at::Tensor& grad,
    const at::Tensor& result,
    const at::Tensor& self,
    const at::Tensor& tau,
    const at::Tensor& /*other*/,
    bool left,
    bool transpose,
    std::array<bool, 3> grad_output_mask) {
  Tensor self_grad;
  Tensor tau_grad;
  Tensor other_grad;
  if (!grad.defined()) {
    return std::make_tuple(self_grad, tau_grad, other_grad);
  }
  if (grad_output_mask[0] || grad_output_mask[1]) {
    const bool is_adjoint = left == transpose;
    std::tie(self_grad, tau_grad) = householder_product_backward(
        left ? grad : grad.mH(),
        left ? result : result.mH(),
        self,
        is_adjoint ? tau.conj() : tau,
        /*flip_order=*/is_adjoint);
    if (is_adjoint && tau_grad.defined()) {
      tau_grad = tau_grad.conj();
    }
  }
  if (grad_output_mask[2]) {
    other_grad = at::ormqr(self, tau, grad, left, !transpose);
  }
  return std::make_tuple(self_grad, tau_grad, other_grad);
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
