// SPDX-License-Identifier: BSD-3-Clause
//
// The two operators of the README without torchext, as an extension of torch is usually written: no
// in-place and out= form, no rule for vmap, no tangents. benchmarks/build.py builds it.
#include <torch/extension.h>

namespace {

at::Tensor relu2_cpu(const at::Tensor& self) {
  const at::Tensor from = self.contiguous();
  at::Tensor to = at::empty_like(from);
  AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "relu2", [&] {
    const scalar_t* in = from.const_data_ptr<scalar_t>();
    scalar_t* out = to.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < from.numel(); ++i) {
      out[i] = in[i] > 0 ? in[i] * in[i] : 0;
    }
  });
  return to;
}

at::Tensor relu2_meta(const at::Tensor& self) {
  return at::empty_like(self, at::MemoryFormat::Contiguous);
}

at::Tensor mul_kernel(const at::Tensor& self, const at::Tensor& other) {
  return at::mul(self, other);
}

at::Tensor call_relu2(const at::Tensor& self) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("by_hand::relu2", "")
                             .typed<at::Tensor(const at::Tensor&)>();
  return op.call(self);
}

at::Tensor call_mul(const at::Tensor& self, const at::Tensor& other) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("by_hand::mul", "Tensor")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  return op.call(self, other);
}

at::Tensor reduced(const at::Tensor& grad, const at::Tensor& like) {
  const at::Tensor real =
      !like.is_complex() && grad.is_complex() ? at::real(grad) : grad;
  return at::sum_to(real, like.sizes());
}

struct Relu2 : torch::autograd::Function<Relu2> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& self) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({self});
    return call_relu2(self);
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* ctx, torch::autograd::variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    return {grads[0] * 2 * saved[0].relu()};
  }
};

struct Mul : torch::autograd::Function<Mul> {
  static at::Tensor forward(
      torch::autograd::AutogradContext* ctx, const at::Tensor& self, const at::Tensor& other) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({self, other});
    return call_mul(self, other);
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* ctx, torch::autograd::variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    return {
        reduced(grads[0] * saved[1].conj(), saved[0]),
        reduced(grads[0] * saved[0].conj(), saved[1])};
  }
};

at::Tensor relu2_autograd(const at::Tensor& self) {
  return Relu2::apply(self);
}

at::Tensor mul_autograd(const at::Tensor& self, const at::Tensor& other) {
  return Mul::apply(self, other);
}

} // namespace

TORCH_LIBRARY(by_hand, m) {
  m.def("relu2(Tensor self) -> Tensor");
  m.def("mul.Tensor(Tensor self, Tensor other) -> Tensor");
}

TORCH_LIBRARY_IMPL(by_hand, CPU, m) {
  m.impl("relu2", relu2_cpu);
}

TORCH_LIBRARY_IMPL(by_hand, Meta, m) {
  m.impl("relu2", relu2_meta);
}

TORCH_LIBRARY_IMPL(by_hand, CompositeExplicitAutograd, m) {
  m.impl("mul.Tensor", mul_kernel);
}

TORCH_LIBRARY_IMPL(by_hand, Autograd, m) {
  m.impl("relu2", relu2_autograd);
  m.impl("mul.Tensor", mul_autograd);
}
