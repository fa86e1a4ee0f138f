// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels that take the place of others for some threads and for a time: torchext.override.
//
// An operator and a dispatch key have one Switch from the first override on, a boxed kernel above
// the one that was there. What it runs is a matter of the thread: see layers.h.
#pragma once

#include "layers.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/DispatchKey.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace torchext::runtime {

/// A kernel that calls another operator, which takes the same arguments.
class OperatorKernel final : public Kernel {
 public:
  explicit OperatorKernel(const c10::OperatorHandle& target) : target_(target) {}
  void run(const c10::OperatorHandle& op, torch::jit::Stack* stack) const override;
  std::string name() const override;

 private:
  c10::OperatorHandle target_;
};

/// One override, which any thread may turn on and off, more than once too.
class Override {
 public:
  Override(
      const c10::OperatorHandle& op, c10::DispatchKey key, std::shared_ptr<const Kernel> kernel);

  /// From here on this thread runs the kernel, and in it what it ran before. `place` is who leaves
  /// it again, if that is known: as a frame of Python's that has a `with`.
  void enter(uintptr_t place = 0) const;

  /// Ends the last `enter` of the place, else of this thread, else of the one thread that is in it;
  /// throws where there is none.
  void exit(uintptr_t place = 0) const;

  /// The kernel, where no thread is in the override and nothing else holds it; else nullptr.
  const Kernel* kernel_of_its_own() const;

  /// Ends its life: it cannot be entered again.
  void let_go();

 private:
  struct Entered {
    uintptr_t place;
    std::shared_ptr<Entry> entry;
  };

  Entered take_last(uintptr_t place) const;

  const Switch* switch_;
  bool makes_casts_;
  std::shared_ptr<const Kernel> kernel_;
  // Of Python's callers each has Python's lock, as who forks has.
  mutable std::mutex mutex_;
  mutable std::vector<Entered> entries_; // that have not ended
};

} // namespace torchext::runtime
