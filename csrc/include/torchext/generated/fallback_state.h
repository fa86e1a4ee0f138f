// SPDX-License-Identifier: BSD-3-Clause
//
// What the CPU fallback does beside computing: its mode, which is the thread's, its statistics and
// its warnings, which exist once in a process however many libraries are loaded.
#pragma once

#include <ATen/ThreadLocalPythonObjects.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/SafePyObject.h>
#include <c10/util/Exception.h>
#include <torch/library.h>
#include <torchext/platform.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace torchext {
inline namespace v1 {

enum class FallbackMode { kSilent, kWarn, kError };

/// The mode of a name; nothing for what is no name of one.
inline std::optional<FallbackMode> parse_fallback_mode(std::string_view name) {
  if (name == "silent") {
    return FallbackMode::kSilent;
  }
  if (name == "warn") {
    return FallbackMode::kWarn;
  }
  if (name == "error") {
    return FallbackMode::kError;
  }
  return std::nullopt;
}

/// What the fallback of one operator has cost: calls that came back, the bytes that they copied to
/// the CPU and back to the device, and the nanoseconds from call to return, copies included.
struct FallbackCounts {
  int64_t calls = 0;
  int64_t bytes_to_cpu = 0;
  int64_t bytes_to_device = 0;
  int64_t nanoseconds = 0;
};

/// The state of a process; hold the mutex. The names are those of operators with overload.
struct FallbackState {
  std::mutex mutex;
  std::map<std::string, FallbackCounts> by_operator;
  std::set<std::pair<std::string, std::string>> warned; // operator and device type
  std::optional<FallbackMode> mode;                     // of threads that set none
  int64_t entries = 0;                                  // how often a mode was set
  // Makes a warning one of Python's, of a line in a file; nullptr where there is no Python.
  void (*warn)(const std::string& message, const std::string& file, int64_t line) = nullptr;
};

namespace detail {

/// An entry of the thread's list of modes, the newest first. It is a Python object to PyTorch only,
/// and holds none: so at::ThreadLocalState hands it on to the threads that work for this one.
struct FallbackModeLayer : c10::SafePyObject {
  FallbackModeLayer(FallbackMode mode, int64_t entry, std::shared_ptr<FallbackModeLayer> outer)
      : SafePyObject(nullptr, nullptr), mode(mode), entry(entry), outer(std::move(outer)) {}

  FallbackMode mode;
  int64_t entry; // which push_fallback_mode it is of
  std::shared_ptr<FallbackModeLayer> outer;
};

inline const std::string& fallback_mode_slot() {
  static const auto* name = new std::string("torchext.fallback.mode.v1");
  return *name;
}

inline std::shared_ptr<FallbackModeLayer> newest_fallback_mode() {
  using Objects = at::impl::ThreadLocalPythonObjects;
  if (!Objects::contains(fallback_mode_slot())) {
    return nullptr;
  }
  return std::static_pointer_cast<FallbackModeLayer>(Objects::get(fallback_mode_slot()));
}

/// The list without an entry; nullptr too where that was all. Throws std::logic_error where it is
/// not in the list.
inline std::shared_ptr<FallbackModeLayer> without_fallback_mode(
    const std::shared_ptr<FallbackModeLayer>& newest, int64_t entry) {
  if (newest == nullptr) {
    throw std::logic_error("a mode of the fallback is left on the thread that entered it");
  }
  if (newest->entry == entry) {
    return newest->outer;
  }
  return std::make_shared<FallbackModeLayer>(
      newest->mode, newest->entry, without_fallback_mode(newest->outer, entry));
}

inline FallbackMode fallback_mode_of_environment() {
  const char* name = std::getenv("TORCHEXT_FALLBACK");
  if (name == nullptr || *name == '\0') {
    return FallbackMode::kWarn;
  }
  const std::optional<FallbackMode> mode = parse_fallback_mode(name);
  TORCH_CHECK_VALUE(
      mode.has_value(), "TORCHEXT_FALLBACK is '", name, "', and not silent, warn or error");
  return *mode;
}

// The dispatcher is the one place where libraries of any compiler and loader flags meet, so an
// operator hands the address on. Its overload names the layout of what lies there.
inline constexpr const char* kStateOperator = "torchext::_fallback_state";
inline constexpr const char* kStateLayout = "v1";

inline FallbackState& own_fallback_state() {
  static auto* state = new FallbackState; // never destroyed: kernels may run at exit
  return *state;
}

inline int64_t address_of_own_state() {
  // A child must not find the mutex held by a thread that it has not.
  [[maybe_unused]] static const bool forks_safely = hold_while_forking(
      [] { own_fallback_state().mutex.lock(); }, [] { own_fallback_state().mutex.unlock(); });
  return reinterpret_cast<int64_t>(&own_fallback_state());
}

inline FallbackState& find_fallback_state() {
  const c10::OperatorName name(kStateOperator, kStateLayout);
  // Composite kernels stand in the row of every backend. A redispatch asks no mode of the thread.
  const c10::DispatchKey row = c10::DispatchKey::CPU;
  while (true) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (op.has_value() && op->hasComputedKernelForDispatchKey(row)) {
      const int64_t address =
          op->typed<int64_t()>().redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU));
      return *reinterpret_cast<FallbackState*>(address);
    }
    if (op.has_value()) {
      continue; // another thread is between the definition and its kernel
    }
    try {
      auto library = std::make_unique<torch::Library>(
          torch::Library::FRAGMENT, "torchext", std::nullopt, "torchext/generated/fallback_state.h", 0);
      library->def("_fallback_state.v1() -> int", &address_of_own_state);
      library.release(); // registered to the end of the process
    } catch (const c10::Error&) {
      if (!c10::Dispatcher::singleton().findSchema(name).has_value()) {
        throw; // otherwise another thread was faster
      }
    }
  }
}

} // namespace detail

inline FallbackState& fallback_state() {
  static FallbackState& state = detail::find_fallback_state();
  return state;
}

/// The mode of this thread: that of its innermost torchext.fallback.mode, or TORCHEXT_FALLBACK of
/// the environment when the first operator fell back, or to warn.
inline FallbackMode fallback_mode() {
  if (const auto newest = detail::newest_fallback_mode()) {
    return newest->mode;
  }
  FallbackState& state = fallback_state();
  const std::lock_guard lock(state.mutex);
  if (!state.mode.has_value()) {
    state.mode = detail::fallback_mode_of_environment();
  }
  return *state.mode;
}

/// Sets this thread's mode until it is popped; returns what to pop it by.
inline int64_t push_fallback_mode(FallbackMode mode) {
  FallbackState& state = fallback_state();
  int64_t entry = 0;
  {
    const std::lock_guard lock(state.mutex);
    entry = ++state.entries;
  }
  at::impl::ThreadLocalPythonObjects::set(
      detail::fallback_mode_slot(),
      std::make_shared<detail::FallbackModeLayer>(mode, entry, detail::newest_fallback_mode()));
  return entry;
}

/// Ends a mode of this thread, the innermost or not; throws std::logic_error where it has not it.
inline void pop_fallback_mode(int64_t entry) {
  at::impl::ThreadLocalPythonObjects::set(
      detail::fallback_mode_slot(),
      detail::without_fallback_mode(detail::newest_fallback_mode(), entry));
}

} // namespace v1
} // namespace torchext
