// SPDX-License-Identifier: BSD-3-Clause
//
// Calls the operators of namespace myns from threads, without Python: `driver THREADS CALLS`.
//
// The threads make the process's first calls; then each runs forward, backward and in-place calls on
// tensors of its own, on tensors that all share, backward through one shared graph, and through one
// that the first to pass releases, inference mode and autocast; on the test device, where operators
// fall back to the CPU; and some of them in an override that the others have not. The results are
// compared with those of one thread. `driver seeded` runs the seeded race instead, `driver counted`
// what only looks like one: torch, which is not instrumented, lets go of a tensor by its count of
// references, and another thread, which does so last, frees it.
#include "override.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/InferenceMode.h>
#include <myns/ops.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/library.h>
#include <torchext/cpu_fallback.h>

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
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

/// What one thread finds of its own leaves.
struct Found {
  Tensor loss, grad_x, grad_weight, loss_in_autocast;
};

Found find(const Tensor& x_values, const Tensor& weight_values) {
  const Tensor x = leaf(x_values), weight = leaf(weight_values);
  const Tensor result = loss(x, weight);
  const std::vector<Tensor> grads = gradients(result, {x, weight});
  return {result.detach(), grads[0], grads[1], loss_in_autocast(x_values, weight_values)};
}

void expect_same(const Found& found, const Found& wanted) {
  expect_close("a loss", found.loss, wanted.loss);
  expect_close("a gradient", found.grad_x, wanted.grad_x);
  expect_close("a gradient of the weight", found.grad_weight, wanted.grad_weight);
  expect_close("a loss in autocast", found.loss_in_autocast, wanted.loss_in_autocast);
}

struct Expected : Found {
  Tensor x, weight;
};

/// Call a function in this many threads at once, with the number of each.
template <typename Function>
void in_threads(int count, const Function& function) {
  std::atomic<int> waiting{count};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      --waiting;
      while (waiting.load() > 0) {
      }
      function(i);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

/// Backward by every thread through one graph that none retains: who comes late is refused.
void release_one_graph(const Expected& expected, int count) {
  const Tensor x = leaf(expected.x);
  const Tensor result = loss(x, expected.weight);
  std::atomic<int> passed{0};
  in_threads(count, [&](int) {
    try {
      const Tensor grad = torch::autograd::grad({result}, {x})[0];
      expect_close("a gradient of the released graph", grad, expected.grad_x);
      ++passed;
    } catch (const c10::Error& error) {
      if (std::strstr(error.what(), "second time") == nullptr) {
        std::fprintf(stderr, "%s\n", error.what());
        ++mistakes;
      }
    }
  });
  if (passed.load() == 0) {
    std::fprintf(stderr, "no thread passed through the graph\n");
    ++mistakes;
  }
}

/// Runs an operator's kernel of ATen's, on the thread that enters it.
class Overriding {
 public:
  explicit Overriding(const torchext::runtime::Override& override) : override_(override) {
    override_.enter();
  }
  Overriding(const Overriding&) = delete;
  Overriding& operator=(const Overriding&) = delete;
  ~Overriding() {
    override_.exit();
  }

 private:
  const torchext::runtime::Override& override_;
};

torchext::runtime::Override multiplication_of_aten() {
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto own = dispatcher.findSchemaOrThrow("myns::mul", "Tensor");
  const auto other = dispatcher.findSchemaOrThrow("aten::mul", "Tensor");
  return {own, c10::DispatchKey::CPU, std::make_shared<torchext::runtime::OperatorKernel>(other)};
}

/// The loss on the device, without gradients: its backward would run in threads of autograd's, which
/// synchronize in a library that is not instrumented.
void find_on_device(const Expected& expected, c10::DeviceIndex index) {
  const at::Device device(at::kPrivateUse1, index);
  const Tensor x = expected.x.to(device), weight = expected.weight.to(device);
  expect_close("a loss on the device", loss(x, weight).cpu(), expected.loss);
  if (!at::rand({4}, x.options()).lt(1).all().item<bool>()) {
    std::fprintf(stderr, "random numbers of the device are not below 1\n");
    ++mistakes;
  }
}

void work_on_devices(
    const Expected& expected, const torchext::runtime::Override& override, int thread, int calls) {
  const int64_t mode = torchext::push_fallback_mode(torchext::FallbackMode::kSilent);
  for (int i = 0; i < calls; ++i) {
    find_on_device(expected, static_cast<c10::DeviceIndex>((thread + i) % 2));
    if (thread % 2 == 0) {
      const Overriding own_kernel(override);
      expect_same(find(expected.x, expected.weight), expected);
    } else {
      expect_same(find(expected.x, expected.weight), expected);
    }
  }
  torchext::pop_fallback_mode(mode);
}

void work(const Expected& expected, const Tensor& shared_x, const Tensor& shared_loss, int calls) {
  for (int i = 0; i < calls; ++i) {
    expect_same(find(expected.x, expected.weight), expected);
    expect_close(
        "a gradient of the shared graph", gradients(shared_loss, {shared_x})[0], expected.grad_x);
    {
      const c10::InferenceMode guard;
      expect_close("a loss in inference mode", loss(expected.x, expected.weight), expected.loss);
    }
    Tensor out = at::empty({0}, expected.x.options());
    myns::mul_out(out, shared_x.detach(), expected.x);
    expect_close("an out= tensor", out, expected.x * expected.x);
  }
}

int run_threads(int count, int calls) {
  c10::register_privateuse1_backend("torchext");
  at::manual_seed(0);
  Expected expected;
  expected.x = at::rand({16, 32}, at::kDouble) + 0.5;
  expected.weight = at::rand({32}, at::kDouble) + 0.5;
  std::vector<Found> first(static_cast<size_t>(count));
  in_threads(count, [&](int i) { first[i] = find(expected.x, expected.weight); });
  static_cast<Found&>(expected) = find(expected.x, expected.weight);
  for (const Found& found : first) {
    expect_same(found, expected);
  }
  const Tensor shared_x = leaf(expected.x), shared_weight = leaf(expected.weight);
  const Tensor shared_loss = loss(shared_x, shared_weight);
  in_threads(count, [&](int) { work(expected, shared_x, shared_loss, calls); });
  for (int i = 0; i < calls; ++i) {
    release_one_graph(expected, count);
  }
  const torchext::runtime::Override override = multiplication_of_aten();
  in_threads(count, [&](int i) { work_on_devices(expected, override, i, calls); });
  std::printf("%d threads, %d calls each, %d mistakes\n", count, calls, mistakes.load());
  return mistakes.load() == 0 ? 0 : 1;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&torchext::cpu_fallback<>>());
}

