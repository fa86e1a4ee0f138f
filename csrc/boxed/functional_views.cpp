// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torchext/generated/boxed.h>
#include <torchext/generated/functional_views.h>

#include <memory>
#include <utility>
#include <vector>

#include "functional_tensors.h"
#include "view_schema.h"

namespace torchext {
inline namespace v1 {
namespace detail {
namespace {

/// How a functional tensor comes of its base, and the base of it: by the view's own operators.
class FunctionalView final : public at::functionalization::ViewMeta {
 public:
  FunctionalView(
      std::shared_ptr<const ViewForms> forms,
      std::vector<c10::IValue> values,
      bool reapplies,
      bool has_symbolic_inputs,
      bool is_list,
      int64_t index)
      : ViewMeta(has_symbolic_inputs, is_list, /*is_as_strided=*/false, index),
        forms_(std::move(forms)),
        values_(std::move(values)),
        reapplies_(reapplies) {}

  at::Tensor forward(const at::Tensor& base) override {
    return view_at(views_of(base), out_index);
  }

  at::Tensor reverse(const at::Tensor& base, const at::Tensor& mutated_view) override {
    const auto op = operator_named(forms_->scatter, forms_->scatter_overload);
    const at::AutoDispatchBelowAutograd guard; // the gradient is that of what was written
    torch::jit::Stack stack = values_;
    stack[base_index()] = base;
    stack.insert(stack.begin() + 1 + static_cast<int64_t>(base_index()), mutated_view);
    if (is_multi_output) {
      stack.emplace_back(out_index);
    }
    op.callBoxed(&stack);
    return stack.at(0).toTensor();
  }

  std::shared_ptr<ViewMeta> to_out_index(int64_t index) override {
    return std::make_shared<FunctionalView>(
        forms_, values_, reapplies_, has_symbolic_inputs, is_multi_output, index);
  }

  /// What the operator returns of a base: views, or copies where the graph is to have none.
  c10::IValue views_of(const at::Tensor& base) const {
    torch::jit::Stack stack = values_;
    stack[base_index()] = base;
    const c10::OperatorHandle op = reapplies_ ? operator_named(forms_->name, forms_->overload)
                                              : operator_named(forms_->copy, forms_->copy_overload);
    op.callBoxed(&stack);
    return stack.at(0);
  }

 private:
  size_t base_index() const {
    return detail::base_index(operator_named(forms_->name, forms_->overload).schema());
  }

  std::shared_ptr<const ViewForms> forms_;
  std::vector<c10::IValue> values_; // of the operator's arguments, in its order; without the base
  bool reapplies_;
};

/// What the two kernels below have in common: the arguments of a call without wrappers.
class ViewKernel : public c10::OperatorKernel {
 public:
  explicit ViewKernel(ViewForms forms)
      : forms_(std::make_shared<const ViewForms>(std::move(forms))) {}

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
    const std::vector<c10::IValue> values =
        torch::jit::pop(*stack, op.schema().arguments().size());
    // the argument that is the base, which all forms have in the same place
    const size_t base = base_index(operator_named(forms_->name, forms_->overload).schema());
    const at::Tensor viewed = values[base].toTensor();
    if (at::functionalization::impl::isFunctionalTensor(viewed)) {
      return trace(op.schema(), viewed, view_of(op, values, base), *stack);
    }
    for (const c10::IValue& value : values) {
      stack->push_back(map_boxed_tensors(inner_tensor, value));
    }
    const at::AutoDispatchSkipFunctionalize guard;
    op.callBoxed(stack);
  }

 protected:
  /// Pushes the results of a call with a functional base.
  virtual void trace(
      const c10::FunctionSchema& schema,
      const at::Tensor& viewed,
      const std::shared_ptr<FunctionalView>& view,
      torch::jit::Stack& stack) const = 0;

 private:
  /// The view of a call of `op`, whose arguments the operator that returns the view has as well.
  std::shared_ptr<FunctionalView> view_of(
      const c10::OperatorHandle& op, const std::vector<c10::IValue>& values, size_t base) const {
    const c10::OperatorHandle view = operator_named(forms_->name, forms_->overload);
    std::vector<c10::IValue> inner;
    bool is_symbolic = false;
    const auto look = [&is_symbolic](const c10::SymInt& value) {
      is_symbolic = is_symbolic || value.is_symbolic();
      return value;
    };
    for (size_t i = 0; i < values.size(); ++i) {
      map_symints(look, *op.schema().arguments()[i].real_type(), values[i]);
      inner.push_back(
          i == base ? c10::IValue(at::Tensor()) : map_boxed_tensors(inner_tensor, values[i]));
    }
    return std::make_shared<FunctionalView>(
        forms_,
        std::move(inner),
        at::functionalization::impl::getFunctionalizationReapplyViewsTLS(),
        is_symbolic,
        returns_list(view.schema()),
        /*index=*/0);
  }

  std::shared_ptr<const ViewForms> forms_;
};

} // namespace
} // namespace detail

namespace {

/// Of an operator that returns a view, or a list of them.
class FunctionalizedView final : public detail::ViewKernel {
 public:
  using ViewKernel::ViewKernel;

 protected:
  void trace(
      const c10::FunctionSchema& schema,
      const at::Tensor& viewed,
      const std::shared_ptr<detail::FunctionalView>& view,
      torch::jit::Stack& stack) const override {
    namespace functional = at::functionalization::impl;
    c10::IValue made;
    {
      const at::AutoDispatchSkipFunctionalize guard;
      made = view->views_of(functional::from_functional_tensor(viewed));
    }
    check_sign(schema.name(), functional::from_functional_tensor(viewed), made);
    int64_t next = 0;
    const auto* wrapper = functional::unsafeGetFunctionalWrapper(viewed);
    const auto wrapped = [&](const at::Tensor& tensor) {
      const auto meta = next == 0 ? view : view->to_out_index(next);
      ++next;
      return at::detail::make_tensor<at::FunctionalTensorWrapper>(tensor, wrapper, meta);
    };
    stack.push_back(detail::map_boxed_tensors(wrapped, made));
  }

 private:
  /// Code that is generated for a graph reads memory as it is, and knows nothing of the sign that a
  /// view of it has.
  static void check_sign(const std::string& name, const at::Tensor& base, const c10::IValue& made) {
    const auto check = [&](const at::Tensor& view) {
      TORCH_CHECK_NOT_IMPLEMENTED(
          view.is_neg() == base.is_neg() || !c10::impl::TorchDispatchModeTLS::any_modes_set(),
          name,
          " returns a view of other sign, which no call that is traced can; return at::neg(x), in an "
          "operator whose schema returns a new tensor");
    };
    detail::for_each_boxed_tensor(check, made);
  }
};

/// Of an operator that makes its argument a view of what it was.
class FunctionalizedInplaceView final : public detail::ViewKernel {
 public:
  using ViewKernel::ViewKernel;

 protected:
  void trace(
      const c10::FunctionSchema& schema,
      const at::Tensor& viewed,
      const std::shared_ptr<detail::FunctionalView>& view,
      torch::jit::Stack& stack) const override {
    at::functionalization::impl::unsafeGetFunctionalWrapper(viewed)->mutate_view_meta(view);
    stack.insert(stack.end(), schema.returns().size(), viewed);
  }
};

} // namespace

torch::CppFunction functionalized_view(ViewForms forms) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<FunctionalizedView>(std::move(forms)));
}

torch::CppFunction functionalized_inplace_view(ViewForms forms) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<FunctionalizedInplaceView>(std::move(forms)));
}

} // namespace v1
} // namespace torchext
