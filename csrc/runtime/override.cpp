// SPDX-License-Identifier: BSD-3-Clause
#include "override.h"

#include <ATen/ThreadLocalPythonObjects.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/op_registration/adaption.h>
#include <c10/core/SafePyObject.h>
#include <torch/library.h>
#include <torchext/platform.h>
#include <torchext/quiet_override.h>

#include <atomic>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace torchext::runtime {
namespace {

// What a switch runs: a kernel, and what that kernel reaches when it calls the operator again.
struct Choice {
  std::shared_ptr<const Kernel> kernel;
  std::shared_ptr<const Choice> outer; // nullptr: the kernel that was there before
};

// The layers of all threads: while there are none, no thread needs to be asked.
std::atomic<int64_t> layers_alive{0};

// One entry of a thread's list, the newest first: what one switch chooses from here on.
//
// It is a Python object to PyTorch only, and holds none: of what at::ThreadLocalState hands on to
// other threads, only these are open to others and independent of one another. (Entries of
// ThreadLocalDebugInfo must be taken off in the reverse order, the profiler's among them.)
struct Layer : c10::SafePyObject {
  Layer(
      const Switch* of,
      std::shared_ptr<const Choice> choice,
      std::shared_ptr<Layer> next,
      const void* owner)
      : SafePyObject(nullptr, nullptr),
        of(of),
        choice(std::move(choice)),
        next(std::move(next)),
        owner(owner) {
    layers_alive.fetch_add(1, std::memory_order_relaxed);
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  ~Layer() {
    layers_alive.fetch_sub(1, std::memory_order_relaxed);
  }

  const Switch* of;
  std::shared_ptr<const Choice> choice;
  std::shared_ptr<Layer> next;
  const void* owner; // the Override that was entered; nullptr: a kernel that is running
};

using Objects = at::impl::ThreadLocalPythonObjects;

const std::string& slot() {
  static const auto* name = new std::string("torchext.override");
  return *name;
}

std::shared_ptr<Layer> newest_layer() {
  if (layers_alive.load(std::memory_order_relaxed) == 0 || !Objects::contains(slot())) {
    return nullptr;
  }
  return std::static_pointer_cast<Layer>(Objects::get(slot()));
}

// None is nullptr in the slot: torch 2.11 cannot take it off the table.
void set_newest_layer(std::shared_ptr<Layer> layer) {
  Objects::set(slot(), std::move(layer));
}

const std::shared_ptr<const Choice>* choice_of(const Switch* of, const Layer* newest) {
  for (const Layer* layer = newest; layer != nullptr; layer = layer->next.get()) {
    if (layer->of == of) {
      return &layer->choice;
    }
  }
  return nullptr;
}

// While a kernel runs, its switch chooses what is outside of it.
class Running {
 public:
  Running(const Switch* of, std::shared_ptr<const Choice> outer, std::shared_ptr<Layer> before)
      : before_(std::move(before)) {
    set_newest_layer(std::make_shared<Layer>(of, std::move(outer), before_, nullptr));
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    set_newest_layer(std::move(before_));
  }

 private:
  std::shared_ptr<Layer> before_;
};

} // namespace

class Switch {
 public:
  Switch(const c10::OperatorHandle& op, c10::DispatchKey key)
      : before_(op.getComputedKernelForDispatchKey(key)) {}

  void call(
      const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) const {
    const std::shared_ptr<Layer> newest = newest_layer();
    const auto* choice = choice_of(this, newest.get());
    if (choice == nullptr || *choice == nullptr) {
      before_.callBoxed(op, keys, stack);
      return;
    }
    const std::shared_ptr<const Choice> chosen = *choice;
    const Running running(this, chosen->outer, newest);
    // A kernel records nothing, whether or not its caller has seen to that.
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    chosen->kernel->run(op, stack);
  }

 private:
  c10::SafeKernelFunction before_;
};

namespace {

struct SwitchKernel final : c10::OperatorKernel {
  explicit SwitchKernel(const Switch* of) : of(of) {}

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) const {
    of->call(op, keys, stack);
  }

  const Switch* of;
};

// Kernels stay to the end of the process, so all of this is never destroyed.
struct Switches {
  std::mutex mutex;
  std::map<std::pair<std::string, c10::DispatchKey>, const Switch*> by_operator;
  std::vector<torch::Library> registrations;
};

Switches& switches() {
  static auto* all = new Switches;
  return *all;
}

// What the dispatcher's table says of the kernels that are registered here.
constexpr const char* kFile = "torchext.override";

// Whether a call reaches a switch: a kernel that was registered later stands above it.
bool runs_switch(const c10::OperatorHandle& op, c10::DispatchKey key) {
  std::istringstream table(op.dumpComputedTable());
  const std::string row = std::string(c10::toString(key)) + ": ";
  std::string line;
  while (std::getline(table, line)) {
    if (line.compare(0, row.size(), row) == 0) {
      return line.find(kFile) != std::string::npos;
    }
  }
  return false;
}

} // namespace

const Switch& installed(const c10::OperatorHandle& op, c10::DispatchKey key) {
  // A child must not find the mutex held by a thread that it has not.
  [[maybe_unused]] static const bool forks_safely =
      hold_while_forking([] { switches().mutex.lock(); }, [] { switches().mutex.unlock(); });
  const std::lock_guard lock(switches().mutex);
  const std::string name = toString(op.operator_name());
  const Switch*& found = switches().by_operator[{name, key}];
  if (found == nullptr || !runs_switch(op, key)) {
    auto made = std::make_unique<const Switch>(op, key);
    const QuietOverride quiet;
    const std::string space(op.operator_name().getNamespace().value());
    torch::Library library(torch::Library::IMPL, space, key, kFile, 0);
    library.impl(
        name.c_str(),
        torch::CppFunction::makeFromBoxedFunctor(std::make_unique<SwitchKernel>(made.get())));
    switches().registrations.push_back(std::move(library));
    found = made.release();
  }
  return *found;
}

void OperatorKernel::run(const c10::OperatorHandle&, torch::jit::Stack* stack) const {
  target_.callBoxed(stack);
}

Override::Override(const Switch& of, std::shared_ptr<const Kernel> kernel)
    : switch_(&of), kernel_(std::move(kernel)) {}

const Kernel* Override::kernel_of_its_own() const {
  return kernel_.use_count() == 1 ? kernel_.get() : nullptr;
}

void Override::let_go() {
  kernel_.reset();
}

void Override::enter() const {
  TORCH_INTERNAL_ASSERT(kernel_ != nullptr);
  std::shared_ptr<Layer> newest = newest_layer();
  const auto* outer = choice_of(switch_, newest.get());
  auto choice =
      std::make_shared<const Choice>(Choice{kernel_, outer != nullptr ? *outer : nullptr});
  set_newest_layer(std::make_shared<Layer>(switch_, std::move(choice), std::move(newest), this));
}

void Override::exit() const {
  const std::shared_ptr<Layer> newest = newest_layer();
  if (newest == nullptr || newest->owner != this) {
    throw std::logic_error(
        "an override is left on the thread that entered it, and the one entered last is left "
        "first");
  }
  set_newest_layer(newest->next);
}

} // namespace torchext::runtime
