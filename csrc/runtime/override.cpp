// SPDX-License-Identifier: BSD-3-Clause
#include "override.h"

#include "contract.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/op_registration/adaption.h>
#include <torch/library.h>
#include <torchext/generated/quiet_override.h>
#include <torchext/platform.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace torchext::runtime {

// What an operator and a dispatch key have from the first override on, in all threads.
class Switch {
 public:
  Switch(c10::OperatorHandle op, c10::DispatchKey key) : op_(std::move(op)), key_(key) {}

  void call(const FormerKernel& former, c10::DispatchKeySet keys, torch::jit::Stack* stack) const {
    const std::shared_ptr<Layer> newest = newest_layer();
    const Layer* layer = layer_of(this, newest.get());
    if (layer == nullptr) {
      former.call_boxed(op_, keys, stack);
      return;
    }
    const std::shared_ptr<const Kernel> kernel = layer->entry->kernel;
    const Running running(*layer, newest);
    // A kernel records nothing, whether or not its caller has seen to that.
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const size_t count = op_.schema().arguments().size();
    const Call made{op_, key_, keys, former, torch::jit::last(*stack, count).vec()};
    const Contract contract(made, *kernel);
    kernel->run(op_, stack);
    contract.fulfil(*stack);
  }

  const c10::OperatorHandle& op() const {
    return op_;
  }

  c10::DispatchKey key() const {
    return key_;
  }

 private:
  c10::OperatorHandle op_;
  c10::DispatchKey key_;
};

namespace {

// A registration of a switch, above the kernel that the dispatcher had when it was made.
class Place final : public c10::OperatorKernel, public FormerKernel {
 public:
  explicit Place(const Switch* of)
      : switch_(of), below_(of->op().getComputedKernelForDispatchKey(of->key())) {}

  void operator()(
      const c10::OperatorHandle&, c10::DispatchKeySet keys, torch::jit::Stack* stack) const {
    switch_->call(*this, keys, stack);
  }

  void call_boxed(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack)
      const override;

 private:
  // Whether the error says that the kernel below was removed, as a torch.library.Library removes
  // its kernels at its end: PyTorch does not say it otherwise.
  bool is_of_removed_kernel(const c10::Error& error) const {
    const std::string& said = error.msg();
    return said.find("invalidated") != std::string::npos &&
           said.find(below_.debug()) != std::string::npos;
  }

  const Place& successor() const;

  const Switch* switch_;
  c10::SafeKernelFunction below_;
  mutable c10::intrusive_ptr<Place> successor_; // once the kernel below is gone
};

struct Placed {
  c10::intrusive_ptr<Place> place; // which may be running when its registration ends
  torch::Library registration;
};

// Switches stay to the end of the process, so all of this is never destroyed.
struct Switches {
  std::mutex mutex;
  std::map<std::pair<std::string, c10::DispatchKey>, std::unique_ptr<const Switch>> by_operator;
  std::map<const Switch*, std::vector<Placed>> placed; // the newest last
};

Switches& switches() {
  static auto* all = new Switches;
  return *all;
}

// What the dispatcher's table says of the kernels that are registered here.
constexpr const char* kFile = "torchext.override";

// Whether a call reaches a switch: a kernel that was registered later stands above it.
bool runs_switch(const Switch& of) {
  std::istringstream table(of.op().dumpComputedTable());
  const std::string row = std::string(c10::toString(of.key())) + ": ";
  std::string line;
  while (std::getline(table, line)) {
    if (line.compare(0, row.size(), row) == 0) {
      return line.find(kFile) != std::string::npos;
    }
  }
  return false;
}

// The dispatcher does not let an operator be called on one thread while a kernel is registered on
// another.
Placed placed_above_all(const Switch* of) {
  auto owned = std::make_unique<Place>(of);
  Place* const place = owned.get();
  const QuietOverride quiet;
  const c10::OperatorName& name = of->op().operator_name();
  torch::Library library(
      torch::Library::IMPL, std::string(name.getNamespace().value()), of->key(), kFile, 0);
  library.impl(toString(name).c_str(), torch::CppFunction::makeFromBoxedFunctor(std::move(owned)));
  return {c10::intrusive_ptr<Place>::reclaim_copy(place), std::move(library)};
}

// The switch of an operator and a dispatch key: the same for all callers, and never removed.
const Switch& installed(const c10::OperatorHandle& op, c10::DispatchKey key) {
  // A child must not find the mutex held by a thread that it has not.
  [[maybe_unused]] static const bool forks_safely =
      hold_while_forking([] { switches().mutex.lock(); }, [] { switches().mutex.unlock(); });
  const std::lock_guard lock(switches().mutex);
  auto& found = switches().by_operator[{toString(op.operator_name()), key}];
  if (found == nullptr) {
    found = std::make_unique<const Switch>(op, key);
  }
  if (!runs_switch(*found)) {
    switches().placed[found.get()].push_back(placed_above_all(found.get()));
  }
  return *found;
}

// Instead of a place whose kernel below is gone: one above what the dispatcher has without any.
const Place& Place::successor() const {
  const std::lock_guard lock(switches().mutex);
  if (successor_ == nullptr) {
    std::vector<Placed>& placed = switches().placed[switch_];
    for (Placed& each : placed) {
      each.registration.reset();
    }
    placed.push_back(placed_above_all(switch_));
    successor_ = placed.back().place;
  }
  return *successor_;
}

void Place::call_boxed(
    const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) const {
  const size_t size = stack->size();
  try {
    below_.callBoxed(op, keys, stack);
    return;
  } catch (const c10::Error& error) {
    if (stack->size() != size || !is_of_removed_kernel(error)) {
      throw;
    }
  }
  successor().call_boxed(op, keys, stack);
}

// Whether `Tensor.to` calls it.
bool makes_casts(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  return name == "aten::_to_copy" || name == "aten::copy_" || name == "aten::empty" ||
         name == "aten::empty_strided";
}

} // namespace

