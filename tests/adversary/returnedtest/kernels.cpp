// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/precompiled.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <returnedtest/kernels.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace {

at::Tensor returned(const at::Tensor& x, c10::string_view how) {
  return how == "argument" ? x : how == "view" ? x.view(-1).view(x.sizes()) : x.clone();
}

} // namespace

at::Tensor returnedtest::native::one(const at::Tensor& x, c10::string_view how) {
  return returned(x, how);
}

at::Tensor returnedtest::native::like(const at::Tensor& x, c10::string_view /*how*/) {
  return at::empty_like(x);
}

std::tuple<at::Tensor, at::Tensor> returnedtest::native::two(
    const at::Tensor& x, c10::string_view how) {
  if (how == "halves" || how == "overlapping") { // two parts of one memory
    const at::Tensor both = at::stack({x, x, x});
    return {both.slice(0, 0, 2), both.slice(0, how == "halves" ? 2 : 1, 3)};
  }
  at::Tensor first = x.clone();
  return {first, how == "twice" ? first : how == "alias" ? first.alias() : returned(x, how)};
}

std::vector<at::Tensor> returnedtest::native::list(
    at::TensorList xs, const std::optional<at::Tensor>& y, c10::string_view how) {
  std::vector<at::Tensor> found;
  for (const at::Tensor& x : xs) {
    found.push_back(x.clone());
  }
  if (how == "optional") {
    found.back() = *y;
  } else if (how == "twice") {
    found.back() = found.front();
  } else if (how == "alias") {
    found.back() = found.front().view(-1);
  } else if (how == "halves") {
    found = at::stack(xs).unbind(0);
  } else if (how == "overlapping") {
    const at::Tensor both = at::cat(xs);
    for (size_t i = 0; i < found.size(); ++i) {
      found[i] = both.slice(0, static_cast<int64_t>(i), static_cast<int64_t>(i) + 2);
    }
  } else if (how != "new") {
    found.back() = returned(xs.front(), how);
  }
  return found;
}

std::tuple<at::Tensor, at::Tensor> returnedtest::native::beside(
    const at::Tensor& x, at::Tensor& out, c10::string_view how) {
  out.copy_(x);
  return {out, how == "written" ? out : returned(x, how)};
}

at::Tensor returnedtest::native::aside(const at::Tensor& x, at::Tensor& out, c10::string_view how) {
  out.copy_(x);
  return how == "written" ? out : returned(x, how);
}

std::tuple<at::Tensor, at::Tensor> returnedtest::native::given_twice(at::Tensor& x) {
  x.add_(1);
  return {x, x};
}

at::Tensor returnedtest::native::wrong_argument(const at::Tensor& x) {
  return x;
}

at::Tensor returnedtest::native::wrong_view(const at::Tensor& x) {
  return x.view(-1);
}

std::tuple<at::Tensor, at::Tensor> returnedtest::native::wrong_twice(const at::Tensor& x) {
  const at::Tensor copy = x.clone();
  return {copy, copy};
}

std::vector<at::Tensor> returnedtest::native::wrong_in_list(const at::Tensor& x) {
  const at::Tensor copy = x.clone();
  return {copy, x.clone(), copy};
}
