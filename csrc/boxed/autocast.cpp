// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/autocast_mode.h>
#include <ATen/core/stack.h>
#include <c10/util/ScopeExit.h>
#include <torchext/generated/autocast.h>
#include <torchext/generated/boxed.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "declared_form.h"

namespace torchext {
inline namespace v1 {
namespace {

// The operator whose policy a form that writes passes by. Not by the thread's dispatch keys, which
// functorch sets back at each of its levels.
thread_local const c10::OperatorHandle* without_policy = nullptr;

class AutocastKernel final : public c10::OperatorKernel {
 public:
  AutocastKernel(AutocastPolicy policy, c10::DeviceType device)
      : policy_(policy), device_(device) {}

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const auto key = at::autocast::get_autocast_dispatch_key_from_device_type(device_);
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(key);
    if (without_policy != nullptr && *without_policy == op) {
      const c10::DispatchKeySet below(c10::DispatchKeySet::FULL_AFTER, key);
      return op.redispatchBoxed(keys & below, stack);
    }
    const auto count = static_cast<int64_t>(op.schema().arguments().size());
    const auto first = stack->end() - count;
    const at::ScalarType dtype = target(first, stack->end());
    std::transform(first, stack->end(), first, [&](const c10::IValue& value) {
      return detail::map_boxed_tensors(
          [&](const at::Tensor& tensor) {
            return at::autocast::cached_cast(dtype, tensor, device_);
          },
          value);
    });
    op.callBoxed(stack);
  }

 private:
  template <typename Iterator>
  at::ScalarType target(Iterator first, Iterator last) const {
    if (policy_ == AutocastPolicy::kFp32) {
      return at::kFloat;
    }
    at::ScalarType dtype = at::autocast::get_lower_precision_fp_from_device_type(device_);
    if (policy_ == AutocastPolicy::kPromote) {
      std::for_each(first, last, [&](const c10::IValue& value) {
        detail::for_each_boxed_tensor(
            [&](const at::Tensor& tensor) {
              dtype = at::autocast::prioritize(dtype, tensor, device_);
            },
            value);
      });
    }
    return dtype;
  }

  AutocastPolicy policy_;
  c10::DeviceType device_;
};

} // namespace

namespace detail {

void call_without_policy(const c10::OperatorHandle& functional, torch::jit::Stack* stack) {
  const c10::OperatorHandle* const before = std::exchange(without_policy, &functional);
  const auto restored = c10::make_scope_exit([before] { without_policy = before; });
  functional.callBoxed(stack);
}

} // namespace detail

torch::CppFunction autocast_kernel(AutocastPolicy policy, c10::DeviceType device) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<AutocastKernel>(policy, device));
}

} // namespace v1
} // namespace torchext
