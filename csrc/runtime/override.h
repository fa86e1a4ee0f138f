// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels that take the place of others for some threads and for a time: torchext.override.
//
// An operator and a dispatch key have one Switch from the first override on, a boxed kernel above
// the one that was there. What it runs is a matter of the thread: its layers, a list that nobody
// changes, which autograd and at::launch hand on to threads that work for this one.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/DispatchKey.h>

#include <memory>

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
};

/// A kernel that calls another operator, which takes the same arguments.
class OperatorKernel final : public Kernel {
 public:
  explicit OperatorKernel(const c10::OperatorHandle& target) : target_(target) {}
  void run(const c10::OperatorHandle& op, torch::jit::Stack* stack) const override;

 private:
  c10::OperatorHandle target_;
};

class Switch;

/// The switch of an operator and a dispatch key: the same for all callers, and never removed. The
/// dispatcher does not let an operator be called on one thread while a kernel is registered on
/// another.
const Switch& installed(const c10::OperatorHandle& op, c10::DispatchKey key);

/// One override, which any thread may turn on and off, more than once too.
class Override {
 public:
  Override(const Switch& of, std::shared_ptr<const Kernel> kernel);

  /// From here on this thread runs the kernel, and in it what it ran before.
  void enter() const;

  /// Ends the last `enter` of this thread; throws where that was another override's.
  void exit() const;

  /// The kernel, where no thread is in the override and nothing else holds it; else nullptr.
  const Kernel* kernel_of_its_own() const;

  /// Ends its life: it cannot be entered again.
  void let_go();

 private:
  const Switch* switch_;
  std::shared_ptr<const Kernel> kernel_;
};

} // namespace torchext::runtime
