// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/precompiled.h>

#include <tuple>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <overloadtest/kernels.h>

namespace kernels = overloadtest::native;

#define GELU(name, approximate)                                                       \
  at::Tensor kernels::gelu_##name(const at::Tensor& x) {                              \
    return at::gelu(x, approximate);                                                  \
  }                                                                                   \
  at::Tensor& kernels::gelu_##name##_(at::Tensor& x) {                                \
    return at::gelu_(x, approximate);                                                 \
  }                                                                                   \
  at::Tensor& kernels::gelu_##name##_out(const at::Tensor& x, at::Tensor& out) {      \
    TORCH_CHECK(out.scalar_type() == x.scalar_type());                                \
    out.resize_(x.sizes()).copy_(at::gelu(x, approximate));                           \
    return out;                                                                       \
  }                                                                                   \
  void kernels::gelu_##name##_into(const at::Tensor& x, const at::Tensor& out) {      \
    out.copy_(at::gelu(x, approximate));                                              \
  }
GELU(exact, "none")
GELU(tanh, "tanh")
#undef GELU

at::Tensor& kernels::answer_(at::Tensor& x) {
  return x.fill_(42);
}

at::Tensor& kernels::answer_out(const at::Tensor& x, at::Tensor& out) {
  return out.resize_(x.sizes()).fill_(42);
}

at::Tensor& kernels::like_x_out(const at::Tensor& x, at::Tensor& out) {
  out.resize__symint(x.sym_sizes());
  return out;
}

#define WAVE(name)                                                                    \
  void overloadtest::meta::structured_wave_##name::meta(const at::Tensor& x) {        \
    build_borrowing_unary_float_op(maybe_get_output(), x);                            \
  }                                                                                   \
  void kernels::structured_wave_##name::impl(const at::Tensor& x, const at::Tensor& out) { \
    out.copy_(at::name(x));                                                           \
  }
WAVE(sin)
WAVE(cos)
WAVE(tanh)
#undef WAVE

#define SCALE(name)                                                                   \
  at::Tensor kernels::scale_##name(const at::Tensor& x, double by) {                  \
    return x.mul(by);                                                                 \
  }                                                                                   \
  at::Tensor& kernels::scale_##name##_(at::Tensor& x, double by) {                    \
    return x.mul_(by);                                                                \
  }
SCALE(double)
SCALE(triple)
#undef SCALE

#define PARTS(name)                                                                   \
  std::tuple<at::Tensor, at::Tensor> kernels::parts_##name(const at::Tensor& x) {     \
    return {at::name(x), x - at::name(x)};                                            \
  }
PARTS(floor)
PARTS(ceil)
#undef PARTS

#define TRACK(name)                                                                   \
  at::Tensor kernels::track_##name(const at::Tensor& x, at::Tensor& seen) {           \
    seen.add_(1);                                                                     \
    return at::name(x);                                                               \
  }
TRACK(sum)
TRACK(max)
#undef TRACK

at::Tensor kernels::lift_ceil(const at::Tensor& x) {
  return at::ceil(x);
}

#define MADE(name, value)                                                             \
  at::Tensor kernels::made_##name##_symint(                                           \
      c10::SymIntArrayRef size,                                                       \
      std::optional<at::ScalarType> dtype,                                            \
      std::optional<at::Layout> layout,                                               \
      std::optional<at::Device> device,                                               \
      std::optional<bool> pin_memory) {                                               \
    return at::full_symint(size, value, dtype.value_or(at::kFloat), layout, device, pin_memory); \
  }                                                                                   \
  at::Tensor kernels::made_like_##name(                                               \
      const at::Tensor& x,                                                            \
      std::optional<at::ScalarType> dtype,                                            \
      std::optional<at::Layout> layout,                                               \
      std::optional<at::Device> device,                                               \
      std::optional<bool> pin_memory) {                                               \
    return at::full_like(x, value, dtype, layout, device, pin_memory, std::nullopt);  \
  }
MADE(sevens, 7)
MADE(eights, 8)
#undef MADE
