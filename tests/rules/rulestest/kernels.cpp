// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/precompiled.h>

#include <rulestest/kernels.h>

void rulestest::native::replaced(const at::Tensor&, int64_t, int64_t, const at::Tensor& out) {
  out.fill_(1);
}

void rulestest::native::broadcasted(
    const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, const at::Tensor& out) {
  out.fill_(1);
}

void rulestest::native::reduced(
    const at::Tensor&,
    at::IntArrayRef,
    bool,
    std::optional<at::ScalarType>,
    const at::Tensor& out) {
  out.fill_(1);
}

void rulestest::native::reduced_over_one(const at::Tensor&, int64_t, const at::Tensor& out) {
  out.fill_(1);
}

void rulestest::native::joined(at::TensorList, int64_t, const at::Tensor& out) {
  out.fill_(1);
}

void rulestest::native::stacked(at::TensorList, const at::Tensor& out) {
  out.fill_(1);
}

void rulestest::native::numbers_symint(
    const at::Tensor&,
    c10::SymInt,
    c10::SymIntArrayRef,
    std::optional<c10::SymInt>,
    const at::Tensor& out) {
  out.fill_(1);
}

void rulestest::native::windows(const at::Tensor&, int64_t, int64_t, const at::Tensor& out) {
  out.fill_(1);
}

void rulestest::native::fortran(const at::Tensor&, const at::Tensor& out) {
  out.fill_(1);
}

void rulestest::native::pair(
    const at::Tensor&,
    const std::optional<at::Tensor>&,
    std::array<bool, 2>,
    const at::Tensor& first,
    const at::Tensor& second) {
  for (const at::Tensor& out : {first, second}) {
    if (out.defined()) {
      out.fill_(1);
    }
  }
}

void rulestest::native::outputs(const at::Tensor&, const at::Tensor& out0, const at::Tensor& out1) {
  out0.fill_(1);
  out1.fill_(1);
}

at::Tensor rulestest::native::doubled(const at::Tensor& self) {
  return self.mul(2);
}

at::Tensor& rulestest::native::scaled_(at::Tensor& self, double factor) {
  return self.mul_(factor);
}

at::Tensor rulestest::native::swapped(
    at::Tensor& first, at::Tensor& self, const std::optional<at::Tensor>&) {
  const at::Tensor kept = first.clone();
  first.copy_(self);
  self.copy_(kept);
  return kept.sum();
}

std::vector<at::Tensor> rulestest::native::pieces(const at::Tensor& self, int64_t n) {
  std::vector<at::Tensor> found;
  for (const at::Tensor& piece : self.chunk(n)) {
    found.push_back(piece.clone());
  }
  return found;
}

at::Tensor& rulestest::native::negated_(at::Tensor& self) {
  return self.neg_();
}

void rulestest::native::like_missing(
    const at::Tensor&, const std::optional<at::Tensor>&, bool, const at::Tensor& out) {
  out.fill_(1);
}

void rulestest::native::chosen_symint(const at::Tensor&, c10::SymInt, const at::Tensor& out) {
  out.fill_(1);
}

void rulestest::native::beside(
    const std::optional<at::Tensor>&, const at::Tensor&, const at::Tensor& out) {
  out.fill_(1);
}

void rulestest::native::write_row(at::Tensor& buffer, const at::Tensor& row, int64_t index) {
  buffer.select(0, index).copy_(row);
}

void rulestest::native::_pooled(
    const at::Tensor& x, const std::optional<at::Tensor>&, int64_t, const at::Tensor& out) {
  out.copy_(x);
}
