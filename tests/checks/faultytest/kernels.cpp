// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/precompiled.h>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <faultytest/kernels.h>
#include <faultytest/ops.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <tuple>
#include <vector>

namespace faultytest::native {

using at::Tensor;

at::Tensor right_cpu(const Tensor& x, const std::optional<Tensor>& mask, const at::Scalar& scale) {
  const Tensor scaled = x * scale;
  return mask.has_value() ? scaled * *mask : scaled;
}

at::Tensor right_meta(const Tensor& x, const std::optional<Tensor>& mask, const at::Scalar& scale) {
  return right_cpu(x, mask, scale);
}

void made_cpu(const Tensor& x, const Tensor& y, int64_t /*n*/, const Tensor& out) {
  TORCH_CHECK_INDEX(y.numel() == 0 || y.max().item<int64_t>() == 0, "faultytest::made: places");
  out.copy_(x * 2);
}

at::Tensor not_made_cpu(const Tensor& x, int64_t n) {
  return x * *reinterpret_cast<const int64_t*>(n);
}

at::Tensor not_made_meta(const Tensor& x, int64_t /*n*/) {
  return at::empty_like(x);
}

std::vector<at::Tensor> parts_cpu(const Tensor& x) {
  return {x * 2, x * 3};
}

at::Tensor looks_up_cpu(const Tensor& table, const Tensor& index) {
  // a kernel that trusts its arguments: out of bounds it would read what is not there
  TORCH_CHECK(table.size(0) > 0 || index.numel() == 0, "faultytest::looks_up: out of bounds");
  return at::index_select(table, 0, index);
}

at::Tensor looks_up_meta(const Tensor& table, const Tensor& index) {
  return at::index_select(table, 0, index);
}

int64_t number_cpu(const Tensor& /*x*/) {
  static std::atomic<int64_t> calls{0};
  return ++calls;
}

int64_t number_meta(const Tensor& /*x*/) {
  return 0;
}

at::Tensor halve_cpu(const Tensor& x) {
  return x * 0.5;
}

void quarter_cpu_(Tensor& x) {
  x.mul_(0.25);
}

void nothing_meta(Tensor& /*x*/) {}

at::Tensor own_backward_autograd(const Tensor& x) {
  return x * 2 + (x - x.detach()) * 50;
}

at::Tensor& no_room_cpu_(Tensor& x, const Tensor& /*y*/) {
  return x;
}

at::Tensor no_room_cpu(const Tensor& x, const Tensor& y) {
  return x + y;
}

at::Tensor kept_strides_cpu(const Tensor& x) {
  return x * 2;
}

at::Tensor kept_strides_meta(const Tensor& x) {
  return (x * 2).contiguous();
}

at::Tensor like_meta(const Tensor& x) {
  return at::empty_like(x, x.options().dtype(at::result_type(x, at::Scalar(2))));
}

at::Tensor contiguous_meta(const Tensor& x) {
  return like_meta(x).contiguous();
}

at::Tensor& written_meta(Tensor& x) {
  return x;
}

at::Tensor right_gradient_cpu(const Tensor& x) {
  return x * x;
}

at::Tensor square_cpu(const Tensor& x) {
  return x * x;
}

at::Tensor reads_memory_cpu(const Tensor& x) {
  Tensor result = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "reads_memory", [&] {
    const auto* from = x.const_data_ptr<scalar_t>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      result.mutable_data_ptr<scalar_t>()[i] = from[i];
    }
  });
  return result;
}

at::Tensor needs_elements_cpu(const Tensor& x) {
  TORCH_CHECK(x.numel() > 0, "faultytest::needs_elements: no elements");
  return x * 2;
}

at::Tensor to_float8(const Tensor& x) {
  return x.to(at::kFloat8_e4m3fn);
}

at::Tensor wrong_scalar_cpu(const Tensor& x) {
  return x.dim() == 0 ? at::full_like(x, 7) : -x;
}

at::Tensor claims_int_cpu(const Tensor& x) {
  TORCH_CHECK(x.is_floating_point(), "faultytest::claims_int: floating point only");
  return x * 2;
}

