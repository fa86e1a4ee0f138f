// SPDX-License-Identifier: BSD-3-Clause
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torchext/generated/boxed.h>
#include <torchext/generated/view_geometry.h>
#include <torchext/generated/views.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "boxed_call.h"
#include "tracked_aliases.h"

namespace torchext {
inline namespace v1 {
namespace detail {
namespace {

/// Where a view comes from: the argument, and which of its tensors where that is a list.
struct ViewSource {
  size_t argument;
  std::optional<size_t> element;
};

/// Makes a view again, of another base: calls the operator with it in place of the argument.
class ReplayedView final : public torch::autograd::ViewFunc {
 public:
  /// result, index: which result the view is, and which tensor of it where that is a list.
  ReplayedView(
      c10::OperatorHandle op,
      std::vector<c10::IValue> values,
      ViewSource source,
      size_t result,
      std::optional<size_t> index)
      : op_(op), values_(std::move(values)), source_(source), result_(result), index_(index) {
    base() = at::Tensor(); // nothing holds it but the view itself
  }

  at::Tensor operator()(const at::Tensor& new_base) const override {
    ReplayedView call(*this);
    call.base() = new_base;
    torch::jit::Stack stack = std::move(call.values_);
    op_.callBoxed(&stack);
    const c10::IValue& result = stack.at(result_);
    return index_.has_value() ? result.toTensorVector().at(*index_) : result.toTensor();
  }

  std::vector<c10::SymInt> get_symints() const override {
    std::vector<c10::SymInt> found;
    const auto collect = [&found](const c10::SymInt& value) {
      found.push_back(value);
      return value;
    };
    for (size_t i = 0; i < values_.size(); ++i) {
      map_symints(collect, *argument(i).real_type(), values_[i]);
    }
    return found;
  }

  size_t num_symints() const override {
    return get_symints().size();
  }

  std::vector<at::Tensor> get_tensors() const override {
    std::vector<at::Tensor> found;
    for (const c10::IValue& value : values_) {
      for_each_boxed_tensor([&found](const at::Tensor& t) { found.push_back(t); }, value);
    }
    return found;
  }

  size_t num_tensors() const override {
    return get_tensors().size();
  }

  std::unique_ptr<torch::autograd::ViewFunc> clone_and_set(
      std::optional<std::vector<c10::SymInt>> symints = std::nullopt,
      std::optional<std::vector<at::Tensor>> tensors = std::nullopt) const override {
    auto clone = std::make_unique<ReplayedView>(*this);
    if (symints.has_value()) {
      clone->set_symints(std::move(*symints));
    }
    if (tensors.has_value()) {
      clone->set_tensors(std::move(*tensors));
    }
    return clone;
  }

 protected:
  void set_symints(std::vector<c10::SymInt> symints) override {
    TORCH_INTERNAL_ASSERT(symints.size() == num_symints());
    size_t next = 0;
    const auto take = [&](const c10::SymInt&) { return symints[next++]; };
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = map_symints(take, *argument(i).real_type(), values_[i]);
    }
  }

  void set_tensors(std::vector<at::Tensor> tensors) override {
    TORCH_INTERNAL_ASSERT(tensors.size() == num_tensors());
    size_t next = 0;
    for (c10::IValue& value : values_) {
      value = map_boxed_tensors([&](const at::Tensor&) { return tensors[next++]; }, value);
    }
  }

 private:
  const c10::Argument& argument(size_t index) const {
    return op_.schema().arguments()[index];
  }

  /// A list is copied: the caller's own, or that of another ReplayedView, must stay as it is.
  class Base {
   public:
    Base(c10::IValue& value, std::optional<size_t> element) : value_(value), element_(element) {}

    void operator=(const at::Tensor& tensor) {
      if (!element_.has_value()) {
        value_ = tensor;
        return;
      }
      std::vector<at::Tensor> tensors = value_.toTensorVector();
      tensors.at(*element_) = tensor;
      value_ = std::move(tensors);
    }

   private:
    c10::IValue& value_;
    std::optional<size_t> element_;
  };

  Base base() {
    return Base(values_[source_.argument], source_.element);
  }

  c10::OperatorHandle op_;
  std::vector<c10::IValue> values_;
  ViewSource source_;
  size_t result_;
  std::optional<size_t> index_;
};

/// Whether tensors have memory of their own to compare: wrappers and stand-ins have not.
bool has_own_memory(const at::Tensor& tensor) {
  const auto* impl = tensor.unsafeGetTensorImpl();
  constexpr c10::DispatchKeySet wrappers(
      {c10::DispatchKey::Functionalize,
       c10::DispatchKey::FuncTorchBatched,
       c10::DispatchKey::FuncTorchGradWrapper});
  return tensor.has_storage() && !impl->is_python_dispatch() && !impl->key_set().has_any(wrappers);
}

/// Whether as_strided makes a view of its base again, so that nothing has to be called for that.
bool is_strided_view(const at::Tensor& base, const at::Tensor& view) {
  const auto* impl = base.unsafeGetTensorImpl();
  return impl->support_as_strided() && !impl->is_python_dispatch() &&
         base.scalar_type() == view.scalar_type() && base.is_conj() == view.is_conj() &&
         base.is_neg() == view.is_neg() &&
         !c10::AutogradState::get_tls_state().get_view_replay_enabled();
}

/// Links the results of one call to what they are views of.
class LinkedViews {
 public:
  LinkedViews(Views kind, const BoxedCall& call, const c10::OperatorHandle& op)
      : kind_(kind), call_(call), op_(op) {}

  c10::IValue link(const c10::IValue& value, size_t result) const {
    const auto source = call_.source_of(op_.schema().returns()[result]);
    if (!source.has_value()) {
      return value;
    }
    if (value.isTensor()) {
      return value.toTensor().defined() ? linked(value.toTensor(), *source, result, std::nullopt)
                                        : value;
    }
    std::vector<at::Tensor> views = value.toTensorVector();
    for (size_t i = 0; i < views.size(); ++i) {
      views[i] = linked(views[i], *source, result, i);
    }
    return views;
  }

 private:
  using CreationMeta = torch::autograd::CreationMeta;

  at::Tensor linked(
      at::Tensor view, size_t argument, size_t result, std::optional<size_t> index) const {
    const ViewSource source = source_of(view, argument, index);
    const at::Tensor base = tensor_of(source);
    if (view.is_same(base)) { // of a boxed kernel
      at::AutoDispatchBelowADInplaceOrView guard;
      view = at::alias(base);
    }
    if (kind_ == Views::kIgnored) {
      return torch::autograd::as_view(base, view, false, false);
    }
    std::unique_ptr<torch::autograd::ViewFunc> replay;
    std::function<at::Tensor(const at::Tensor&)> inverse;
    if (kind_ == Views::kRefused) {
      // Without a view function writing to the view would replay it as an as_strided, and the
      // missing derivative would go unnoticed.
      const std::string why =
          "writing to a view made by " + call_.name() + ", which has no derivative, is refused";
      replay = std::make_unique<torch::autograd::ErroringViewFunc>(why);
      inverse = [why](const at::Tensor&) -> at::Tensor { TORCH_CHECK(false, why); };
    } else if (!is_strided_view(base, view)) {
      replay = std::make_unique<ReplayedView>(op_, call_.values(), source, result, index);
      inverse = inverse_of(view, base);
    }
    return torch::autograd::as_view(
        base, view, true, true, std::move(replay), std::move(inverse), creation(index));
  }

  /// Makes the base again of another view of its memory.
  std::function<at::Tensor(const at::Tensor&)> inverse_of(
      const at::Tensor& view, const at::Tensor& base) const {
    const bool is_conj = view.is_conj() != base.is_conj();
    const bool is_neg = view.is_neg() != base.is_neg();
    return [name = call_.name(), own = Geometry(view), of = Geometry(base), is_conj, is_neg](
               const at::Tensor& other) {
      TORCH_CHECK(
          own.is_that_of(other),
          name,
          ": the base can only be made again of a view with the sizes and strides that it returned");
      const at::Tensor tensor = is_conj ? other._conj() : other;
      return of.of_memory_of(is_neg ? tensor._neg_view() : tensor);
    };
  }

  at::Tensor tensor_of(const ViewSource& source) const {
    const c10::IValue& value = call_.values()[source.argument];
    return source.element.has_value() ? value.toTensorVector().at(*source.element)
                                      : value.toTensor();
  }

  /// Views that come of one call with others cannot be written to.
  CreationMeta creation(std::optional<size_t> index) const {
    if (c10::InferenceMode::is_enabled()) {
      return CreationMeta::INFERENCE_MODE;
    }
    if (!torch::autograd::GradMode::is_enabled()) {
      return CreationMeta::NO_GRAD_MODE;
    }
    const bool is_alone = !index.has_value() && op_.schema().returns().size() == 1;
    return is_alone ? CreationMeta::DEFAULT : CreationMeta::MULTI_OUTPUT_NODE;
  }

  /// The tensor of an argument that has the view's memory; where there is none to compare, the one
  /// that the schema leaves.
  ViewSource source_of(const at::Tensor& view, size_t argument, std::optional<size_t> index) const {
    const c10::IValue& value = call_.values()[argument];
    const auto is_base = [&view](const at::Tensor& tensor) {
      return !has_own_memory(tensor) || !has_own_memory(view) ||
             tensor.storage().is_alias_of(view.storage());
    };
    if (value.isTensor()) {
      if (is_base(value.toTensor())) {
        return {argument, std::nullopt};
      }
    } else {
      const std::vector<at::Tensor> tensors = value.toTensorVector();
      for (size_t i = 0; i < tensors.size(); ++i) {
        if (has_own_memory(view) ? is_base(tensors[i]) : i == index.value_or(0)) {
          return {argument, i};
        }
      }
    }
    TORCH_CHECK(false, call_.name(), ": a result is no view of the argument that its schema names");
  }

  Views kind_;
  const BoxedCall& call_;
  const c10::OperatorHandle& op_;
};

} // namespace

void track_aliases(
    Views kind, const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const BoxedCall call(op, *stack);
  {
    at::AutoDispatchBelowADInplaceOrView guard;
    op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
  }
  call.for_each_argument([](const at::Tensor& tensor, const c10::Argument& argument) {
    if (is_written(argument)) {
      torch::autograd::impl::bump_version(tensor);
    }
  });
  const LinkedViews views(kind, call, op);
  const size_t count = op.schema().returns().size();
  for (size_t i = 0; i < count; ++i) {
    if (is_view(op.schema().returns()[i])) {
      c10::IValue& value = (*stack)[stack->size() - count + i];
      value = views.link(value, i);
    }
  }
}

} // namespace detail

namespace {

class TrackedAliases final : public c10::OperatorKernel {
 public:
  explicit TrackedAliases(Views kind) : kind_(kind) {}

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    detail::track_aliases(kind_, op, keys, stack);
  }

 private:
  Views kind_;
};

} // namespace

torch::CppFunction tracked_aliases(Views kind) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<TrackedAliases>(kind));
}

} // namespace v1
} // namespace torchext
