// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torchext/generated/autograd/forward_mode.h>
#include <torchext/generated/autograd/history.h>
#include <torchext/generated/boxed.h>
#include <torchext/generated/view_forms.h>
#include <torchext/generated/view_geometry.h>

#include <memory>

#include "declared_form.h"
#include "view_schema.h"

namespace torchext {
inline namespace v1 {
namespace {

/// The arguments are those of the operator that returns the view, with the new values behind the
/// base, and at the end the number of the view where there is a list of them.
class ScatterFormOf final : public detail::DeclaredForm {
 public:
  using DeclaredForm::DeclaredForm;

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
    const c10::OperatorHandle view = other();
    const auto count = op.schema().arguments().size();
    torch::jit::Stack call = torch::jit::pop(*stack, count);
    int64_t index = 0;
    if (detail::returns_list(view.schema())) {
      index = call.back().toInt();
      call.pop_back();
    }
    const size_t base = detail::base_index(view.schema());
    const auto source = call.begin() + static_cast<int64_t>(base) + 1;
    const at::Tensor values = source->toTensor();
    call.erase(source);
    const at::Tensor result = call[base].toTensor().clone();
    call[base] = result;
    view.callBoxed(&call);
    at::Tensor target = detail::view_at(call[0], index);
    if (call[0].isTensorList()) {
      // autograd refuses to write to one view of several, as a caller cannot
      const at::Tensor same = detail::Geometry(target).of_memory_of(result);
      target = detail::with_bits(same, target, result);
    }
    TORCH_CHECK(
        target.sym_sizes() == values.sym_sizes(),
        op.schema().name(),
        ": a tensor of shape ",
        values.sym_sizes(),
        " is given for a view of shape ",
        target.sym_sizes());
    target.copy_(values);
    stack->emplace_back(result);
  }
};

class ViewCopyOf final : public detail::DeclaredForm {
 public:
  using DeclaredForm::DeclaredForm;

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
    const auto count = op.schema().arguments().size();
    torch::jit::Stack call = torch::jit::pop(*stack, count);
    other().callBoxed(&call);
    const auto copied = [](const at::Tensor& view) {
      return view.clone(at::MemoryFormat::Contiguous);
    };
    stack->push_back(detail::map_boxed_tensors(copied, call.at(0)));
  }
};

/// The Autograd kernel of a form that calls operators which differentiate: as those where a gradient
/// or a tangent is asked for, and as one operator otherwise, so that a graph has it in one piece.
template <typename Form>
class ByParts final : public c10::OperatorKernel {
 public:
  ByParts(const char* name, const char* overload) : form_(name, overload) {}

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    bool differentiates = false;
    for (const c10::IValue& value : *stack) {
      const auto look = [&differentiates](const at::Tensor& tensor) {
        differentiates = differentiates || any_requires_grad(tensor) || has_tangent(tensor);
      };
      detail::for_each_boxed_tensor(look, value);
    }
    if (differentiates) {
      return form_(op, keys, stack);
    }
    const at::AutoDispatchBelowADInplaceOrView guard;
    op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
  }

 private:
  Form form_;
};

} // namespace

torch::CppFunction scatter_form_of(const char* name, const char* overload) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<ScatterFormOf>(name, overload));
}

torch::CppFunction scatter_by_parts(const char* name, const char* overload) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<ByParts<ScatterFormOf>>(name, overload));
}

torch::CppFunction view_copy_of(const char* name, const char* overload) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<ViewCopyOf>(name, overload));
}

torch::CppFunction view_copy_by_parts(const char* name, const char* overload) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<ByParts<ViewCopyOf>>(name, overload));
}

} // namespace v1
} // namespace torchext
