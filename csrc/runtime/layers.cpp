// SPDX-License-Identifier: BSD-3-Clause
#include "layers.h"

#include <ATen/ThreadLocalPythonObjects.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace torchext::runtime {
namespace {

// The layers of all threads: while there are none, no thread needs to be asked.
std::atomic<int64_t> layers_alive{0};

using Objects = at::impl::ThreadLocalPythonObjects;

const std::string& slot() {
  static const auto* name = new std::string("torchext.override");
  return *name;
}

// None is nullptr in the slot: torch 2.11 cannot take it off the table.
void set_newest_layer(std::shared_ptr<Layer> layer) {
  Objects::set(slot(), std::move(layer));
}

bool has_ended(const Layer& layer) {
  return layer.entry != nullptr && layer.entry->ended.load(std::memory_order_acquire);
}

// The list without the layers that have ended; itself where none has.
std::shared_ptr<Layer> without_ended(const std::shared_ptr<Layer>& layer) {
  if (layer == nullptr) {
    return nullptr;
  }
  std::shared_ptr<Layer> next = without_ended(layer->next);
  if (has_ended(*layer)) {
    return next;
  }
  if (next == layer->next) {
    return layer;
  }
  auto copy = std::make_shared<Layer>(layer->of, layer->entry, std::move(next));
  copy->outer = layer->outer;
  return copy;
}

// A switch of PyTorch's that is off on a thread while some of its overrides are on.
class Off {
 public:
  Off(bool (*is_on)(), void (*set)(bool)) : is_on_(is_on), set_(set) {}

  void hold_for(const std::shared_ptr<Entry>& entry) {
    was_on_ = entries_.empty() ? is_on_() : was_on_;
    entries_.push_back(entry);
    set_(false);
  }

  void end_after_the_last() {
    const auto is_over = [](const std::weak_ptr<Entry>& weak) {
      const std::shared_ptr<Entry> entry = weak.lock();
      return entry == nullptr || entry->ended.load(std::memory_order_acquire);
    };
    const bool was_held = !entries_.empty();
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), is_over), entries_.end());
    if (was_held && entries_.empty()) {
      set_(was_on_);
    }
  }

 private:
  bool (*is_on_)();
  void (*set_)(bool);
  std::vector<std::weak_ptr<Entry>> entries_; // of this thread
  bool was_on_ = true;
};

// What PyTorch computes once and keeps must not be computed by an override: the constants of a
// TorchScript function, when it is called first, and autocast's copies of parameters, which are for
// all threads.
thread_local Off optimizing(
    &torch::jit::getGraphExecutorOptimize, &torch::jit::setGraphExecutorOptimize);
thread_local Off caching_casts(
    &at::autocast::is_autocast_cache_enabled, &at::autocast::set_autocast_cache_enabled);

void drop_ended(const std::shared_ptr<Layer>& newest) {
  set_newest_layer(without_ended(newest));
  optimizing.end_after_the_last();
  caching_casts.end_after_the_last();
}

bool is_suspended(const Layer* newest) {
  for (const Layer* layer = newest; layer != nullptr; layer = layer->next.get()) {
    if (layer->of == nullptr) {
      return true;
    }
  }
  return false;
}

} // namespace

Layer::Layer(const Switch* of, std::shared_ptr<Entry> entry, std::shared_ptr<Layer> next)
    : SafePyObject(nullptr, nullptr), of(of), entry(std::move(entry)), next(std::move(next)) {
  layers_alive.fetch_add(1, std::memory_order_relaxed);
}

Layer::~Layer() {
  layers_alive.fetch_sub(1, std::memory_order_relaxed);
}

std::shared_ptr<Layer> newest_layer() {
  if (layers_alive.load(std::memory_order_relaxed) == 0 || !Objects::contains(slot())) {
    return nullptr;
  }
  auto newest = std::static_pointer_cast<Layer>(Objects::get(slot()));
  if (newest != nullptr && has_ended(*newest)) { // on another thread, or out of order
    drop_ended(newest);
    newest = std::static_pointer_cast<Layer>(Objects::get(slot()));
  }
  return newest;
}

const Layer* layer_of(const Switch* of, const Layer* newest) {
  const Layer* layer = newest;
  while (layer != nullptr && layer->of != nullptr) {
    const bool is_running = layer->of == of && layer->entry == nullptr;
    if (layer->of == of && !is_running && !has_ended(*layer)) {
      return layer;
    }
    layer = is_running ? layer->outer.get() : layer->next.get();
  }
  return nullptr;
}

std::shared_ptr<Entry> enter_layer(
    const Switch* of, std::shared_ptr<const Kernel> kernel, bool makes_casts) {
  std::shared_ptr<Layer> newest = newest_layer();
  if (is_suspended(newest.get())) {
    throw std::runtime_error(
        "torchext.override is entered by a program while it is compiled, exported or traced: the "
        "override would end with that, and the program would run without it. Enter it around the "
        "call of what was compiled");
  }
  auto entry = std::make_shared<Entry>(std::move(kernel));
  drop_ended(std::make_shared<Layer>(of, entry, std::move(newest)));
  optimizing.hold_for(entry);
  if (makes_casts) { // what is compiled has a guard on this switch, and is compiled again
    caching_casts.hold_for(entry);
  }
  return entry;
}

void end_layer(Entry& entry) {
  entry.ended.store(true, std::memory_order_release);
  if (Objects::contains(slot())) {
    drop_ended(std::static_pointer_cast<Layer>(Objects::get(slot())));
  }
}

Running::Running(const Layer& layer, std::shared_ptr<Layer> newest) : before_(std::move(newest)) {
  auto running = std::make_shared<Layer>(layer.of, nullptr, before_);
  running->outer = layer.next;
  set_newest_layer(std::move(running));
}

Running::~Running() {
  set_newest_layer(std::move(before_));
}

Suspended::Suspended() : before_(newest_layer()) {
  set_newest_layer(std::make_shared<Layer>(nullptr, nullptr, before_));
}

Suspended::~Suspended() {
  set_newest_layer(std::move(before_));
}

} // namespace torchext::runtime
