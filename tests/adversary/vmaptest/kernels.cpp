// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/precompiled.h>

#include <ATen/ATen.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <vmaptest/kernels.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

using Generator = std::optional<at::Generator>;
using Optionals = c10::List<std::optional<at::Tensor>>;

// -- random numbers

at::Tensor vmaptest::native::noise_symint(
    c10::SymIntArrayRef size,
    Generator generator,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout,
    std::optional<at::Device> device,
    std::optional<bool> pin_memory) {
  const auto options =
      at::TensorOptions().dtype(dtype).layout(layout).device(device).pinned_memory(pin_memory);
  return generator.has_value() ? at::randn_symint(size, generator, options)
                               : at::randn_symint(size, options);
}

at::Tensor vmaptest::native::noise_like(const at::Tensor& x) {
  return at::randn_like(x);
}

at::Tensor vmaptest::native::noise_batched(const at::Tensor& x) {
  const auto layer = at::functorch::maybeCurrentDynamicLayer();
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::FuncTorchBatched);
  const auto* batched = at::functorch::maybeGetBatchedImpl(x);
  return at::functorch::makeBatched(
      at::randn_like(batched->value()), batched->bdim(), layer->layerId());
}

at::Tensor vmaptest::native::flip(const at::Tensor& p, Generator generator) {
  return at::bernoulli(p, generator);
}

at::Tensor& vmaptest::native::fill_(at::Tensor& x, Generator generator) {
  return x.normal_(0, 1, generator);
}

at::Tensor vmaptest::native::stir(const at::Tensor& x) {
  return x + at::randn_like(x);
}

at::Tensor& vmaptest::native::stir_(at::Tensor& x) {
  return x.add_(at::randn_like(x));
}

at::Tensor vmaptest::native::add_noise(const at::Tensor& x, const at::Tensor& y) {
  return at::randn_like(x) + y * 0;
}

std::tuple<at::Tensor, at::Tensor> vmaptest::native::drop(const at::Tensor& x, double p) {
  const at::Tensor mask = at::empty_like(x).bernoulli_(1 - p);
  return {x * mask / (1 - p), mask};
}

at::Tensor vmaptest::native::composed_noise(const at::Tensor& x) {
  return x + at::randn_symint(x.sym_sizes(), x.options());
}

at::Tensor& vmaptest::native::composed_noise_(at::Tensor& x) {
  return x.normal_();
}

at::Tensor vmaptest::native::composed_without_tag(const at::Tensor& x) {
  return at::bernoulli(x);
}

at::Tensor vmaptest::native::noise_aside(const at::Tensor& x, at::Tensor& last) {
  last.normal_();
  return x + last;
}

// -- lists

std::vector<at::Tensor> vmaptest::native::scaled(at::TensorList xs, const Optionals& ys) {
  std::vector<at::Tensor> found;
  for (size_t i = 0; i < xs.size(); ++i) {
    const std::optional<at::Tensor> y = i < ys.size() ? ys.get(i) : std::nullopt;
    found.push_back(y.has_value() ? xs[i] * *y : xs[i] * 2);
  }
  return found;
}

void vmaptest::native::add_to_all(at::TensorList xs, const at::Tensor& y) {
  for (const at::Tensor& x : xs) {
    x.add_(y);
  }
}

std::tuple<std::vector<at::Tensor>, at::Tensor> vmaptest::native::powers(
    const at::Tensor& x, int64_t n) {
  std::vector<at::Tensor> found;
  for (int64_t i = 1; i <= n; ++i) {
    found.push_back(x.pow(i));
  }
  return {found, x.sum()};
}

// -- results that are no tensors

std::tuple<at::Tensor, int64_t, double, bool, std::string> vmaptest::native::described(
    const at::Tensor& x) {
  return {x * 2, x.dim(), x.numel() / 2.0, x.is_floating_point(), "tensor"};
}

std::tuple<at::Tensor, int64_t> vmaptest::native::counted(const at::Tensor& x) {
  return {x * 2, x.count_nonzero().item<int64_t>()};
}

std::vector<at::Tensor> vmaptest::native::halves(const at::Tensor& x) {
  return at::split_copy(x, x.select(0, 0).item<int64_t>());
}

at::Tensor vmaptest::native::positive(const at::Tensor& x) {
  return x.masked_select(x.gt(0));
}

at::Tensor vmaptest::native::narrowest(const at::Tensor& x) {
  return x.lt(128).all().item<bool>() ? x.to(at::kChar) : x.clone();
}

