// SPDX-License-Identifier: BSD-3-Clause
//
// The derivative helpers of pointwise functions, and those of basic.h, as operators for the tests.
#include "bindings.h"

#include <torch/library.h>

#include <torchext/derivatives/pointwise-inl.h>

namespace derivatives = torchext::derivatives;

namespace {

using at::Tensor;
using Given = std::optional<at::Tensor>;

void define_basic(torch::Library& m) {
  m.def("not_implemented(str name, str reason) -> Tensor", [](std::string name, std::string why) {
    return derivatives::not_implemented(name.c_str(), why.c_str());
  });
  m.def("not_implemented_list(str name) -> Tensor[]", [](std::string name) {
    return derivatives::not_implemented_list(name.c_str(), derivatives::kCudnnDoubleBackwardMsg);
  });
  m.def(
      "handle_r_to_c(ScalarType self_st, Tensor gradient) -> Tensor",
      [](at::ScalarType dtype, Tensor gradient) {
        return derivatives::handle_r_to_c(dtype, gradient);
      });
  m.def(
      "handle_r_to_c.Tensor(Tensor self, Tensor gradient) -> Tensor",
      [](Tensor self, Tensor gradient) { return derivatives::handle_r_to_c(self, gradient); });
  m.def("maybe_multiply", &derivatives::maybe_multiply);
  m.def(
      "mul_tensor_backward(Tensor grad, Tensor other, ScalarType self_st) -> Tensor",
      &derivatives::mul_tensor_backward<Tensor>);
  m.def(
      "mul_tensor_backward.Scalar(Tensor grad, Scalar other, ScalarType self_st) -> Tensor",
      &derivatives::mul_tensor_backward<at::Scalar>);
  m.def("copysign_tensor_self_backward", &derivatives::copysign_tensor_self_backward);
}

void define_quotients(torch::Library& m) {
  m.def(
      "div_tensor_self_backward(Tensor grad, Tensor other, ScalarType self_st, str? mode=None)"
      " -> Tensor",
      [](Tensor grad, Tensor other, at::ScalarType st, std::optional<std::string_view> mode) {
        return derivatives::div_tensor_self_backward(grad, other, st, mode);
      });
  m.def(
      "div_tensor_self_backward.Scalar(Tensor grad, Scalar other, ScalarType self_st, "
      "str? mode=None) -> Tensor",
      [](Tensor grad, at::Scalar other, at::ScalarType st, std::optional<std::string_view> mode) {
        return derivatives::div_tensor_self_backward(grad, other, st, mode);
      });
  m.def(
      "div_tensor_other_backward(Tensor grad, Tensor self, Tensor other, str? mode=None)"
      " -> Tensor",
      [](Tensor grad, Tensor self, Tensor other, std::optional<std::string_view> mode) {
        return derivatives::div_tensor_other_backward(grad, self, other, mode);
      });
}

void define_powers(torch::Library& m) {
  m.def("pow_backward", &derivatives::pow_backward);
  m.def("pow_backward_self", &derivatives::pow_backward_self);
  m.def(
      "pow_backward_exponent(Tensor grad, Tensor self, Tensor exponent, Tensor result) -> Tensor",
      [](Tensor grad, Tensor self, Tensor exponent, Tensor result) {
        return derivatives::pow_backward_exponent(grad, self, exponent, result);
      });
  m.def(
      "pow_backward_exponent.Scalar(Tensor grad, Scalar base, Tensor exponent, Tensor result)"
      " -> Tensor",
      [](Tensor grad, at::Scalar base, Tensor exponent, Tensor result) {
        return derivatives::pow_backward_exponent(grad, base, exponent, result);
      });
}

void define_clamp(torch::Library& m) {
  m.def(
      "clamp_backward(Tensor grad, Tensor self, Scalar? min, Scalar? max) -> Tensor",
      [](Tensor grad, Tensor self, std::optional<at::Scalar> min, std::optional<at::Scalar> max) {
        return derivatives::clamp_backward(grad, self, min, max);
      });
  m.def(
      "clamp_backward.Tensor(Tensor grad, Tensor self, Tensor? min, Tensor? max) -> Tensor",
      [](Tensor grad, Tensor self, Given min, Given max) {
        return derivatives::clamp_backward(grad, self, or_undefined(min), or_undefined(max));
      });
  m.def(
      "clamp_backward_min_max(Tensor? grad, Tensor self, Tensor? min, Tensor? max, bool[2] mask)"
      " -> (Tensor, Tensor)",
      [](Given grad, Tensor self, Given min, Given max, std::array<bool, 2> mask) {
        return derivatives::clamp_backward_min_max(
            or_undefined(grad), self, or_undefined(min), or_undefined(max), mask);
      });
  m.def(
      "clamp_jvp(Tensor self_p, Tensor? self_t, Tensor? min_p, Tensor? min_t, Tensor? max_p, "
      "Tensor? max_t) -> Tensor",
      [](Tensor self_p, Given self_t, Given min_p, Given min_t, Given max_p, Given max_t) {
        return derivatives::clamp_jvp(
            self_p,
            or_undefined(self_t),
            or_undefined(min_p),
            or_undefined(min_t),
            or_undefined(max_p),
            or_undefined(max_t));
      });
}

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  define_basic(m);
  define_quotients(m);
  define_powers(m);
  define_clamp(m);
  m.def("angle_backward", &derivatives::angle_backward);
  m.def(
      "atan2_backward(Tensor? grad, Tensor self, Tensor other, bool[2] mask) -> (Tensor, Tensor)",
      [](Given grad, Tensor self, Tensor other, std::array<bool, 2> mask) {
        return derivatives::atan2_backward(or_undefined(grad), self, other, mask);
      });
  m.def(
      "polar_backward(Tensor? grad, Tensor result) -> (Tensor, Tensor)",
      [](Given grad, Tensor result) {
        return derivatives::polar_backward(or_undefined(grad), result);
      });
  m.def("deg2rad_backward", &derivatives::deg2rad_backward);
  m.def("rad2deg_backward", &derivatives::rad2deg_backward);
  m.def("i1_backward", &derivatives::i1_backward);
  m.def("i1e_backward", &derivatives::i1e_backward);
  m.def("log1p_backward", &derivatives::log1p_backward);
  m.def("mvlgamma_backward", &derivatives::mvlgamma_backward);
  m.def(
      "infinitely_differentiable_logit_backward",
      &derivatives::infinitely_differentiable_logit_backward);
  m.def("sgn_backward", &derivatives::sgn_backward);
  m.def("sinc_backward", &derivatives::sinc_backward);
}
