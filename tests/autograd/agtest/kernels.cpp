// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/precompiled.h>

#include <agtest/kernels.h>

#include <ATen/ATen.h>

using at::Tensor;
using OptionalTensors = c10::List<std::optional<Tensor>>;

namespace {

// The sum of the tensors that are there; undefined where there is none.
Tensor sum_of(at::TensorList tensors) {
  Tensor sum;
  for (const Tensor& tensor : tensors) {
    if (tensor.defined()) {
      sum = sum.defined() ? sum + tensor : tensor;
    }
  }
  return sum;
}

std::vector<Tensor> present(const OptionalTensors& tensors) {
  std::vector<Tensor> found;
  for (const std::optional<Tensor> tensor : tensors) {
    if (tensor.has_value() && tensor->defined()) {
      found.push_back(*tensor);
    }
  }
  return found;
}

} // namespace

// ---- operators without a formula

Tensor agtest::native::multiply(const Tensor& self, const Tensor& other) {
  return self * other;
}

Tensor& agtest::native::multiply_out(const Tensor& self, const Tensor& other, Tensor& out) {
  return at::mul_out(out, self, other);
}

Tensor& agtest::native::filled_from_(Tensor& self, const Tensor& source) {
  return self.copy_(source * 2);
}

std::tuple<Tensor, Tensor> agtest::native::summed(const Tensor& self, const Tensor& other) {
  return {self * 2, other + self};
}

std::tuple<Tensor&, Tensor&> agtest::native::summed_(Tensor& self, Tensor& other) {
  other.add_(self);
  return {self.mul_(2), other};
}

Tensor agtest::native::doubled_if(const Tensor& self, bool /*yes*/) {
  return self * 2;
}

Tensor& agtest::native::doubled_if_(Tensor& self, bool /*yes*/) {
  return self.mul_(2);
}

Tensor& agtest::native::multiply_(Tensor& self, const Tensor& other) {
  return self.mul_(other);
}

std::tuple<Tensor, Tensor> agtest::native::sum_and_difference(
    const Tensor& self, const Tensor& other) {
  return {self + other, self - other};
}

Tensor agtest::native::add_optional(const Tensor& self, const std::optional<Tensor>& other) {
  return other.has_value() ? self + *other : self.clone();
}

std::optional<Tensor> agtest::native::give_or_not(const Tensor& self, bool give) {
  return give ? std::make_optional(self * 2) : std::nullopt;
}

std::vector<Tensor> agtest::native::double_each(at::TensorList tensors) {
  std::vector<Tensor> doubled;
  for (const Tensor& tensor : tensors) {
    doubled.push_back(tensor * 2);
  }
  return doubled;
}

Tensor agtest::native::add_present(const Tensor& self, const OptionalTensors& others) {
  const Tensor sum = sum_of(present(others));
  return sum.defined() ? self + sum : self.clone();
}

Tensor agtest::native::add_all_or_none(const Tensor& self, std::optional<at::TensorList> tensors) {
  return tensors.has_value() ? self + sum_of(*tensors) : self.clone();
}

void agtest::native::mutate(Tensor& x, const Tensor& other) {
  x.mul_(other);
}

void agtest::native::mutate_optional(const std::optional<Tensor>& x, const Tensor& other) {
  if (x.has_value()) {
    x->mul_(other);
  }
}

void agtest::native::mutate_two(Tensor& x, Tensor& y, const Tensor& other) {
  x.mul_(other);
  y.mul_(other);
}

void agtest::native::mutate_list(at::TensorList xs, const Tensor& other) {
  for (const Tensor& x : xs) {
    x.mul_(other);
  }
}

Tensor agtest::native::mutate_and_give(Tensor& x, const Tensor& other) {
  x.mul_(other);
  return x + 1;
}

Tensor agtest::native::transposed(const Tensor& self) {
  return self.t();
}

std::vector<Tensor> agtest::native::rows(const Tensor& self) {
  return self.unbind();
}

int64_t agtest::native::count_dimensions(const Tensor& self) {
  return self.dim();
}

Tensor agtest::native::index_of_largest(const Tensor& self) {
  return self.argmax();
}

Tensor agtest::native::step(const Tensor& self) {
  return self.sign();
}

Tensor& agtest::native::step_(Tensor& self) {
  return self.sign_();
}

Tensor agtest::native::plain_parts(const Tensor& self, const Tensor& other) {
  return self * other + other.sin();
}

// ---- operators with formulas

Tensor agtest::native::multiply_by(const Tensor& self, const at::Scalar& other) {
  return self * other;
}

Tensor agtest::native::expo(const Tensor& self) {
  return self.exp();
}

std::tuple<Tensor, Tensor> agtest::native::sine_cosine(const Tensor& self) {
  return {self.sin(), self.cos()};
}