at::Tensor vmaptest::native::largest(const at::Tensor& x) {
  return x.masked_select(x.eq(x.max()));
}

// -- views

at::Tensor vmaptest::native::turned(const at::Tensor& x, int64_t first, int64_t second) {
  return x.transpose(first, second);
}

std::vector<at::Tensor> vmaptest::native::cut(const at::Tensor& x, int64_t size) {
  return x.split(size);
}

at::Tensor vmaptest::native::window(const at::Tensor& x, const at::Tensor& start, int64_t size) {
  return x.narrow(0, start.item<int64_t>(), size);
}

at::Tensor vmaptest::native::chosen(at::TensorList xs, int64_t index) {
  return xs[index].slice(0, 1);
}

std::tuple<at::Tensor, at::Tensor> vmaptest::native::turned_and_summed(const at::Tensor& x) {
  return {x.t(), x.sum()};
}

at::Tensor vmaptest::native::as_real(const at::Tensor& x) {
  return at::view_as_real(x);
}

at::Tensor vmaptest::native::as_complex(const at::Tensor& x) {
  return at::view_as_complex(x);
}

at::Tensor vmaptest::native::as_dtype(const at::Tensor& x, at::ScalarType dtype) {
  return x.view(dtype);
}

at::Tensor vmaptest::native::conjugated(const at::Tensor& x) {
  return x.conj();
}

at::Tensor vmaptest::native::imaginary(const at::Tensor& x) {
  return at::imag(x);
}

at::Tensor vmaptest::native::constant_view(const at::Tensor& x) {
  return x.slice(0, 1);
}

at::Tensor vmaptest::native::no_view(const at::Tensor& x) {
  return x.clone();
}

at::Tensor& vmaptest::native::turn_(at::Tensor& x, int64_t first, int64_t second) {
  return x.transpose_(first, second);
}

at::Tensor& vmaptest::native::flatten_(at::Tensor& x) {
  x.as_strided_({x.numel()}, {1});
  return x;
}

at::Tensor& vmaptest::native::unwrap_(at::Tensor& x) {
  return x.squeeze_();
}

at::Tensor& vmaptest::native::wrap_(at::Tensor& x, int64_t dim) {
  return x.unsqueeze_(dim);
}

// -- what is written

at::Tensor vmaptest::native::tracked(const at::Tensor& x, at::Tensor& running) {
  running.mul_(0.5).add_(x.mean());
  return x * x;
}

std::tuple<at::Tensor, at::Tensor> vmaptest::native::swapped(at::Tensor& x, at::Tensor& y) {
  const at::Tensor old = x.clone();
  x.copy_(y);
  y.copy_(old);
  return {y, x};
}

at::Tensor& vmaptest::native::scale_(at::Tensor& x, const at::Tensor& y) {
  return x.mul_(y);
}

at::Tensor& vmaptest::native::doubled_out(const at::Tensor& x, at::Tensor& out) {
  return at::mul_out(out, x, at::scalar_tensor(2, x.options()));
}

at::Tensor& vmaptest::native::grow_(at::Tensor& x) {
  return const_cast<at::Tensor&>(x.resize_({x.numel() + 1}));
}

at::Tensor& vmaptest::native::grow_and_shrink_(at::Tensor& x, const at::Tensor& y) {
  return x.set_(y);
}

// -- batches of size 0

at::Tensor vmaptest::native::on_cpu(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor product = (x * w).unsqueeze(-1);
  return at::cat({product, product}, -1);
}

void vmaptest::native::with_meta_cpu(
    const at::Tensor& x, const at::Tensor& w, const at::Tensor& out) {
  out.copy_((x * w).unsqueeze(-1).expand_as(out));
}

void vmaptest::native::signs(const at::Tensor& x, const at::Tensor& out) {
  out.copy_(x.sign());
}

void vmaptest::native::inverse_cpu(const at::Tensor& x, const at::Tensor& out) {
  out.copy_(at::linalg_inv(x));
}

at::Tensor vmaptest::native::inverse(const at::Tensor& x) {
  return at::linalg_inv(x);
}

at::Tensor& vmaptest::native::grown_(at::Tensor& self, double s) {
  return self.mul_(s).exp_();
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> vmaptest::native::lay(
    at::Tensor& a, const at::Tensor& x, at::Tensor& b) {
  a.mul_(x);
  b.add_(at::sin(x));
  return {b, x * 2, a};
}
