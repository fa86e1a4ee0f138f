// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/precompiled.h>

#include <portedtest/kernels.h>
#include <portedtest/ops.h>
#include <torch/torch.h>

#include <algorithm>
#include <future>
#include <numeric>
#include <tuple>
#include <vector>

namespace portedtest::native {

std::tuple<at::Tensor, at::Tensor> two(const at::Tensor& x) {
  return {x * 2, x * 3};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> three(const at::Tensor& x) {
  return {x.sign(), x * 2, x * 3};
}

std::vector<at::Tensor> parts(const at::Tensor& x, int64_t n) {
  std::vector<at::Tensor> found;
  for (int64_t i = 0; i < n; ++i) {
    found.push_back(x.clone());
  }
  return found;
}

at::Tensor needs(
    const at::Tensor& x, const at::Tensor& y, const std::optional<at::Tensor>& z) {
  return x + y + (z.has_value() ? *z : x.new_zeros({}));
}

at::Tensor needs_by_parts(const at::Tensor& x, const at::Tensor& y) {
  return x + y;
}

at::Tensor crop(const at::Tensor& x, const at::Tensor& y, int64_t by) {
  TORCH_CHECK_VALUE(by != 99, "portedtest::crop: by is not 99");
  return ::portedtest::_crop_forward(x, by == 6 ? at::Tensor() : y, by);
}

at::Tensor crop_twice(const at::Tensor& x, const at::Tensor& y) {
  return ::portedtest::crop(::portedtest::crop(x, y, 2), y, y.size(0));
}

void crop_given(const at::Tensor& x, const at::Tensor& y, int64_t by, const at::Tensor& out) {
  out.copy_(::portedtest::_crop_forward(x, y, by));
}

at::Tensor crop_named(const at::Tensor& error, const at::Tensor& name_caller) {
  return ::portedtest::_crop_forward(error, name_caller, 1);
}

at::Tensor crop_other(const at::Tensor& x, const at::Tensor& y) {
  return ::portedtest::_crop_forward(x, y, 10);
}

at::Tensor& crop_(at::Tensor& x, const at::Tensor& y) {
  return x.copy_(::portedtest::_crop_forward(x, y, 7));
}

void _crop_forward(const at::Tensor& x, const at::Tensor& y, int64_t by, const at::Tensor& out) {
  TORCH_CHECK_INDEX(by != 7, "portedtest::_crop_forward: by: nothing has seven");
  TORCH_CHECK(by != 8, "eight, said without a name");
  TORCH_CHECK_NOT_IMPLEMENTED(by != 9, "portedtest::_crop_forward: not by nine");
  TORCH_CHECK_LINALG(by != 13, "portedtest::_crop_forward: by: nothing is singular");
  if (by == 10) { // one error, which every call throws
    static const std::shared_future<int> ten = std::async(std::launch::deferred, [] {
      TORCH_CHECK_VALUE(false, "portedtest::_crop_forward: ten: once for all");
      return 1;
    });
    ten.get();
  }
  TORCH_CHECK(by != 11, "portedtest::_no_such_operator: eleven");
  if (by == 12) {
    try {
      TORCH_CHECK(false, "portedtest::_crop_forward: twelve");
    } catch (c10::Error& error) {
      error.add_context("found at noon");
      throw;
    }
  }
  out.copy_(x * y);
}

at::Tensor needs_list(at::TensorList xs) {
  return xs[0].clone();
}

void needs_ruled(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out) {
  out.copy_(x + y);
}

at::Tensor lengths(
    const at::Tensor& x,
    at::IntArrayRef s,
    at::ArrayRef<double> f,
    at::OptionalIntArrayRef o,
    at::IntArrayRef q,
    at::IntArrayRef e,
    at::IntArrayRef any) {
  std::vector<double> all(s.begin(), s.end());
  all.insert(all.end(), f.begin(), f.end());
  if (o.has_value()) {
    all.insert(all.end(), o->begin(), o->end());
  }
  all.insert(all.end(), q.begin(), q.end());
  all.insert(all.end(), e.begin(), e.end());
  all.insert(all.end(), any.begin(), any.end());
  return at::tensor(all, x.options().dtype(at::kDouble));
}

at::Tensor times_second(const at::Tensor& x, at::IntArrayRef s) {
  return x * s[1];
}

// the library's own C++ API, where one number stands for two
at::Tensor same_lengths(const at::Tensor& x) {
  return portedtest::lengths(x, 3, {1.0, 2.0, 3.0}, 4, c10::SymInt(5));
}

std::tuple<at::Tensor, at::Tensor> mixed(
    const at::Tensor& x, at::Tensor& d, at::Tensor& e, const at::Tensor& mask) {
  mixed_none(x, d, e, mask);
  return {d, e};
}

void mixed_none(const at::Tensor& x, at::Tensor& d, at::Tensor& e, const at::Tensor& mask) {
  d.add_(x * mask);
  e.add_(x * mask);
}

std::tuple<at::Tensor, at::Tensor> mixed_ends(at::Tensor& d, const at::Tensor& x, at::Tensor& e) {
  d.add_(x);
  e.mul_(x);
  return {d, e};
}

at::Tensor mixed_first(const at::Tensor& x, at::Tensor& d, const at::Tensor& mask) {
  return d.add_(x * mask);
}

void mixed_lists(const at::Tensor& x, at::TensorList ds) {
  for (const at::Tensor& d : ds) {
    d.add_(x);
  }
}

at::Tensor& plus_times_(at::Tensor& self, const at::Tensor& x) {
  return self.mul_(x);
}

std::tuple<at::Tensor, at::Tensor> counted_sum(const at::Tensor& x, at::Tensor& count) {
  return {count.add_(1), x.sum()};
}

at::Tensor& replaced_(at::Tensor& self, const at::Tensor& x) {
  return self.copy_(x);
}

at::Tensor masked(const at::Tensor& x, const at::Tensor& mask) {
  return x * mask;
}

at::Tensor masked_by_all(
    const at::Tensor& x, at::TensorList masks, const std::optional<at::Tensor>& mask) {
  const at::Tensor found = x * at::stack(masks).prod(0);
  return mask.has_value() ? found * *mask : found;
}

void masked_by_group(
    const at::Tensor& x,
    at::TensorList masks,
    std::optional<at::TensorList> more,
    const at::Tensor& out) {
  const at::Tensor found = x * at::stack(masks).prod(0);
  out.copy_(more.has_value() ? found * at::stack(*more).prod(0) : found);
}

void scaled_pair(at::TensorList xs, const at::Tensor& out) {
  out.copy_(xs[0] * 2 + xs[1] * 3);
}

// reads the memory, as kernels do that know nothing of lazy views
at::Tensor with_parts_cpu(
    const at::Tensor& x, const c10::List<std::optional<at::Tensor>>& parts) {
  at::Tensor found = x.clone();
  for (const std::optional<at::Tensor> part : parts) {
    if (part.has_value()) {
      const at::Tensor plain = part->contiguous();
      for (int64_t i = 0; i < plain.numel(); ++i) {
        found.mutable_data_ptr<c10::complex<double>>()[i] +=
            plain.const_data_ptr<c10::complex<double>>()[i];
      }
    }
  }
  return found;
}

std::tuple<at::Tensor, at::Tensor> as_dtype(const at::Tensor& x, at::ScalarType dtype) {
  return {x.to(dtype, false, /*copy=*/true), x * 2};
}

void times_equal(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out) {
  TORCH_CHECK(x.sizes() == y.sizes());
  out.copy_(x * y);
}

void scaled_equal(
    const at::Tensor& x, const at::Tensor& y, const at::Tensor& scale, const at::Tensor& out) {
  TORCH_CHECK(x.sizes() == y.sizes());
  out.copy_(x * y * scale.reshape({}));
}

void equal_or_scalar(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out) {
  out.copy_(x * y);
}

void times_chosen(
    const at::Tensor& x,
    const at::Tensor& y,
    const std::optional<at::Tensor>& a,
    const at::Tensor& out) {
  out.copy_(a.has_value() ? x * y * *a : x * y);
}

void as_many(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out) {
  out.copy_(x * y.reshape(x.sizes()));
}

void worded(
    const at::Tensor& x,
    const std::optional<at::Tensor>& /*a*/,
    const std::optional<at::Tensor>& /*b*/,
    const at::Tensor& out) {
  out.copy_(x);
}

void either(
    const at::Tensor& x,
    const std::optional<at::Tensor>& a,
    const std::optional<at::Tensor>& b,
    const at::Tensor& out) {
  out.copy_((a.has_value() ? *a : *b) + x.sum());
}

void either_like(
    const at::Tensor& x,
    const std::optional<at::Tensor>& /*a*/,
    const std::optional<at::Tensor>& /*b*/,
    const std::optional<at::Tensor>& /*c*/,
    const at::Tensor& out) {
  out.fill_(x.sum());
}

void either_checked(
    const at::Tensor& x,
    const std::optional<at::Tensor>& /*a*/,
    const std::optional<at::Tensor>& /*b*/,
    const at::Tensor& out) {
  out.copy_(x * 2);
}

void either_of(
    const at::Tensor& x,
    bool /*first*/,
    const std::optional<at::Tensor>& /*a*/,
    const std::optional<at::Tensor>& /*b*/,
    const at::Tensor& out) {
  out.fill_(x.sum());
}

// wrong where x begins with -1: of another size, dtype, or missing
std::tuple<at::Tensor, at::Tensor> norms(const at::Tensor& x, bool right) {
  if (right) {
    return {x.sum(1), x * x};
  }
  return x.size(0) == 1 ? std::tuple(x.sum(1).to(at::kInt), x * x)
                        : std::tuple(x.sum(0), x * x);
}

std::tuple<at::Tensor, at::Tensor> maybe_two(const at::Tensor& x, bool both) {
  return {x.clone(), both ? x * 2 : at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor> counted_norms(const at::Tensor& x, at::Tensor& count) {
  count.add_(1);
  return {x * x, count};
}

int64_t only_checked(
    const at::Tensor& boxes, const at::Tensor& scores, double scale, c10::string_view mode) {
  return static_cast<int64_t>(boxes.size(0) * scale) + static_cast<int64_t>(mode.size());
}

void checked_and_written(const at::Tensor& x, at::Tensor& out, at::IntArrayRef sizes) {
  out.copy_(x * static_cast<double>(sizes.size()));
}

// reads all of x before it is done with the first row of the result
void mean_plus_cpu(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out) {
  out.copy_(x + y);
  out.add_(x.mean());
}

TORCH_IMPL_FUNC(softsign_cpu)(const at::Tensor& self, const at::Tensor& out) {
  at::div_out(const_cast<at::Tensor&>(out), self, self.abs() + 1);
}

TORCH_IMPL_FUNC(later_cpu)
(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  at::gt_out(const_cast<at::Tensor&>(out), self, other);
}

TORCH_IMPL_FUNC(halfway_cpu)
(const at::Tensor& self, const at::Tensor& other, double at, const at::Tensor& out) {
  out.copy_(self * (1 - at) + other * at);
}

TORCH_IMPL_FUNC(mixed_three_cpu)
(const at::Tensor& self, const at::Tensor& other, const at::Tensor& third, const at::Tensor& out) {
  out.copy_(self * other + third);
}

TORCH_IMPL_FUNC(is_zero_cpu)(const at::Tensor& self, const at::Tensor& out) {
  out.copy_(self.eq(0));
}

void rounded_cpu(const at::Tensor& x, const at::Tensor& out) {
  out.copy_(x.round());
}

void checked_times_cpu(const at::Tensor& x, const at::Scalar& alpha, const at::Tensor& out) {
  out.copy_(x * alpha);
}

std::vector<at::Tensor> checked_parts(const at::Tensor& x, const at::Scalar& alpha) {
  return {x / alpha, x * alpha};
}

at::Tensor nonzero_rows(const at::Tensor& x) {
  return x.index({x.ne(0).any(1)});
}

void repeated_rows(const at::Tensor& x, int64_t dynamic, const at::Tensor& out) {
  out.copy_(x.sum(0).expand({dynamic, x.size(1)}));
}

std::tuple<at::Tensor, at::Tensor> kept(const at::Tensor& scores, double least, int64_t most) {
  at::Tensor index = scores.gt(least).nonzero().squeeze(1);
  at::Tensor values = scores.index({index});
  return {most >= 0 ? values.slice(0, 0, most).clone() : values, index};
}

// by `scale` one tensor less than the rule says, or another dtype
std::vector<at::Tensor> scaled_parts(at::TensorList inputs, double scale) {
  std::vector<at::Tensor> found;
  for (const at::Tensor& x : inputs) {
    found.push_back(at::stack({x * scale, x}, -1));
  }
  if (scale == -1) {
    found.pop_back();
  }
  if (scale == -2) {
    found.back() = found.back().to(at::kInt);
  }
  return found;
}

std::vector<at::Tensor> copies(const at::Tensor& x, int64_t n) {
  std::vector<at::Tensor> found;
  for (int64_t i = 0; i < n; ++i) {
    found.push_back(x.repeat({i, 1}));
  }
  return found;
}

std::vector<at::Tensor> repeated(const at::Tensor& x, at::IntArrayRef sizes) {
  std::vector<at::Tensor> found;
  for (const int64_t size : sizes) {
    found.push_back(x.sum(0, true).repeat({size, 1}));
  }
  return found;
}

std::tuple<at::Tensor, at::Tensor> sorted_rows(const at::Tensor& x) {
  return at::sort(x, -1);
}

at::Tensor places(const at::Tensor& mask) {
  return at::nonzero(mask);
}

std::vector<at::Tensor> tripled(at::TensorList xs) {
  std::vector<at::Tensor> found;
  for (const at::Tensor& x : xs) {
    found.push_back(x * 3);
  }
  return found;
}

at::Tensor by_columns(const at::Tensor& x) {
  return x * 2;
}

void ones(const at::Tensor&, c10::string_view, const at::Tensor& out) {
  out.fill_(1);
}

void ones(const at::Tensor&, const at::Tensor& out) {
  out.fill_(1);
}

void ones_beside(
    const at::Tensor&, const std::optional<at::Tensor>&, const at::Tensor& out) {
  out.fill_(1);
}

void ones_beside_one(const at::Tensor&, const at::Tensor&, const at::Tensor& out) {
  out.fill_(1);
}

void ones_beside_number(const at::Tensor&, int64_t, const at::Tensor& out) {
  out.fill_(1);
}

void ones_beside_numbers(
    const at::Tensor&, int64_t, const at::Scalar&, double, const at::Tensor& out) {
  out.fill_(1);
}

void ones_beside_maybe(const at::Tensor&, std::optional<int64_t>, const at::Tensor& out) {
  out.fill_(1);
}

void ones_beside_list(at::TensorList, const at::Tensor& out) {
  out.fill_(1);
}

void copy_beside_number(const at::Tensor& x, int64_t, const at::Tensor& out) {
  out.copy_(x);
}

void twice(const at::Tensor& x, const at::Tensor& out) {
  out.copy_(x * 2);
}

std::vector<at::Tensor> powers(const at::Tensor& x) {
  std::vector<at::Tensor> found;
  for (int64_t i = 1; i <= x.dim(); ++i) {
    found.push_back(x.pow(i));
  }
  return found;
}

void summed_last(const at::Tensor& x, const at::Tensor& out) {
  out.copy_(x.sum(-1));
}

std::tuple<at::Tensor, at::Tensor> softmax_each(const at::Tensor& x, const at::Tensor& y) {
  return {x.softmax(-1), y.softmax(-1)};
}

std::tuple<at::Tensor, at::Tensor> twice_beside(const at::Tensor& x, const at::Tensor& y) {
  return {x * 2, y * 2};
}

std::vector<at::Tensor> sums_of_list(at::TensorList xs, const at::Tensor& w) {
  std::vector<at::Tensor> found;
  for (const at::Tensor& x : xs) {
    found.push_back(x + w);
  }
  return found;
}

std::vector<at::Tensor> twice_both(at::TensorList xs, at::TensorList ys) {
  std::vector<at::Tensor> found;
  for (const at::TensorList list : {xs, ys}) {
    for (const at::Tensor& x : list) {
      found.push_back(x * 2);
    }
  }
  return found;
}

// What is in memory, one double after another, whatever strides and bits say.
static double raw_sum(const at::Tensor& x) {
  const double* values = x.const_data_ptr<double>();
  return std::accumulate(values, values + x.numel(), 0.0, [&, place = 1](double a, double b) mutable {
    return a + place++ * b;
  });
}

at::Tensor raw_sums(
    const at::Tensor& x,
    at::TensorList l,
    const c10::List<std::optional<at::Tensor>>& m,
    std::optional<at::TensorList> n) {
  double sum = raw_sum(x);
  for (const at::Tensor& tensor : l) {
    sum += 10 * raw_sum(tensor);
  }
  for (const std::optional<at::Tensor> tensor : m) {
    sum += tensor.has_value() ? 100 * raw_sum(*tensor) : 0;
  }
  for (const at::Tensor& tensor : n.value_or(at::TensorList())) {
    sum += 1000 * raw_sum(tensor);
  }
  return at::full({}, sum, x.options());
}

at::Tensor raw_sums_any(const at::Tensor& x, std::optional<at::TensorList> n) {
  double sum = raw_sum(x);
  for (const at::Tensor& tensor : n.value_or(at::TensorList())) {
    sum += 1000 * raw_sum(tensor);
  }
  return at::full({}, sum, x.options());
}

void add_to_all(at::TensorList l, const at::Tensor& n) {
  for (const at::Tensor& tensor : l) {
    tensor.add_(n);
  }
}

at::Tensor& row_and_number_(at::Tensor& self, const at::Tensor& n) {
  return self.add_(1).add_(n);
}

void ones_beside_choice(const at::Tensor&, const at::Tensor&, bool, const at::Tensor& out) {
  out.fill_(1);
}

void ones_beside_last(at::TensorList, const at::Tensor&, const at::Tensor& out) {
  out.fill_(1);
}

std::vector<at::Tensor> each_chosen(at::TensorList xs, at::TensorList ys, bool f) {
  std::vector<at::Tensor> found;
  for (const at::Tensor& t : f ? xs : ys) {
    found.push_back(t.size(0) < 4 ? t.clone() : t.unsqueeze(-1).clone());
  }
  return found;
}

void add_twice(at::Tensor& y, const at::Tensor& n) {
  y.add_(1);
  y.add_(n.clone());
}

void zero_and_add(const at::Tensor& x, const at::Tensor& out) {
  out.zero_();
  out.add_(x);
}

at::Tensor& add_without_formula_(at::Tensor& self, const at::Tensor& n) {
  return self.add_(n);
}

void add_second_without_formula(
    const at::Tensor& x,
    const std::optional<at::Tensor>& t,
    at::TensorList l,
    const at::Tensor& q) {
  if (t.has_value()) {
    t->add_(x);
  }
  for (const at::Tensor& tensor : l) {
    tensor.add_(q);
  }
}

at::Tensor scaled_by(const at::Tensor& self, const at::Tensor& other) {
  return self * other;
}

at::Tensor& scaled_by_(at::Tensor& self, const at::Tensor& other) {
  return self.copy_(self * other);
}

at::Tensor& weighted_(
    at::Tensor& self, const at::Tensor& other, const std::optional<at::Tensor>& w) {
  return self.copy_(w.has_value() ? self * other * *w : self * other);
}

// The last of a shorter list for all that are left.
std::vector<at::Tensor> each_times(at::TensorList xs, at::TensorList ys) {
  std::vector<at::Tensor> found;
  for (size_t i = 0; i < xs.size(); ++i) {
    found.push_back(xs[i] * ys[std::min(i, ys.size() - 1)]);
  }
  return found;
}

} // namespace portedtest::native