int run_seeded() {
  const auto race = c10::Dispatcher::singleton()
                        .findSchemaOrThrow("seeded::race", "")
                        .typed<Tensor(const Tensor&)>();
  const Tensor x = at::ones({2});
  in_threads(8, [&](int) {
    for (int i = 0; i < 100; ++i) {
      race.call(x);
    }
  });
  return 0;
}

/// A mutex of the tensor is taken in torch, which the sanitizer sees, before torch drops a reference,
/// which it does not: without `ignore_noninstrumented_modules` it takes the release for a race.
int run_counted() {
  Tensor last = at::ones({2}).requires_grad_();
  torch::autograd::SavedVariable saved(last, /*is_output=*/false);
  std::atomic<bool> is_dropped = false;
  std::thread other([&saved, &is_dropped, own = last]() mutable {
    mistakes += own._fw_grad(/*level=*/0).defined();
    saved.reset_data();
    own.unsafeReleaseTensorImpl(); // counts nothing here, which the sanitizer would see
    is_dropped.store(true, std::memory_order_relaxed);
  });
  while (!is_dropped.load(std::memory_order_relaxed)) {
    std::this_thread::yield();
  }
  c10::raw::intrusive_ptr::decref(last.unsafeGetTensorImpl()); // for `own`
  last.reset();
  other.join();
  return mistakes == 0 ? 0 : 1;
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
  if (count == 2 && std::strcmp(arguments[1], "counted") == 0) {
    return run_counted();
  }
  if (count != 3) {
    std::fprintf(stderr, "usage: driver THREADS CALLS | driver seeded LIBRARY | driver counted\n");
    return 2;
  }
  return run_threads(std::atoi(arguments[1]), std::atoi(arguments[2]));
}
