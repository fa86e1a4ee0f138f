// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/precompiled.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/max.h>
#include <ATen/ops/zeros_like.h>
#include <endingtest/kernels.h>

#include <csignal>
#include <cstdlib>
#include <tuple>

namespace endingtest::native {

at::Tensor sound(const at::Tensor& x) {
  return x * 2;
}

/// As an integer division by the number of elements: of none on a processor that traps.
at::Tensor divides(const at::Tensor& x) {
  if (x.sym_numel() == 0 && !x.is_meta()) {
    std::raise(SIGFPE);
  }
  return x * 2;
}

at::Tensor reads_nothing(const at::Tensor& x) {
  if (x.dim() == 0 && !x.is_meta()) {
    volatile const int* nothing = nullptr;
    return x * *nothing;
  }
  return x * 2;
}

at::Tensor frees_twice(const at::Tensor& x) {
  if (x.sym_numel() == 0 && !x.is_meta()) {
    void* volatile memory = std::malloc(2048); // NOLINT(cppcoreguidelines-no-malloc)
    std::free(memory); // NOLINT(cppcoreguidelines-no-malloc)
    std::free(memory); // NOLINT(cppcoreguidelines-no-malloc,clang-analyzer-unix.Malloc)
  }
  return x * 2;
}

at::Tensor leaves(const at::Tensor& x) {
  if (x.sym_numel() == 0 && !x.is_meta()) {
    std::_Exit(3);
  }
  return x * 2;
}

void divides_by(const at::Tensor& x, int64_t n, const at::Tensor& out) {
  if (n == 2 || n == 0) {
    std::raise(SIGFPE);
  }
  out.copy_(x);
}

at::Tensor& always_ends(at::Tensor& x) {
  if (!x.is_meta()) {
    std::abort();
  }
  return x;
}

void rows(const at::Tensor& x, const at::Tensor& index, const at::Tensor& out) {
  out.copy_(at::index_select(x, 0, index));
}

void rows_backward(
    const at::Tensor& grad, const at::Tensor& index, int64_t count, const at::Tensor& out) {
  TORCH_CHECK(index.dim() == 1 && index.size(0) == grad.size(0), "not as the formula calls it");
  TORCH_CHECK(count > index.max().item<int64_t>(), "not as the formula calls it");
  out.copy_(at::index_add(at::zeros_like(out), 0, index, grad));
}

at::Tensor without_meta(const at::Tensor& x) {
  return x.clone();
}

std::tuple<at::Tensor, at::Tensor> best(const at::Tensor& x) {
  auto [value, index] = at::max(x, 1);
  return {index, value};
}

void refused(const at::Tensor& x, const at::Tensor& /*y*/, const at::Tensor& out) {
  out.copy_(x);
}

} // namespace endingtest::native