Tensor agtest::native::weighted(
    const Tensor& self, const Tensor& other, const std::optional<Tensor>& third, double factor) {
  const Tensor product = self * other * factor;
  return third.has_value() ? product + *third : product;
}

std::tuple<Tensor, Tensor, Tensor> agtest::native::weighted_backward(
    const Tensor& grad,
    const Tensor& self,
    const Tensor& other,
    const std::optional<Tensor>& third,
    double factor,
    std::array<bool, 3> mask) {
  TORCH_CHECK(third.has_value() || !mask[2], "a gradient for a tensor that was not given");
  return {
      mask[0] ? grad * other * factor : Tensor(),
      mask[1] ? grad * self * factor : Tensor(),
      mask[2] ? grad : Tensor()};
}

Tensor agtest::native::scaled_or_not(const Tensor& self, const std::optional<Tensor>& scale) {
  return scale.has_value() ? self * *scale : self.clone();
}

Tensor agtest::native::squares(at::TensorList tensors, const at::Scalar& weight) {
  Tensor sum = at::zeros_like(tensors[0]);
  for (const Tensor& tensor : tensors) {
    sum += tensor * tensor * weight;
  }
  return sum;
}

std::vector<Tensor> agtest::native::squares_backward(
    const Tensor& grad, at::TensorList tensors, const at::Scalar& weight) {
  std::vector<Tensor> grads;
  for (const Tensor& tensor : tensors) {
    grads.push_back(grad * tensor * weight * 2);
  }
  return grads;
}

Tensor agtest::native::times_total(const Tensor& self, at::TensorList tensors) {
  return tensors.empty() ? at::zeros_like(self) : self * sum_of(tensors);
}

std::tuple<Tensor, std::vector<Tensor>> agtest::native::times_total_backward(
    const Tensor& grad, const Tensor& self, at::TensorList tensors, std::array<bool, 2> mask) {
  Tensor grad_self;
  if (mask[0]) {
    grad_self = tensors.empty() ? at::zeros_like(self) : grad * sum_of(tensors);
  }
  std::vector<Tensor> grads(tensors.size(), mask[1] ? grad * self : Tensor());
  return {grad_self, grads};
}

Tensor agtest::native::times_present(const Tensor& self, const OptionalTensors& others) {
  const Tensor sum = sum_of(present(others));
  return sum.defined() ? self * sum : at::zeros_like(self);
}

Tensor agtest::native::times_present_self_backward(
    const Tensor& grad, const OptionalTensors& others) {
  const Tensor sum = sum_of(present(others));
  return sum.defined() ? grad * sum : at::zeros_like(grad);
}

std::vector<Tensor> agtest::native::times_present_others_backward(
    const Tensor& grad, const Tensor& self, const OptionalTensors& others) {
  std::vector<Tensor> grads;
  for (const std::optional<Tensor> other : others) {
    const bool given = other.has_value() && other->defined();
    grads.push_back(given ? grad * self : Tensor());
  }
  return grads;
}

std::vector<Tensor> agtest::native::halves(const Tensor& self) {
  const int64_t half = self.size(0) / 2;
  return {self.narrow(0, 0, half).clone(), self.narrow(0, half, self.size(0) - half) * 2};
}

Tensor agtest::native::halves_backward_symint(at::TensorList grads, c10::SymIntArrayRef sizes) {
  const c10::SymInt half = sizes[0] / 2;
  const Tensor& like = grads[0].defined() ? grads[0] : grads[1];
  const auto filled = [&](const Tensor& grad, const c10::SymInt& length) {
    std::vector<c10::SymInt> part = sizes.vec();
    part[0] = length;
    return grad.defined() ? grad : at::zeros_symint(part, like.options());
  };
  return at::cat({filled(grads[0], half), filled(grads[1], sizes[0] - half) * 2});
}

Tensor agtest::native::rows_at(const Tensor& self, const Tensor& index) {
  return self.index_select(0, index);
}

Tensor agtest::native::rows_at_backward_symint(
    const Tensor& grad, const Tensor& index, c10::SymIntArrayRef sizes) {
  return at::zeros_symint(sizes, grad.options()).index_add(0, index, grad);
}

std::tuple<Tensor, Tensor> agtest::native::value_and_index(const Tensor& self) {
  return {self * 2, self.argsort()};
}

std::tuple<Tensor, Tensor> agtest::native::float_and_value(const Tensor& self) {
  return {self.sign(), self * 2};
}

Tensor agtest::native::differentiable_if(const Tensor& self, bool /*yes*/) {
  return self * 2;
}

std::tuple<Tensor, Tensor> agtest::native::pair_if(const Tensor& self, bool /*first*/) {
  return {self * 2, self * 3};
}

Tensor agtest::native::total(const Tensor& self) {
  return self.sum();
}

Tensor agtest::native::as_dtype(const Tensor& self, at::ScalarType dtype) {
  return self.to(dtype, /*non_blocking=*/false, /*copy=*/true);
}

