// SPDX-License-Identifier: BSD-3-Clause
//
// Every kernel refuses a tensor that is not on the CPU: what reaches it was copied.
#include <torchext/precompiled.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <fallbacktest/kernels.h>
#include <torchext/cpu_fallback.h>

#include <tuple>
#include <utility>

namespace {

const at::Tensor& on_cpu(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_cpu(), "a kernel of the CPU was given a tensor of ", tensor.device());
  return tensor;
}

} // namespace

at::Tensor fallbacktest::native::total(
    const at::Tensor& x,
    const ::std::optional<at::Tensor>& maybe,
    at::TensorList some,
    const c10::List<::std::optional<at::Tensor>>& holes) {
  at::Tensor sum = on_cpu(x).clone();
  if (maybe.has_value()) {
    sum.add_(on_cpu(*maybe));
  }
  for (const at::Tensor& tensor : some) {
    sum.add_(on_cpu(tensor));
  }
  for (const ::std::optional<at::Tensor>& tensor : holes) {
    if (tensor.has_value()) {
      sum.add_(on_cpu(*tensor), -1);
    }
  }
  return sum;
}

// A dictionary and a tuple: each entry, the pair's product and x together.
void fallbacktest::native::named_total(
    const c10::OperatorHandle& /*op*/, torch::jit::Stack* stack) {
  const c10::IValue pair = torch::jit::pop(*stack);
  const c10::IValue named = torch::jit::pop(*stack);
  const at::Tensor x = on_cpu(torch::jit::pop(*stack).toTensor());
  const auto& elements = pair.toTupleRef().elements();
  const at::Tensor product = on_cpu(elements[0].toTensor()) * elements[1].toInt();
  c10::Dict<std::string, at::Tensor> sums;
  for (const auto& item : c10::impl::toTypedDict<std::string, at::Tensor>(named.toGenericDict())) {
    sums.insert(item.key(), on_cpu(item.value()) + product + x);
  }
  stack->emplace_back(std::move(sums));
}

::std::tuple<at::Tensor, at::Tensor> fallbacktest::native::halves(const at::Tensor& x) {
  const int64_t half = on_cpu(x).size(0) / 2;
  return {x.narrow(0, 0, half).clone(), x.narrow(0, half, x.size(0) - half).clone()};
}

::std::vector<at::Tensor> fallbacktest::native::rows(const at::Tensor& x) {
  ::std::vector<at::Tensor> found;
  for (int64_t i = 0; i < on_cpu(x).size(0); ++i) {
    found.push_back(x[i].clone());
  }
  return found;
}

::std::tuple<double, int64_t, at::Tensor> fallbacktest::native::norms(const at::Tensor& x) {
  return {on_cpu(x).abs().sum().item<double>(), x.count_nonzero().item<int64_t>(), x.norm()};
}

at::Tensor& fallbacktest::native::accumulate_(at::Tensor& self, const at::Tensor& other) {
  on_cpu(self).add_(on_cpu(other));
  return self;
}

// In this order: where they overlap, what was written first is read and overwritten.
void fallbacktest::native::write_both(
    at::Tensor& first, at::Tensor& second, const at::Tensor& read, double value) {
  // By memory, so that a tensor that overlaps itself can be written to as well.
  on_cpu(first).as_strided({1}, {1}, first.storage_offset()).fill_(value);
  on_cpu(second).as_strided({1}, {1}, second.storage_offset()).add_(on_cpu(read).sum());
}

void fallbacktest::native::number_all(at::TensorList tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    on_cpu(tensors[i]).fill_(static_cast<double>(i));
  }
}

at::Tensor& fallbacktest::native::outer_out(const at::Tensor& x, at::Tensor& out) {
  return at::outer_out(out, on_cpu(x), x);
}

// Gives its result strides that are not those of resize_.
at::Tensor& fallbacktest::native::channels_out(const at::Tensor& x, at::Tensor& out) {
  on_cpu(out).resize_(on_cpu(x).sizes(), at::MemoryFormat::ChannelsLast);
  return out.copy_(x);
}

void fallbacktest::native::fail_halfway(at::Tensor& x) {
  on_cpu(x).fill_(7);
  TORCH_CHECK(false, "this kernel fails");
}

bool fallbacktest::native::shares_memory(const at::Tensor& x, const at::Tensor& other) {
  torch::jit::Stack stack{x, other};
  torchext::cpu_fallback(
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::is_set_to", ""), &stack);
  return stack.back().toBool();
}

at::Tensor fallbacktest::native::zeros_there(const at::Tensor& x, at::Device device) {
  TORCH_CHECK(device.is_cpu(), "a kernel of the CPU was asked for a tensor of ", device);
  return at::zeros(on_cpu(x).sizes(), x.options().device(device));
}

at::Tensor fallbacktest::native::sum_of_any(const at::Tensor& x, const at::Tensor& y) {
  return on_cpu(x) + on_cpu(y);
}

at::Tensor fallbacktest::native::scaled(const at::Tensor& x, const at::Tensor& factor) {
  return on_cpu(x) * on_cpu(factor);
}

// autocast has a policy for mm
at::Tensor fallbacktest::native::product(const at::Tensor& x, const at::Tensor& y) {
  return at::mm(on_cpu(x), on_cpu(y));
}
