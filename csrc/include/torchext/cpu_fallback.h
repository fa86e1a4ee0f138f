// SPDX-License-Identifier: BSD-3-Clause
//
// The kernel that runs an operator's CPU kernel on copies of its arguments: of a dispatch key that
// names `cpu_fallback`, and of a whole backend for torchext.fallback.enable.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/enum_tag.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/profiler/combined_traceback.h>
#include <torchext/generated/boxed.h>
#include <torchext/generated/fallback_state.h>
#include <torchext/generated/host_copies.h>
#include <torchext/platform.h>

#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {

/// Whether an operator that draws random numbers may draw them from the CPU's generator.
enum class RandomNumbers { kRefused, kFromCpu };

/// Whether the tensors of a call must lie on one device.
enum class DeviceCheck { kExactSame, kNone };

namespace detail {

inline constexpr c10::DispatchKeySet kCpuKeys({
    c10::DispatchKey::CPU,
    c10::DispatchKey::SparseCPU,
    c10::DispatchKey::SparseCsrCPU,
    c10::DispatchKey::QuantizedCPU,
    c10::DispatchKey::NestedTensorCPU,
    c10::DispatchKey::MkldnnCPU,
});

struct CallSite {
  std::string file; // empty on a thread of C++, such as autograd's
  int64_t line = 0;
};

/// Where Python called the operator, outside of torch's own files.
inline CallSite call_site() {
  const auto traceback = torch::CapturedTraceback::gather(
      /*python=*/true, /*script=*/false, /*cpp=*/false);
  const torch::SymbolizedTracebacks symbolized = torch::symbolize({traceback.get()});
  // .../torch/lib/libtorch_cpu.so
  std::string torch_folder =
      shared_object_path(reinterpret_cast<const void*>(&torch::CapturedTraceback::gather));
  torch_folder = torch_folder.substr(0, torch_folder.rfind("/lib/") + 1);
  for (const uint64_t index : symbolized.tracebacks.at(0)) {
    const auto& frame = symbolized.all_frames.at(index);
    if (frame.filename.compare(0, torch_folder.size(), torch_folder) != 0) {
      return {frame.filename, static_cast<int64_t>(frame.lineno)};
    }
  }
  return {};
}

/// One call: its arguments lie on the stack until `run`, and then its results.
class CpuFallback {
 public:
  CpuFallback(const c10::OperatorHandle& op, torch::jit::Stack* stack)
      : op_(op), schema_(op.schema()), stack_(stack), arguments_(pop_arguments()) {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      for_each_boxed_tensor(
          [&](const at::Tensor& tensor) {
            has_tensor_ = true;
            cpu_keys_ = cpu_keys_ | (tensor.key_set() & kCpuKeys);
            if (!tensor.is_cpu() && !device_.has_value()) {
              device_ = tensor.device();
              first_ = i;
            }
          },
          arguments_[i]);
      if (arguments_[i].isDevice()) {
        asked_device_ = arguments_[i].toDevice();
      }
    }
  }

  /// Refuses what copies cannot stand for; `device_` is known afterwards.
  void check(RandomNumbers random, DeviceCheck devices) {
    for (const c10::Argument& result : schema_.returns()) {
      refuse_if(is_view(result), "it returns a view, and a copy's view shares no memory with it");
    }
    refuse_if(
        op_.hasTag(at::Tag::inplace_view), "it changes sizes and strides of its argument in place");
    refuse_if(
        schema_.name() == "aten::_copy_from",
        "it is what copies tensors between the device and the CPU");
    refuse_if(
        schema_.name() == "aten::is_set_to",
        "it asks whether tensors share memory, and copies do not");
    refuse_if(!has_tensor_, "it makes tensors, and takes none that could be copied");
    refuse_if(
        random == RandomNumbers::kRefused && draws_random_numbers(),
        "it draws random numbers, and the generator of the CPU is not that of the device");
    refuse_if(
        !op_.hasComputedKernelForDispatchKey(cpu_keys_.highestPriorityTypeId()),
        "it has no kernel there");
    if (devices == DeviceCheck::kExactSame) {
      check_same_device();
    }
  }

