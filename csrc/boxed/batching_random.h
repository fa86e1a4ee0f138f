// SPDX-License-Identifier: BSD-3-Clause
//
// `randomness` of torch.vmap for operators that draw random numbers: refused, the same numbers for
// all examples of a batch, or others for each, as for torch's own.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include <mutex>
#include <utility>
#include <vector>

#include "batching_call.h"

namespace torchext {
inline namespace v1 {
namespace detail {

/// Refuses a call of an operator that draws random numbers where torch refuses its own.
inline void check_randomness(const BatchedCall& call) {
  using at::functorch::RandomnessType;
  TORCH_CHECK(
      call.batch().randomness() != RandomnessType::Error,
      "vmap: called random operation while in randomness error mode. Please either use the 'same' "
      "or 'different' randomness flags on vmap or perform the randomness operation out of vmap (",
      call.name(),
      " draws random numbers)");
  if (call.batch().randomness() == RandomnessType::Same) {
    return;
  }
  for (size_t i = 0; i < call.values().size(); ++i) {
    const c10::Argument& argument = call.schema().arguments()[i];
    TORCH_CHECK(
        !is_written(argument) || call.batch().all_batched(call.values()[i]),
        "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear "
        "like same randomness. (",
        call.name(),
        " writes to '",
        argument.name(),
        "', which is not batched)");
  }
}

/// The states of all generators that a call may draw from, to draw the same numbers again: those
/// that it is given, that of the CPU, and those of the devices of its arguments.
class GeneratorStates {
 public:
  explicit GeneratorStates(const BatchedCall& call) : call_(call) {
    if (has_mode(c10::impl::TorchDispatchModeKey::FAKE)) {
      return; // nothing is drawn
    }
    for (const c10::IValue& value : call.values()) {
      if (value.isGenerator()) {
        add(value.toGenerator());
      }
    }
    const bool has_own = !states_.empty();
    add(at::globalContext().defaultGenerator(at::kCPU));
    for (const c10::IValue& value : call.values()) {
      if (value.isDevice()) {
        add_default(value.toDevice(), has_own);
      }
      for_each_boxed_tensor(
          [&](const at::Tensor& tensor) { add_default(tensor.device(), has_own); }, value);
    }
  }

  /// Refuses to set generators back where calls are recorded, to be run later without it.
  void check_not_recorded() const {
    TORCH_CHECK(
        !is_recorded(),
        "Vmap does not currently support same randomness with a batched tensor input where calls "
        "are traced: ",
        call_.name(),
        " draws the same numbers for each example by a generator that is set back, which no traced "
        "program does. Draw them outside of vmap, or with randomness='different'");
  }

  /// Draws from here on give the numbers that followed when this was made.
  void restore() {
    for (auto& [generator, state] : states_) {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      generator.set_state(state);
    }
  }

 private:
  void add(at::Generator generator) {
    for (const auto& [known, state] : states_) {
      if (known == generator) {
        return;
      }
    }
    const std::lock_guard<std::mutex> lock(generator.mutex());
    at::Tensor state = generator.get_state();
    states_.emplace_back(std::move(generator), std::move(state));
  }

  void add_default(c10::Device device, bool has_own) {
    if (device.is_cpu() || device.is_meta()) {
      return;
    }
    try {
      add(at::globalContext().defaultGenerator(device));
    } catch (const c10::Error&) {
      TORCH_CHECK(
          has_own,
          "vmap: ",
          call_.name(),
          " cannot draw the same numbers for each example: torch knows no generator of ",
          device);
    }
  }

  const BatchedCall& call_;
  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

} // namespace detail
} // namespace v1
} // namespace torchext
