// SPDX-License-Identifier: BSD-3-Clause
//
// Which overrides hold on a thread: a list of layers that nobody changes, which autograd and
// at::launch hand on to threads that work for this one.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/SafePyObject.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace torchext::runtime {

/// What runs in place of an operator's kernel.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  /// Takes the operator's arguments off the stack and puts its results there. Threads share it.
  virtual void run(const c10::OperatorHandle& op, torch::jit::Stack* stack) const = 0;

  /// What errors call it.
  virtual std::string name() const = 0;
};

class Switch;

/// One `enter` of an override: when it has ended it holds nowhere, on whatever thread it ended.
struct Entry {
  explicit Entry(std::shared_ptr<const Kernel> kernel)
      : kernel(std::move(kernel)), thread(std::this_thread::get_id()) {}

  const std::shared_ptr<const Kernel> kernel;
  const std::thread::id thread;
  std::atomic<bool> ended{false};
};

/// One layer of a thread's list, the newest first.
//
// It is a Python object to PyTorch only, and holds none: of what at::ThreadLocalState hands on to
// other threads, only these are open to others and independent of one another. (Entries of
// ThreadLocalDebugInfo must be taken off in the reverse order, the profiler's among them.)
struct Layer : c10::SafePyObject {
  Layer(const Switch* of, std::shared_ptr<Entry> entry, std::shared_ptr<Layer> next);
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  ~Layer();

  const Switch* of;             // nullptr: no override below holds
  std::shared_ptr<Entry> entry; // nullptr: a kernel of the switch is running
  std::shared_ptr<Layer> next;
  std::shared_ptr<Layer> outer; // while one runs, where its switch goes on looking
};

/// The thread's list; nullptr where no override is on.
std::shared_ptr<Layer> newest_layer();

/// The layer whose kernel a switch runs; nullptr: the kernel that was there before.
const Layer* layer_of(const Switch* of, const Layer* newest);

/// From here on this thread runs the kernel; throws while overrides are suspended. A copy in
/// another dtype may be made of what `makes_casts`.
std::shared_ptr<Entry> enter_layer(
    const Switch* of, std::shared_ptr<const Kernel> kernel, bool makes_casts);

void end_layer(Entry& entry);

/// While it lives, a switch of this thread chooses what is outside of the layer that it runs.
class Running {
 public:
  Running(const Layer& layer, std::shared_ptr<Layer> newest);
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running();

 private:
  std::shared_ptr<Layer> before_;
};

/// While it lives, no override holds on this thread, and none can be entered.
class Suspended {
 public:
  Suspended();
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;
  ~Suspended();

 private:
  std::shared_ptr<Layer> before_;
};

} // namespace torchext::runtime
