// SPDX-License-Identifier: BSD-3-Clause
//
// Calls the operators of namespace myns from threads, without Python: `driver THREADS CALLS`.
//
// Every thread runs forward, backward and in-place calls on tensors of its own, on tensors that all
// share, backward through one shared graph, inference mode and autocast; the results are compared
// with those of one thread. `driver seeded` runs the seeded race instead.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/InferenceMode.h>
#include <myns/ops.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using at::Tensor;

std::atomic<int> mistakes{0};

void expect_close(const char* what, const Tensor& found, const Tensor& wanted) {
  if (!at::allclose(found, wanted)) {
    std::fprintf(stderr, "%s differs from one thread's\n", what);
    ++mistakes;
  }
}

Tensor leaf(const Tensor& values) {
  return values.detach().clone().set_requires_grad(true);
}

/// A function that uses every kind of kernel: iterators, rules, composites, in-place forms.
Tensor loss(const Tensor& x, const Tensor& weight) {
  Tensor y = myns::rms_norm(myns::mul(x, x), weight, 1e-6);
  y = myns::softmax(myns::add(y, myns::sin(x), 2), -1);
  y = myns::silu_and_mul(myns::cumsum(y, 0));
  Tensor z = myns::add(myns::sigmoid(y), y);
  myns::neg_(z);
  return myns::muladd(z, y, 0.5).sum() + myns::dot(y[0], y[0]) + myns::zero_out(y).sum();
}

std::vector<Tensor> gradients(const Tensor& result, const std::vector<Tensor>& inputs) {
  return torch::autograd::grad({result}, inputs, {}, /*retain_graph=*/true);
}

/// While it lives, autocast casts to bfloat16.
class Autocast {
 public:
  Autocast() {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::increment_nesting();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) {
      at::autocast::clear_cache();
    }
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
};

Tensor loss_in_autocast(const Tensor& x, const Tensor& weight) {
  const Autocast autocast;
  return loss(x.to(at::kFloat), weight.to(at::kFloat));
}

struct Expected {
  Tensor x, weight, loss, grad_x, grad_weight, loss_in_autocast;
};

void work(const Expected& expected, const Tensor& shared_x, const Tensor& shared_loss, int calls) {
  for (int i = 0; i < calls; ++i) {
    const Tensor x = leaf(expected.x), weight = leaf(expected.weight);
    const Tensor result = loss(x, weight);
    expect_close("a loss", result, expected.loss);
    const std::vector<Tensor> grads = gradients(result, {x, weight});
    expect_close("a gradient", grads[0], expected.grad_x);
    expect_close("a gradient of the weight", grads[1], expected.grad_weight);
    expect_close(
        "a gradient of the shared graph", gradients(shared_loss, {shared_x})[0], expected.grad_x);
    {
      const c10::InferenceMode guard;
      expect_close("a loss in inference mode", loss(expected.x, expected.weight), expected.loss);
    }
    expect_close(
        "a loss in autocast",
        loss_in_autocast(expected.x, expected.weight),
        expected.loss_in_autocast);
    Tensor out = at::empty({0}, expected.x.options());
    myns::mul_out(out, shared_x.detach(), expected.x);
    expect_close("an out= tensor", out, expected.x * expected.x);
  }
}

int run_threads(int count, int calls) {
  at::manual_seed(0);
  Expected expected;
  expected.x = at::rand({16, 32}, at::kDouble) + 0.5;
  expected.weight = at::rand({32}, at::kDouble) + 0.5;
  const Tensor shared_x = leaf(expected.x), shared_weight = leaf(expected.weight);
  const Tensor shared_loss = loss(shared_x, shared_weight);
  expected.loss = shared_loss.detach();
  expected.loss_in_autocast = loss_in_autocast(expected.x, expected.weight);
  const std::vector<Tensor> grads = gradients(shared_loss, {shared_x, shared_weight});
  expected.grad_x = grads[0];
  expected.grad_weight = grads[1];
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&] { work(expected, shared_x, shared_loss, calls); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::printf("%d threads, %d calls each, %d mistakes\n", count, calls, mistakes.load());
  return mistakes.load() == 0 ? 0 : 1;
}

int run_seeded() {
  const auto race = c10::Dispatcher::singleton()
                        .findSchemaOrThrow("seeded::race", "")
                        .typed<Tensor(const Tensor&)>();
  const Tensor x = at::ones({2});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) {
        race.call(x);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return 0;
}

} // namespace

int main(int count, char** arguments) {
  if (count == 3 && std::strcmp(arguments[1], "seeded") == 0) {
    if (dlopen(arguments[2], RTLD_NOW) == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 2;
    }
    return run_seeded();
  }
  if (count != 3) {
    std::fprintf(stderr, "usage: driver THREADS CALLS | driver seeded LIBRARY\n");
    return 2;
  }
  return run_threads(std::atoi(arguments[1]), std::atoi(arguments[2]));
}
