// SPDX-License-Identifier: BSD-3-Clause
#include "fallback.h"

#include "recurrent_cells.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>
#include <torchext/cpu_fallback.h>

#include <cstddef>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace torchext::runtime {
namespace {

c10::DispatchKey key_of(const std::string& device_type) {
  std::optional<c10::Device> device;
  try {
    device.emplace(device_type);
  } catch (const c10::Error&) {
    throw std::invalid_argument("'" + device_type + "' is no device type");
  }
  if (device->has_index()) {
    throw std::invalid_argument("'" + device_type + "' is a device, and not a device type");
  }
  if (device->is_cpu() || device->is_meta()) {
    throw std::invalid_argument("'" + device_type + "' does not fall back to the CPU");
  }
  try {
    return c10::computeDispatchKey(std::nullopt, std::nullopt, device);
  } catch (const c10::Error&) { // a device of other kinds of tensors
    throw std::invalid_argument("'" + device_type + "' has no operators of its own");
  }
}

// ATen hands convolutions of a device that it does not know to two operators for the device to
// implement. They have kernels that throw, so that no fallback of a backend is asked.
void convolution(const c10::OperatorHandle& /*op*/, torch::jit::Stack* stack) {
  static const auto target =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
  cpu_fallback<>(target, stack);
}

// That of ATen's has the sizes of the bias as well, behind `weight`.
void convolution_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static const auto target =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution_backward", "");
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const at::Tensor& grad_output = arguments.front().toTensor();
  const bool needs_bias = arguments.back().toBoolList()[2];
  c10::IValue bias_sizes;
  if (needs_bias) {
    bias_sizes = c10::List<int64_t>({grad_output.size(1)});
  }
  const auto weight = static_cast<std::ptrdiff_t>(stack->size() - arguments.size()) + 2;
  stack->insert(stack->begin() + weight + 1, std::move(bias_sizes));
  cpu_fallback<>(target, stack);
}

// torch.nn.TransformerEncoder asks whether to make a nested tensor of what is not padding, which a
// device without kernels has not.
bool can_be_nested(const at::Tensor& /*t*/, const at::Tensor& /*mask*/) {
  return false;
}

void conj_physical(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (stack->back().toTensor().is_complex()) { // else it is its result already
    cpu_fallback<>(op, stack);
  }
}

struct Registrations {
  std::mutex mutex;
  std::map<c10::DispatchKey, std::vector<torch::Library>> by_key;
};

// The line is that of the caller. Where warnings are errors, the error leaves the operator.
void warn_in_python(const std::string& message, const std::string& file, int64_t line) {
  const pybind11::gil_scoped_acquire gil;
  const int failed = PyErr_WarnExplicit(
      PyExc_UserWarning,
      message.c_str(),
      file.c_str(),
      static_cast<int>(line),
      /*module=*/nullptr,
      /*registry=*/nullptr);
  if (failed != 0) {
    python_error error;
    error.persist();
    throw error;
  }
}

constexpr const char* kRegistrar = "torchext.fallback.enable";

// What ATen asks a device for, and the CPU has not; where the backend has not implemented it.
void add_left_to_devices(std::vector<torch::Library>& libraries, c10::DispatchKey key) {
  libraries.emplace_back(torch::Library::IMPL, "aten", key, kRegistrar, 0);
  const auto is_free = [key](const char* name) {
    const auto op = c10::Dispatcher::singleton().findSchema({std::string("aten::") + name, ""});
    return op.has_value() && !op->hasKernelForDispatchKey(key);
  };
  const auto add = [&](const char* name, torch::CppFunction kernel) {
    if (is_free(name)) {
      libraries.back().impl(name, std::move(kernel));
    }
  };
  add("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  add("convolution_backward_overrideable",
      torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
  // It has a kernel for every device, whose part for complex numbers the devices of torch have.
  if (key == c10::DispatchKey::PrivateUse1) {
    add("conj_physical_", torch::CppFunction::makeFromBoxedFunction<&conj_physical>());
  }
  add("_nested_tensor_from_mask_left_aligned", torch::CppFunction(TORCH_FN(can_be_nested)));
  // What the forward of a cell keeps, only its own backward understands.
  if (is_free("_thnn_fused_lstm_cell") && is_free("_thnn_fused_lstm_cell_backward_impl")) {
    add("_thnn_fused_lstm_cell", torch::CppFunction(TORCH_FN(lstm_cell)));
    add("_thnn_fused_lstm_cell_backward_impl", torch::CppFunction(TORCH_FN(lstm_cell_backward)));
  }
  if (is_free("_thnn_fused_gru_cell") && is_free("_thnn_fused_gru_cell_backward")) {
    add("_thnn_fused_gru_cell", torch::CppFunction(TORCH_FN(gru_cell)));
    add("_thnn_fused_gru_cell_backward", torch::CppFunction(TORCH_FN(gru_cell_backward)));
  }
}

// Never destroyed: what is registered stays so while the process ends.
Registrations& own_registrations() {
  static auto* all = new Registrations;
  return *all;
}

Registrations& registrations() {
  // A child must not find the mutex held by a thread that it has not.
  [[maybe_unused]] static const bool forks_safely = hold_while_forking(
      [] { own_registrations().mutex.lock(); }, [] { own_registrations().mutex.unlock(); });
  return own_registrations();
}

} // namespace

void enable_fallback(const std::string& device_type) {
  const c10::DispatchKey key = key_of(device_type);
  Registrations& all = registrations();
  const std::lock_guard lock(all.mutex);
  if (all.by_key.count(key) != 0) {
    return;
  }
  TORCH_CHECK(
      !c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(key),
      "another fallback is registered for all operators on ",
      key);
  std::vector<torch::Library> libraries;
  libraries.emplace_back(torch::Library::IMPL, "_", key, kRegistrar, 0);
  libraries.back().fallback(torch::CppFunction::makeFromBoxedFunction<&cpu_fallback<>>());
  add_left_to_devices(libraries, key);
  all.by_key.emplace(key, std::move(libraries));
}

void disable_fallback(const std::string& device_type) {
  const c10::DispatchKey key = key_of(device_type);
  Registrations& all = registrations();
  const std::lock_guard lock(all.mutex);
  all.by_key.erase(key);
}

int64_t push_fallback_mode_of(const std::string& name) {
  const std::optional<FallbackMode> mode = parse_fallback_mode(name);
  if (!mode.has_value()) {
    throw std::invalid_argument("'" + name + "' is no mode: silent, warn or error");
  }
  return push_fallback_mode(*mode);
}

std::map<std::string, std::tuple<int64_t, int64_t, int64_t, int64_t>> fallback_counts() {
  FallbackState& state = fallback_state();
  const std::lock_guard lock(state.mutex);
  std::map<std::string, std::tuple<int64_t, int64_t, int64_t, int64_t>> copied;
  for (const auto& [name, counts] : state.by_operator) {
    copied[name] = {counts.calls, counts.bytes_to_cpu, counts.bytes_to_device, counts.nanoseconds};
  }
  return copied;
}

void use_python_warnings() {
  FallbackState& state = fallback_state();
  const std::lock_guard lock(state.mutex);
  state.warn = &warn_in_python;
}

void reset_fallback_counts() {
  FallbackState& state = fallback_state();
  const std::lock_guard lock(state.mutex);
  state.by_operator.clear();
  state.warned.clear();
}

} // namespace torchext::runtime
