// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torchext/generated/boxed.h>
#include <torchext/generated/functionalization.h>
#include <torchext/generated/memory_overlap.h>
#include <torchext/generated/tracing.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "declared_form.h"
#include "functional_tensors.h"
#include "tracked_aliases.h"

namespace torchext {
inline namespace v1 {
namespace detail {
namespace {

/// Whether two functional tensors have memory in common. Where views are traced as copies of what
/// they show, nothing says where they lie, and those of one memory may.
bool share_functional_memory(const at::Tensor& a, const at::Tensor& b) {
  if (!a.storage().is_alias_of(b.storage())) {
    return false;
  }
  const at::Tensor left = in_memory(inner_tensor(a));
  const at::Tensor right = in_memory(inner_tensor(b));
  return !left.storage().is_alias_of(right.storage()) || have_common_bytes(left, right);
}

at::Tensor meta_tensor(const at::Tensor& tensor) {
  return at::empty_strided_symint(
      tensor.sym_sizes(), tensor.sym_strides(), tensor.options().device(at::kMeta));
}

/// Calls the operator on Meta tensors: it refuses shapes and dtypes that only its functional form
/// takes, such as a result larger than the tensor that it is written to.
void check_on_meta(const c10::OperatorHandle& op, const std::vector<c10::IValue>& values) {
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

/// The argument that a result is; None where the result is new.
c10::IValue argument_of(
    const c10::FunctionSchema& schema,
    const std::vector<c10::IValue>& values,
    const c10::Argument& result) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_written(schema.arguments()[i]) && same_alias(schema.arguments()[i], result)) {
      return values[i];
    }
  }
  return c10::IValue();
}

std::optional<size_t> result_of(
    const c10::FunctionSchema& schema, const c10::Argument& argument) {
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    if (same_alias(schema.returns()[i], argument)) {
      return i;
    }
  }
  return std::nullopt;
}

/// Calls `f(argument, value)` with all that is written to and what the functional form returns for
/// it: behind its other results what is not returned, `self` first.
template <typename F>
void for_each_written(
    const F& f,
    const c10::FunctionSchema& schema,
    const std::vector<c10::IValue>& values,
    const torch::jit::Stack& results) {
  size_t next = schema.returns().size();
  for (const bool is_self : {true, false}) {
    for (size_t i = 0; i < values.size(); ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      if (is_written(argument) && (argument.name() == "self") == is_self) {
        const std::optional<size_t> returned = result_of(schema, argument);
        f(values[i], results.at(returned.has_value() ? *returned : next++));
      }
    }
  }
}

/// The operator's own results: arguments, and `f` of what the functional form returns.
template <typename F>
void push_results(
    const F& f,
    const c10::FunctionSchema& schema,
    const std::vector<c10::IValue>& values,
    const torch::jit::Stack& results,
    torch::jit::Stack& stack) {
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    const c10::IValue argument = argument_of(schema, values, schema.returns()[i]);
    stack.push_back(is_there(argument) ? argument : f(results.at(i)));
  }
}

/// Refuses functional tensors that share memory with one that is written to: its new value is
/// computed aside, where the others do not see it. Of read arguments a functional form that is
/// declared says itself what it does (`add_(x, x)` is `add(x, x)`); on copies they are refused too.
void check_written_apart(
    const c10::FunctionSchema& schema,
    const c10::FunctionSchema& order,
    const std::vector<c10::IValue>& values,
    bool on_copies) {
  struct Seen {
    at::Tensor tensor;
    bool is_written;
    const std::string& name;
  };
  std::vector<Seen> seen;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto index = schema.argumentIndexWithName(order.arguments()[i].name());
    if (!index.has_value()) {
      continue;
    }
    const c10::Argument& argument = schema.arguments()[static_cast<size_t>(*index)];
    for (const at::Tensor& tensor : tensors_of(values[i])) {
      if (at::functionalization::impl::isFunctionalTensor(tensor)) {
        seen.push_back({tensor, is_written(argument), argument.name()});
      }
    }
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    for (size_t j = 0; j < seen.size(); ++j) {
      const bool is_asked = seen[i].is_written && (seen[j].is_written ? i < j : on_copies);
      TORCH_CHECK(
          !is_asked || !share_functional_memory(seen[i].tensor, seen[j].tensor),
          schema.name(),
          ": '",
          seen[i].name,
          "' is written to and shares memory with ",
          seen[i].name == seen[j].name ? "another tensor of the list"
                                       : c10::str("'", seen[j].name, "'"),
          ", and a call that is traced (torch.compile, torch.export, functionalize) computes what is "
          "written aside, where the other one does not see it; pass a .clone() of one of them");
    }
  }
}

/// For which operator its functional form is called: torch's Python unwraps the arguments on the
/// way to the form's Functionalize kernel, which alone sees what memory they have.
class TracedCall {
 public:
  TracedCall(const std::string& name, const std::string& overload, const c10::FunctionSchema& schema)
      : name_(name), overload_(overload), schema_(schema), outer_(std::exchange(current_, this)) {}
  TracedCall(const TracedCall&) = delete;
  TracedCall& operator=(const TracedCall&) = delete;
  ~TracedCall() {
    current_ = outer_;
  }

  static const c10::FunctionSchema* of(const std::string& name, const std::string& overload) {
    const bool found = current_ && current_->name_ == name && current_->overload_ == overload;
    return found ? &current_->schema_ : nullptr;
  }

