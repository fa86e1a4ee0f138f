// SPDX-License-Identifier: BSD-3-Clause
//
// Every operator without a kernel of its own runs on the CPU, arguments and results copied. That is
// for the whole backend and so for other people's operators too: right for a test device only.
#include "device.h"

#include <ATen/core/op_registration/adaption.h>
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <optional>
#include <string>

namespace torchext::testing {
namespace {

// Refuses tensors of two devices in one call. A CPU tensor may stand beside device tensors where it is
// a scalar, or where the operator is ATen's: its CPU kernels take the rest (indices, for one).
struct SameDeviceCheck {
  explicit SameDeviceCheck(const c10::FunctionSchema& schema)
      : is_aten(schema.operator_name().getNamespace() == "aten"), name(schema.name()) {}

  void add(const c10::IValue& value, const std::string& argument) {
    if (value.isList()) {
      for (const c10::IValue& element : value.toListRef()) {
        add(element, argument);
      }
    } else if (value.isTensor()) {
      add(value.toTensor(), argument);
    }
  }

 private:
  void add(const at::Tensor& tensor, const std::string& argument) {
    if (tensor.defined() && !(tensor.is_cpu() && (is_aten || tensor.dim() == 0))) {
      c10::impl::check_and_update_common_device(common, tensor, name.c_str(), argument.c_str());
    }
  }

  bool is_aten;
  std::string name;
  std::optional<c10::Device> common;
};

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  SameDeviceCheck check(op.schema());
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    check.add(torch::jit::peek(*stack, i, arguments.size()), arguments[i].name());
  }
  // A view that came back as a copy would lose writes without a word.
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

} // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

} // namespace torchext::testing