at::Tensor bad_half_cpu(const Tensor& x) {
  return x.scalar_type() == at::kHalf ? x * 2.1 : x * 2;
}

at::Tensor by_reverse_backward(const Tensor& g, const Tensor& x) {
  return g * 2 * x;
}

at::Tensor twice_cpu(const Tensor& x) {
  return x * 2;
}

at::Tensor& thrice_cpu_(Tensor& x) {
  return x.mul_(3);
}

at::Tensor& twice_out_cpu(const Tensor& x, Tensor& out) {
  out.resize_(x.sizes());
  return out.copy_(x * 2); // converts, which out= does not
}

at::Tensor& twice_out_meta(const Tensor& x, Tensor& out) {
  out.resize_(x.sizes());
  return out;
}

at::Tensor whole_cpu(const Tensor& x) {
  return x - x.sum();
}

// Wrong where elements lie apart, but for those that are one.
at::Tensor apart_cpu(const Tensor& x) {
  const auto strides = x.strides();
  const bool repeats = std::find(strides.begin(), strides.end(), 0) != strides.end();
  return x * 2 + (x.is_non_overlapping_and_dense() || repeats ? 0 : 1);
}

// Wrong where elements of a dimension are one.
at::Tensor repeated_cpu(const Tensor& x) {
  const auto strides = x.strides();
  return x * 2 + (std::find(strides.begin(), strides.end(), 0) != strides.end() ? 1 : 0);
}

// Wrong for a batch that is the last dimension, and moved to the front.
at::Tensor last_batch_cpu(const Tensor& x) {
  return x * 2 + (x.dim() == 3 && !x.is_contiguous() ? 1 : 0);
}

at::Tensor rounded_cpu(const Tensor& x, const Tensor& y) {
  return x * y - y;
}

at::Tensor product_cpu(const Tensor& x, const Tensor& y) {
  return x * y;
}

std::tuple<Tensor, Tensor> frozen_backward(
    const Tensor& grad, const Tensor& x, const Tensor& y, std::array<bool, 2> mask) {
  return {grad * y, mask[0] ? grad * x : grad};
}

// Wrong where y has other strides.
at::Tensor borrowed_cpu(const Tensor& x, const Tensor& y) {
  return x * y.as_strided(x.sizes(), x.strides());
}

// Wrong where the storage begins with something else.
at::Tensor from_start_cpu(const Tensor& x) {
  const Tensor contiguous = x.contiguous();
  return contiguous.as_strided(contiguous.sizes(), contiguous.strides(), 0) * 2;
}

at::Tensor last_channels_cpu(const Tensor& x) {
  const bool is_last = x.dim() == 4 && !x.is_contiguous() && x.numel() != 0 &&
                       x.is_contiguous(at::MemoryFormat::ChannelsLast);
  return x * 2 + (is_last ? 1 : 0);
}

// Wrong for batches of which the one is the last dimension, and moved to the front.
at::Tensor two_batches_cpu(const Tensor& x, const Tensor& y) {
  return x * y + (x.dim() == 3 && x.is_contiguous() && !y.is_contiguous() ? 1 : 0);
}

at::Tensor promoted_cpu(const Tensor& x) {
  return at::isIntegralType(x.scalar_type(), /*includeBool=*/false)
             ? x.to(at::kLong, /*non_blocking=*/false, /*copy=*/true)
             : x * 1;
}

// Wrong for out of another size.
at::Tensor& grown_out_cpu(const Tensor& x, Tensor& out) {
  TORCH_CHECK(out.scalar_type() == x.scalar_type(), "faultytest::grown: dtype of out");
  if (out.numel() < x.numel()) {
    out.resize_(x.sizes());
  }
  at::Tensor first = out.dim() == x.dim() && out.numel() == x.numel()
                         ? out
                         : out.flatten().narrow(0, 0, x.numel()).view(x.sizes());
  first.copy_(x * 2);
  return out;
}

at::Tensor& replaced_out_cpu(const Tensor& x, Tensor& out) {
  TORCH_CHECK(out.scalar_type() == x.scalar_type(), "faultytest::replaced: dtype of out");
  const Tensor result = x * 2;
  out.set_(result.storage(), 0, result.sizes(), result.strides());
  return out;
}