  /// Follows the mode of the thread: a warning once for each operator and device type, or an error.
  void report() const {
    const FallbackMode mode = fallback_mode();
    if (mode == FallbackMode::kError) {
      C10_THROW_ERROR(
          NotImplementedError,
          c10::str(
              name(),
              " has no kernel for ",
              target(),
              ", and the fallback to the CPU is off (TORCHEXT_FALLBACK, torchext.fallback.mode: "
              "error)",
              at(call_site())));
    }
    void (*warn)(const std::string&, const std::string&, int64_t) = nullptr;
    if (mode == FallbackMode::kWarn && is_first_warning(&warn)) {
      const CallSite site = call_site();
      const std::string message = c10::str(
          name(),
          " has no kernel for ",
          c10::DeviceTypeName(target().type(), true),
          " and runs on the CPU, on copies of its arguments; first for ",
          target(),
          at(site));
      try {
        if (warn != nullptr && !site.file.empty()) {
          warn(message, site.file, site.line);
        } else {
          TORCH_WARN(message);
        }
      } catch (...) {
        forget_warning(); // where warnings are errors, the next call is one too
        throw;
      }
    }
  }

  /// Calls the CPU kernel. Where it throws, no tensor of the device has changed.
  void run() {
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const Access declared = is_written(schema_.arguments()[i]) ? Access::kWritten : Access::kRead;
      const Access access = is_updated_statistic(i) ? Access::kWrittenSilently : declared;
      for_each_boxed_tensor(
          [&](const at::Tensor& tensor) {
            if (!tensor.is_cpu()) {
              copies_.add(tensor, access);
            }
          },
          arguments_[i]);
    }
    copies_.copy();
    for (const c10::IValue& argument : arguments_) {
      stack_->push_back(on_cpu(argument));
    }
    {
      // The device's autocast stands above this; the CPU's has nothing to say.
      const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
      op_.redispatchBoxed(cpu_keys_, stack_);
    }
    // Results first: where the device has none of their kind, nothing has been written.
    const size_t base = stack_->size() - schema_.returns().size();
    for (size_t i = 0; i < schema_.returns().size(); ++i) {
      c10::IValue& result = (*stack_)[base + i];
      result = on_device(schema_.returns()[i], result, bytes_to_device_);
    }
    copies_.write_back(raise_versions_);
    bytes_to_device_ += copies_.bytes_to_device();
    spent_ = std::chrono::steady_clock::now() - start;
  }

  /// The operator, with its overload.
  std::string name() const {
    return toString(op_.operator_name());
  }

  /// Adds the call to the statistics.
  void count() const {
    FallbackState& state = fallback_state();
    const std::lock_guard lock(state.mutex);
    FallbackCounts& counts = state.by_operator[name()];
    counts.calls += 1;
    counts.bytes_to_cpu += copies_.bytes_to_cpu();
    counts.bytes_to_device += bytes_to_device_;
    counts.nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(spent_).count();
  }

 private:
  std::vector<c10::IValue> pop_arguments() {
    return torch::jit::pop(*stack_, schema_.arguments().size());
  }

  at::Device target() const {
    return device_.has_value() ? *device_ : asked_device_.value_or(at::Device(at::kCPU));
  }

  void refuse_if(bool condition, const char* why) const {
    if (condition) {
      C10_THROW_ERROR(
          NotImplementedError,
          c10::str(
              name(),
              " has no kernel for ",
              c10::DeviceTypeName(target().type(), true),
              " and cannot fall back to the CPU: ",
              why));
    }
  }

  bool draws_random_numbers() const {
    const auto is_generator = [](const c10::Argument& argument) {
      return argument.type()->str().find("Generator") != std::string::npos;
    };
    return op_.hasTag(at::Tag::nondeterministic_seeded) ||
           std::any_of(schema_.arguments().begin(), schema_.arguments().end(), is_generator);
  }

  // Batch norms of ATen write to their running statistics and do not say so: in training, and
  // where that is all that they do, as in batch_norm_update_stats.
  bool is_updated_statistic(size_t i) const {
    const std::string& argument = schema_.arguments()[i].name();
    if (!is_aten() || (argument != "running_mean" && argument != "running_var") ||
        is_written(schema_.arguments()[i])) {
      return false;
    }
    const auto training = schema_.argumentIndexWithName("training");
    return training.has_value() ? arguments_[*training].toBool()
                                : schema_.name().find("_stats") != std::string::npos;
  }

  bool is_aten() const {
    return op_.operator_name().getNamespace() == "aten";
  }

  // What operators of ATen take from the CPU: indices of x[i, j], lengths of sequences, numbers for
  // lists of tensors.
  bool may_be_on_cpu(size_t i, const at::Tensor& tensor) const {
    const c10::Argument& argument = schema_.arguments()[i];
    const bool is_of_cpu =
        (argument.name() == "indices" && argument.type()->kind() == c10::TypeKind::ListType) ||
        (argument.name() == "lengths" && schema_.name() == "aten::_pack_padded_sequence") ||
        argument.name() == "scalars" || argument.name() == "batch_sizes";
    return !is_written(argument) && (tensor.dim() == 0 || (is_aten() && is_of_cpu));
  }

  void check_same_device() const {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      for_each_boxed_tensor(
          [&](const at::Tensor& tensor) {
            if (tensor.is_cpu() && may_be_on_cpu(i, tensor)) {
              return;
            }
            TORCH_CHECK(
                !device_.has_value() || tensor.device() == *device_,
                "Expected all tensors to be on the same device, but '",
                schema_.arguments()[i].name(),
                "' of ",
                name(),
                " is on ",
                tensor.device(),
                " and '",
                schema_.arguments()[first_].name(),
                "' on ",
                *device_);
          },
          arguments_[i]);
    }
  }

  template <typename Warn>
  bool is_first_warning(Warn* warn) const {
    FallbackState& state = fallback_state();
    const std::lock_guard lock(state.mutex);
    *warn = state.warn;
    return state.warned.emplace(name(), c10::DeviceTypeName(target().type(), true)).second;
  }

  void forget_warning() const {
    FallbackState& state = fallback_state();
    const std::lock_guard lock(state.mutex);
    state.warned.erase({name(), c10::DeviceTypeName(target().type(), true)});
  }

  static std::string at(const CallSite& site) {
    return site.file.empty() ? ", called on a thread without Python, such as autograd's"
                             : c10::str(", called at ", site.file, ":", site.line);
  }

  c10::IValue on_cpu(const c10::IValue& argument) const {
    if (argument.isDevice()) {
      return c10::Device(at::kCPU);
    }
    return map_boxed_tensors(
        [this](const at::Tensor& tensor) { return tensor.is_cpu() ? tensor : copies_[tensor]; },
        argument);
  }

  // A result that is an argument is that argument again; where it is missing, it is a new one.
  c10::IValue on_device(
      const c10::Argument& result, const c10::IValue& value, int64_t& bytes) const {
    if (is_written(result)) {
      for (size_t i = 0; i < arguments_.size(); ++i) {
        if (same_alias(schema_.arguments()[i], result) && is_there(arguments_[i])) {
          return arguments_[i];
        }
      }
    }
    return map_boxed_tensors(
        [&](const at::Tensor& tensor) {
          at::Tensor result = moved(tensor);
          const bool is_counted = tensor.layout() == at::kStrided && !result.is_cpu();
          bytes += is_counted ? static_cast<int64_t>(tensor.nbytes()) : 0;
          return result;
        },
        value);
  }

  at::Tensor moved(const at::Tensor& result) const {
    try {
      return result.to(asked_device_.value_or(target()));
    } catch (const c10::NotImplementedError&) {
      const bool is_dense =
          result.layout() == at::kStrided && !result.is_nested() && !result.is_quantized();
      refuse_if(
          !is_dense,
          "its result is a sparse, nested, quantized or mkldnn tensor, which the device has none of");
      throw;
    }
  }

  const c10::OperatorHandle& op_;
  const c10::FunctionSchema& schema_;
  torch::jit::Stack* stack_;
  std::vector<c10::IValue> arguments_;
  bool has_tensor_ = false;
  c10::DispatchKeySet cpu_keys_{c10::DispatchKey::CPU}; // and those of the tensors' layouts
  std::optional<at::Device> device_;       // of the first tensor that is not on the CPU
  size_t first_ = 0;                       // the argument that it is in
  std::optional<at::Device> asked_device_; // an argument that names a device
  // Who writes raises version counters above; where nobody is there, it is done here.
  bool raise_versions_ =
      !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::ADInplaceOrView);
  HostCopies copies_;
  int64_t bytes_to_device_ = 0;
  std::chrono::steady_clock::duration spent_{};
};

} // namespace detail

/// Copies the tensors to the CPU, calls the operator's kernel there, and copies results and what was
/// written back; the copies wait for the current stream of the device. It serves every schema but
/// those that copies cannot stand for, which it refuses: views, operators that make tensors from
/// none, and random numbers. Gradients are those of the operator: this is below autograd.
template <
    RandomNumbers random = RandomNumbers::kRefused,
    DeviceCheck devices = DeviceCheck::kExactSame>
void cpu_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  detail::CpuFallback call(op, stack);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  call.check(random, devices);
  call.report();
  RECORD_FUNCTION("cpu_fallback(" + call.name() + ")", std::vector<c10::IValue>());
  call.run();
  call.count();
}

} // namespace v1
} // namespace torchext