void OperatorKernel::run(const c10::OperatorHandle&, torch::jit::Stack* stack) const {
  target_.callBoxed(stack);
}

std::string OperatorKernel::name() const {
  return toString(target_.operator_name());
}

Override::Override(
    const c10::OperatorHandle& op, c10::DispatchKey key, std::shared_ptr<const Kernel> kernel)
    : switch_(&installed(op, key)), makes_casts_(makes_casts(op)), kernel_(std::move(kernel)) {}

const Kernel* Override::kernel_of_its_own() const {
  const std::lock_guard lock(mutex_);
  // A thread that is gone without having left holds nothing any more.
  const auto is_only_here = [](const Entered& e) { return e.entry.use_count() == 1; };
  const bool is_left = std::all_of(entries_.begin(), entries_.end(), is_only_here);
  const auto own = static_cast<long>(1 + entries_.size());
  return is_left && kernel_.use_count() == own ? kernel_.get() : nullptr;
}

void Override::let_go() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  kernel_.reset();
}

void Override::enter(uintptr_t place) const {
  TORCH_INTERNAL_ASSERT(kernel_ != nullptr);
  std::shared_ptr<Entry> entry = enter_layer(switch_, kernel_, makes_casts_);
  const std::lock_guard lock(mutex_);
  entries_.push_back({place, std::move(entry)});
}

void Override::exit(uintptr_t place) const {
  end_layer(*take_last(place).entry);
}

// As tasks and generators do, a block may end before one that was begun later, or on another thread.
Override::Entered Override::take_last(uintptr_t place) const {
  const std::lock_guard lock(mutex_);
  const auto last = [this](const auto& is_it) {
    return std::find_if(entries_.rbegin(), entries_.rend(), is_it);
  };
  const auto is_on = [](std::thread::id thread) {
    return [thread](const Entered& e) { return e.entry->thread == thread; };
  };
  auto found = last([place](const Entered& e) { return place != 0 && e.place == place; });
  if (found == entries_.rend()) {
    found = last(is_on(std::this_thread::get_id()));
  }
  if (found == entries_.rend() && !entries_.empty()) {
    found = entries_.rbegin();
    if (!std::all_of(entries_.begin(), entries_.end(), is_on(found->entry->thread))) {
      throw std::logic_error("an override is left on a thread that is not in it, and several are");
    }
  }
  if (found == entries_.rend()) {
    throw std::logic_error("an override is left that nobody is in");
  }
  Entered entered = *found;
  entries_.erase(std::next(found).base());
  return entered;
}

} // namespace torchext::runtime