 private:
  inline static thread_local TracedCall* current_ = nullptr;

  const std::string& name_;
  const std::string& overload_;
  const c10::FunctionSchema& schema_;
  TracedCall* outer_;
};

} // namespace
} // namespace detail

namespace {

/// The kernel: of the form that it is registered for, by the functional form that it is made with;
/// and of a form that runs its operator on copies.
class FunctionalizedBy final : public c10::OperatorKernel {
 public:
  /// on_copies: the functional form runs this one on copies.
  FunctionalizedBy(const char* name, const char* overload, bool on_copies)
      : name_(name), overload_(overload), on_copies_(on_copies) {}

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
    check_written(schema, values);
    const c10::FunctionSchema* traced_for = detail::TracedCall::of(name_, overload_);
    detail::check_written_apart(traced_for ? *traced_for : schema, schema, values, on_copies_);
    std::vector<c10::IValue> inner;
    for (const c10::IValue& value : values) {
      inner.push_back(detail::map_boxed_tensors(detail::inner_tensor, value));
    }
    torch::jit::drop(*stack, count);
    const torch::jit::Stack results = call_functional(op, inner);
    detail::for_each_written(replace_value, schema, values, results);
    detail::push_results(traced, schema, values, results, *stack);
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

  static void check_written(
      const c10::FunctionSchema& schema, const std::vector<c10::IValue>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      const auto check = [&](const at::Tensor& tensor) {
        TORCH_CHECK(
            !detail::is_written(argument) ||
                at::functionalization::impl::isFunctionalTensor(tensor),
            schema.name(),
            ": '",
            argument.name(),
            "' is written to and is no input of the function that is functionalized, as another "
            "argument is; pass it in");
      };
      detail::for_each_boxed_tensor(check, values[i]);
    }
  }

  static c10::IValue traced(const c10::IValue& result) {
    const auto wrap = [](const at::Tensor& tensor) {
      return at::functionalization::impl::to_functional_tensor(tensor);
    };
    return detail::map_boxed_tensors(wrap, result);
  }

  torch::jit::Stack call_functional(
      const c10::OperatorHandle& op, const std::vector<c10::IValue>& inner) const {
    const at::AutoDispatchSkipFunctionalize guard;
    if (!on_copies_) {
      detail::check_on_meta(op, inner);
    }
    const c10::OperatorHandle functional = detail::operator_named(name_, overload_);
    auto results = detail::arguments_of(functional.schema(), op.schema(), inner);
    detail::call_without_policy(functional, &results);
    return results;
  }

  static void replace_value(const c10::IValue& argument, const c10::IValue& result) {
    const std::vector<at::Tensor> written = detail::tensors_of(argument);
    const std::vector<at::Tensor> computed = detail::tensors_of(result);
    for (size_t i = 0; i < written.size(); ++i) {
      at::functionalization::impl::replace_(written[i], computed.at(i));
      at::functionalization::impl::commit_update(written[i]);
      at::functionalization::impl::sync(written[i]);
    }
  }

  std::string name_;
  std::string overload_;
  bool on_copies_;
};

class TracedOnCopies final : public c10::OperatorKernel {
 public:
  TracedOnCopies(const char* name, const char* overload) : name_(name), overload_(overload) {}

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    if (!is_functionalized_here()) {
      return detail::track_aliases(Views::kNone, op, keys, stack);
    }
    const c10::FunctionSchema& schema = op.schema();
    const auto count = schema.arguments().size();
    const std::vector<c10::IValue> values = torch::jit::pop(*stack, count);
    torch::jit::Stack results = values;
    const at::AutoDispatchBelowADInplaceOrView guard;
    const detail::TracedCall call(name_, overload_, schema);
    detail::operator_named(name_, overload_).callBoxed(&results);
    const auto copy = [&schema](const c10::IValue& argument, const c10::IValue& value) {
      copy_back(schema.name(), argument, value);
    };
    detail::for_each_written(copy, schema, values, results);
    const auto same = [](const c10::IValue& result) { return result; };
    detail::push_results(same, schema, values, results, *stack);
  }

 private:
  static void copy_back(
      const std::string& op, const c10::IValue& argument, const c10::IValue& value) {
    const std::vector<at::Tensor> written = detail::tensors_of(argument);
    const std::vector<at::Tensor> computed = detail::tensors_of(value);
    for (size_t i = 0; i < written.size(); ++i) {
      TORCH_CHECK(
          written[i].sym_sizes() == computed.at(i).sym_sizes(),
          op,
          ": a tensor of shape ",
          written[i].sym_sizes(),
          " is given for a result of shape ",
          computed.at(i).sym_sizes(),
          ", and no call that is traced resizes it");
      written[i].copy_(computed.at(i));
      torch::autograd::impl::bump_version(written[i]);
    }
  }

  std::string name_;
  std::string overload_;
};

} // namespace

torch::CppFunction functionalized_by(const char* name, const char* overload) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<FunctionalizedBy>(name, overload, /*on_copies=*/false));
}

torch::CppFunction functionalized_on_copies_by(const char* name, const char* overload) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<FunctionalizedBy>(name, overload, /*on_copies=*/true));
}

torch::CppFunction traced_on_copies(const char* name, const char* overload) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<TracedOnCopies>(name, overload));
}

} // namespace v1
} // namespace torchext
