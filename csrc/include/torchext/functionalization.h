// SPDX-License-Identifier: BSD-3-Clause
//
// The Functionalize kernel of an in-place or out= form: it calls the operator's functional form, and
// what that returns becomes the value of the tensors that would have been written to, as for ATen's
// own operators. Boxed: it runs while a graph is traced, never in eager mode.
#pragma once

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>
#include <torchext/boxed.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace detail {

/// What a call of the operator's own kernels sees of a functional tensor.
inline at::Tensor inner_tensor(const at::Tensor& tensor) {
  if (!at::functionalization::impl::isFunctionalTensor(tensor)) {
    return tensor;
  }
  at::functionalization::impl::sync(tensor);
  return at::functionalization::impl::from_functional_tensor(tensor);
}

inline at::Tensor meta_tensor(const at::Tensor& tensor) {
  return at::empty_strided_symint(
      tensor.sym_sizes(), tensor.sym_strides(), tensor.options().device(at::kMeta));
}

/// Calls the operator on Meta tensors: it refuses shapes and dtypes that only its functional form
/// takes, such as a result larger than the tensor that it is written to.
inline void check_on_meta(const c10::OperatorHandle& op, const std::vector<c10::IValue>& values) {
  constexpr auto excluded =
      c10::functorch_transforms_ks | c10::DispatchKeySet(
                                         {c10::DispatchKey::FuncTorchDynamicLayerBackMode,
                                          c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
                                          c10::DispatchKey::Python,
                                          c10::DispatchKey::PreDispatch});
  const c10::impl::ExcludeDispatchKeyGuard guard(excluded);
  torch::jit::Stack stack;
  for (const c10::IValue& value : values) {
    stack.push_back(map_boxed_tensors(meta_tensor, value));
  }
  op.callBoxed(&stack);
}

} // namespace detail

/// The kernel: of the form that it is registered for, by the functional form that it is made with.
class FunctionalizedBy final : public c10::OperatorKernel {
 public:
  FunctionalizedBy(const char* name, const char* overload) : name_(name), overload_(overload) {}

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
    const c10::FunctionSchema& schema = op.schema();
    const auto count = schema.arguments().size();
    const std::vector<c10::IValue> values(stack->end() - static_cast<int64_t>(count), stack->end());
    if (!any_functional(values)) {
      const at::AutoDispatchSkipFunctionalize guard;
      op.callBoxed(stack);
      return;
    }
    const std::vector<at::Tensor> written = written_tensors(schema, values);
    std::vector<c10::IValue> inner;
    for (const c10::IValue& value : values) {
      inner.push_back(detail::map_boxed_tensors(detail::inner_tensor, value));
    }
    torch::jit::drop(*stack, count);
    replace(written, call_functional(op, inner));
    if (!schema.returns().empty()) {
      stack->insert(stack->end(), written.begin(), written.end());
    }
  }

 private:
  static bool any_functional(const std::vector<c10::IValue>& values) {
    bool any = false;
    for (const c10::IValue& value : values) {
      const auto look = [&any](const at::Tensor& tensor) {
        any = any || at::functionalization::impl::isFunctionalTensor(tensor);
      };
      detail::for_each_boxed_tensor(look, value);
    }
    return any;
  }

  static std::vector<at::Tensor> written_tensors(
      const c10::FunctionSchema& schema, const std::vector<c10::IValue>& values) {
    std::vector<at::Tensor> found;
    for (size_t i = 0; i < values.size(); ++i) {
      if (detail::is_written(schema.arguments()[i])) {
        found.push_back(values[i].toTensor());
        TORCH_CHECK(
            at::functionalization::impl::isFunctionalTensor(found.back()),
            schema.name(),
            ": '",
            schema.arguments()[i].name(),
            "' is written to and is no input of the function that is functionalized, as another "
            "argument is; pass it in");
      }
    }
    return found;
  }

  torch::jit::Stack call_functional(
      const c10::OperatorHandle& op, const std::vector<c10::IValue>& inner) const {
    const at::AutoDispatchSkipFunctionalize guard;
    detail::check_on_meta(op, inner);
    const c10::OperatorHandle functional =
        c10::Dispatcher::singleton().findSchemaOrThrow(name_.c_str(), overload_.c_str());
    auto results = detail::arguments_of(functional.schema(), op.schema(), inner);
    functional.callBoxed(&results);
    return results;
  }

  static void replace(const std::vector<at::Tensor>& written, const torch::jit::Stack& results) {
    TORCH_INTERNAL_ASSERT(written.size() == results.size());
    for (size_t i = 0; i < written.size(); ++i) {
      at::functionalization::impl::replace_(written[i], results[i].toTensor());
      at::functionalization::impl::commit_update(written[i]);
      at::functionalization::impl::sync(written[i]);
    }
  }

  std::string name_;
  std::string overload_;
};

inline torch::CppFunction functionalized_by(const char* name, const char* overload) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<FunctionalizedBy>(name, overload));
}

} // namespace v1
} // namespace torchext