at::Tensor hidden_write_cpu(const Tensor& x) {
  Tensor result = x.clone();
  const_cast<Tensor&>(x).data().add_(1);
  return result;
}

at::Tensor one_size_meta(const Tensor& x) {
  return at::empty({x.size(0)}, like_meta(x).options()); // a number, where a SymInt belongs
}

at::Tensor own_cast_autocast(const Tensor& x) {
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::AutocastCPU);
  return ::faultytest::own_cast(at::autocast::cached_cast(at::kBFloat16, x, at::kCPU));
}

at::Tensor on_cpu_privateuse1(const Tensor& x) {
  return x.cpu() * 2;
}

at::Tensor takes_a_stream_cpu(c10::Stream /*s*/, const Tensor& x) {
  return x * 2;
}

at::Tensor draws_cpu(const Tensor& x, std::optional<at::Generator> generator) {
  return at::rand(x.sizes(), generator, x.options());
}

at::Tensor factory(int64_t n, std::optional<at::Device> device) {
  return at::ones({n}, at::TensorOptions().device(device));
}

at::Tensor draws_meta(const Tensor& x, std::optional<at::Generator> /*generator*/) {
  return at::empty_like(x);
}

at::Tensor centred_cpu(const Tensor& x) {
  return x - x.mean();
}

at::Tensor centred_backward_cpu(const Tensor& grad) {
  const Tensor contiguous = grad.contiguous();
  return (contiguous - contiguous.mean()) * (grad.is_contiguous() ? 1 : 7);
}

at::Tensor int64_index_cpu(const Tensor& table, const Tensor& index) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "faultytest::claims_index: int64 only");
  return looks_up_cpu(table, index);
}

at::Tensor bad_integers_cpu(const Tensor& x) {
  return x * (x.scalar_type() == at::kInt ? 7 : 2);
}

at::Tensor bad_bfloat16_cpu(const Tensor& x) {
  return x * (x.scalar_type() == at::kBFloat16 ? 25 : 2);
}

at::Tensor factory_of_the_cpu(int64_t n, std::optional<at::Device> /*device*/) {
  return at::ones({n});
}

at::Tensor& drawn_out_cpu(const Tensor& x, std::optional<at::Generator> generator, Tensor& out) {
  TORCH_CHECK(out.scalar_type() == x.scalar_type(), "faultytest::drawn: dtype of out");
  out.resize_(x.sizes());
  return out.copy_(draws_cpu(x, generator) * 2);
}

at::Tensor& drawn_out_meta(
    const Tensor& x, std::optional<at::Generator> /*generator*/, Tensor& out) {
  out.resize_(x.sizes());
  return out;
}

int64_t seven_cpu(const Tensor& /*x*/) {
  return 7;
}

int64_t eight_privateuse1(const Tensor& /*x*/) {
  return 8;
}

at::Tensor mixed_cpu(const Tensor& x, const Tensor& weight) {
  return x * weight;
}

at::Tensor mixed_meta(const Tensor& x, const Tensor& weight) {
  return x * weight;
}

at::Tensor tied_cpu(const Tensor& x, const Tensor& y) {
  TORCH_CHECK(x.scalar_type() == y.scalar_type(), "faultytest::tied: one dtype");
  return x * y;
}

at::Tensor noisy(const Tensor& x) {
  return x * at::rand_like(x);
}

at::Tensor& places_out(const Tensor& x, Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong, "faultytest::places: out must be int64");
  out.resize__symint({x.sym_size(0)});
  return out.is_meta() ? out : out.copy_((x > 0).sum(1));
}

at::Tensor only_doubles_cpu(const Tensor& x) {
  TORCH_CHECK(x.scalar_type() != at::kBFloat16, "faultytest::only_doubles: bfloat16");
  return x * 1;
}

at::Tensor steps_cpu(const Tensor& x) {
  return (x * 10).round().to(at::kChar);
}

at::Tensor steps_meta(const Tensor& x) {
  return at::empty_like(x, x.options().dtype(at::kChar));
}