// Multiplies by a number to which every argument adds its part: a value lost on the way is seen.
Tensor agtest::native::typed(
    const Tensor& self,
    int64_t a,
    int64_t b,
    at::IntArrayRef c,
    at::IntArrayRef d,
    double e,
    bool f,
    const at::Scalar& g,
    const std::optional<at::Scalar>& h,
    c10::string_view i,
    at::OptionalIntArrayRef j,
    std::optional<at::ArrayRef<double>> k,
    std::optional<at::ScalarType> l,
    std::array<bool, 2> m,
    at::OptionalIntArrayRef n,
    std::optional<c10::string_view> o,
    std::optional<at::Device> p,
    std::optional<at::MemoryFormat> q,
    std::optional<int64_t> r,
    std::optional<double> s,
    std::optional<bool> t,
    at::ArrayRef<at::Scalar> u,
    std::optional<int64_t> v,
    at::ArrayRef<std::string> w,
    c10::complex<double> x,
    std::optional<at::Layout> y,
    std::optional<at::Generator> z) {
  double sum = static_cast<double>(a + b) + e;
  const auto add_all = [&](const auto& values) {
    double place = 1;
    for (const auto& value : values) {
      sum += place * static_cast<double>(value);
      place *= 10;
    }
  };
  add_all(c);
  add_all(d);
  sum += f ? 0.5 : 0;
  sum += g.toDouble() + (h.has_value() ? h->toDouble() : 0);
  sum += static_cast<double>(i.size()) + (i == "long enough to be on the heap" ? 0.25 : 0);
  if (j.has_value()) {
    add_all(*j);
  }
  if (k.has_value()) {
    add_all(*k);
  }
  sum += l == at::kDouble ? 0.125 : 0;
  sum += (m[0] ? 7 : 0) + (m[1] ? 70 : 0);
  if (n.has_value()) {
    add_all(*n);
  }
  sum += o.has_value() ? static_cast<double>(o->size()) : 0;
  sum += p.has_value() && p->is_cpu() ? 3 : 0;
  sum += q == at::MemoryFormat::ChannelsLast ? 5 : 0;
  sum += static_cast<double>(r.value_or(0)) + s.value_or(0) + (t.value_or(false) ? 11 : 0);
  for (const at::Scalar& scalar : u) {
    sum += scalar.toDouble();
  }
  sum += static_cast<double>(v.value_or(0));
  for (const std::string& text : w) {
    sum += static_cast<double>(text.size());
  }
  sum += x.real() + 100 * x.imag();
  sum += y == at::kStrided ? 13 : 0;
  sum += z.has_value() ? 17 : 0;
  return self * sum;
}

Tensor agtest::native::flagged(const Tensor& self, c10::List<bool> flags) {
  return flags.size() > 1 && flags.get(1) ? self * 3 : self * 1;
}

Tensor agtest::native::typed_symint(
    const Tensor& self,
    c10::SymInt b,
    c10::SymIntArrayRef c,
    at::OptionalSymIntArrayRef n,
    std::optional<c10::SymInt> v) {
  c10::SymInt sum = b + v.value_or(0);
  for (const c10::SymInt& value : c) {
    sum += value;
  }
  if (n.has_value()) {
    for (const c10::SymInt& value : *n) {
      sum += value;
    }
  }
  return self * at::Scalar(sum);
}

// ---- operators whose arguments have names that generated code must not trip over

Tensor agtest::native::clash(
    const Tensor& default_,
    const Tensor& self,
    double lock,
    int64_t ranges,
    const Tensor& keys,
    const Tensor& node,
    const at::Scalar& guard,
    bool /*register_*/,
    double same_device,
    const std::optional<Tensor>& operator_) {
  const Tensor sum = default_ * self * lock * ranges + keys * node * guard * same_device;
  return operator_.has_value() ? sum + *operator_ : sum;
}

Tensor agtest::native::clash_list(
    at::TensorList computed, const Tensor& grad_inputs, double needs, double store, double save) {
  return sum_of(computed) * grad_inputs * (needs * store * save);
}

std::vector<Tensor> agtest::native::clash_list_backward(
    const Tensor& grad, const Tensor& grad_inputs, int64_t count, double factor) {
  return std::vector<Tensor>(count, grad * grad_inputs * factor);
}

Tensor agtest::native::maybe_copy(const Tensor& self, bool copy) {
  return copy ? self.clone() : self;
}

Tensor agtest::native::maybe_slice(const Tensor& self, bool slice) {
  return slice ? self[0] : self;
}

std::vector<Tensor> agtest::native::first_rows(at::TensorList tensors) {
  std::vector<Tensor> rows;
  for (const Tensor& tensor : tensors) {
    rows.push_back(tensor[0]);
  }
  return rows;
}