at::Tensor highest(const Tensor& x) {
  return x.argmax();
}

at::Tensor pooled(const Tensor& x, const Tensor& weight) {
  return at::max_pool2d(at::conv2d(x, weight), {2, 2}, {2, 2}, {0, 0}, {1, 1});
}

at::Tensor remembers_cpu_(const Tensor& x, Tensor& memory) {
  memory.copy_(memory + x);
  return x * memory.sum();
}

at::Tensor remembers_meta_(const Tensor& x, Tensor& /*memory*/) {
  return at::empty_like(x);
}

at::Tensor remembers_cpu(const Tensor& x, const Tensor& memory) {
  return x * (memory + x).sum();
}

at::Tensor nonzero_places(const Tensor& x) {
  return x.nonzero();
}

std::vector<at::Tensor> rows_cpu(const Tensor& x) {
  std::vector<at::Tensor> made;
  for (const Tensor& row : x.unbind()) {
    made.push_back((row * 2).contiguous());
  }
  return made;
}

at::Tensor equals_cpu(const Tensor& x, const Tensor& y) {
  return x == y;
}

at::Tensor& equals_cpu_(Tensor& x, const Tensor& y) {
  return x.eq_(y);
}

at::Tensor scaled_by(const Tensor& x, double factor) {
  return x * factor;
}

at::Tensor scaled_by_scalar(const Tensor& x, const at::Scalar& factor) {
  return x * factor;
}

void weighted(const Tensor& x, const std::optional<Tensor>& weight, const Tensor& out) {
  out.copy_(weight.has_value() ? x * *weight : x);
}

void scaled_by_count(const Tensor& x, int64_t count, const Tensor& out) {
  out.copy_(x * count);
}

at::Tensor last_summed(const Tensor& x, bool keepdim) {
  return x.sum(-1, keepdim);
}

at::Tensor last_summed_without_dim(const Tensor& x, bool /*keepdim*/) {
  return x.sum(-1);
}

at::Tensor in_mode(const Tensor& x, std::string_view /*mode*/, int64_t /*place*/) {
  return x.clone();
}

at::Tensor product(const Tensor& x, const Tensor& y) {
  return x * y;
}

at::Tensor places_or_sum(const Tensor& x, bool sums) {
  return sums ? x.sum() : x.nonzero();
}

at::Tensor places_or_two_sums(const Tensor& x, bool sums) {
  TORCH_CHECK(sums, "vmap: we do not support numbers of places that differ");
  return x.sum() * 2;
}

at::Tensor no_batches(const Tensor& /*x*/) {
  TORCH_CHECK(false, "a mistake in a batching rule");
}

at::Tensor constant(double fill) {
  return at::full({2}, fill);
}

at::Tensor other_constant() {
  return constant(3);
}

void counts_cpu(Tensor& buffer) {
  buffer.mul_(0.5).add_(1);
}

at::Tensor counted_product(const Tensor& x, Tensor& buffer) {
  faultytest::counts(buffer);
  return x * buffer;
}

struct WithoutVersion : torch::autograd::Function<WithoutVersion> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, Tensor buffer) {
    context->saved_data["buffer"] = buffer;
    return counted_product(x, buffer);
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context, torch::autograd::variable_list grads) {
    return {grads[0] * context->saved_data["buffer"].toTensor(), Tensor()};
  }
};

at::Tensor without_version_autograd(const Tensor& x, Tensor& buffer) {
  TORCH_CHECK(!x.is_complex() && !buffer.is_complex(), "without_version: real tensors");
  return WithoutVersion::apply(x, buffer);
}

at::Tensor without_version_meta(const Tensor& x, Tensor& /*buffer*/) {
  return like_meta(x);
}

std::tuple<at::Tensor, at::Tensor> one_for_two(const Tensor& x) {
  const Tensor twice = x * 2;
  return {twice, twice};
}

at::Tensor same_or_new_cpu(const Tensor& x, bool same) {
  return same ? x : x.clone();
}

at::Tensor same_or_new_meta(const Tensor& x, bool /*same*/) {
  return like_meta(x);
}

} // namespace faultytest::native
