// SPDX-License-Identifier: BSD-3-Clause
//
// A batch of size 0, which has no example to call the operator on: its results have no elements, and
// their other sizes are those that the Meta kernel gives for an example, or a call on zeros.
#pragma once

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/real.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batching_call.h"
#include "batching_examples.h"
#include "batching_random.h"

namespace torchext {
inline namespace v1 {
namespace detail {

/// The results of a call for a batch of size 0.
class EmptyBatch {
 public:
  EmptyBatch(const BatchedCall& call, BatchedOperator op) : call_(call), operator_(op) {}

  void run(torch::jit::Stack& results) const {
    std::string why = "it has no Meta kernel";
    if (has_tensors() && has_meta_kernel(call_.op())) {
      try {
        return run_on_meta(results);
      } catch (const c10::Error& error) {
        why = "its Meta kernel failed: " + std::string(error.what_without_backtrace());
      }
    }
    try {
      run_on_zeros(results);
    } catch (const c10::Error& error) {
      TORCH_CHECK(
          false,
          "vmap: ",
          call_.name(),
          " has a batch of size 0, for which nothing says what its results are: ",
          why,
          "; a call on zeros failed: ",
          error.what_without_backtrace());
    }
  }

 private:
  const Batch& batch() const {
    return call_.batch();
  }

  bool has_tensors() const {
    bool found = false;
    for (const c10::IValue& value : call_.values()) {
      for_each_boxed_tensor([&found](const at::Tensor&) { found = true; }, value);
    }
    return found;
  }

  template <typename F>
  std::vector<c10::IValue> mapped(const F& f) const {
    std::vector<c10::IValue> found;
    for (const c10::IValue& value : call_.values()) {
      found.push_back(map_boxed_tensors(f, value));
    }
    return found;
  }

  // -- by the Meta kernel

  void run_on_meta(torch::jit::Stack& results) const {
    std::vector<StridedLayout> layouts; // of the tensors in their order, by calls of torch's own
    mapped([&](const at::Tensor& tensor) {
      layouts.push_back(layout_of_example(tensor));
      return tensor;
    });
    auto next = layouts.begin();
    const auto meta = [&next](const at::Tensor& tensor) {
      const StridedLayout& layout = *next++;
      return at::empty_strided_symint(
          layout.sizes, layout.strides, tensor.options().device(at::kMeta));
    };
    constexpr auto above =
        c10::functorch_transforms_ks | c10::DispatchKeySet(
                                           {c10::DispatchKey::FuncTorchDynamicLayerBackMode,
                                            c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
                                            c10::DispatchKey::Python,
                                            c10::DispatchKey::PreDispatch});
    std::vector<c10::IValue> given;
    torch::jit::Stack returned;
    {
      const c10::impl::ExcludeDispatchKeyGuard guard(above);
      given = mapped(meta);
      returned = given;
      call_.op().callBoxed(&returned);
    }
    const std::optional<c10::Device> device = device_of_results();
    const auto made = [&](const at::Tensor& result) {
      return empty_of(result, result.is_meta() && device ? *device : result.device());
    };
    finish(given, returned, made, results);
  }

  StridedLayout layout_of_example(const at::Tensor& tensor) const {
    StridedLayout layout(batch().is_batched(tensor) ? batch().front(tensor) : tensor);
    if (batch().is_batched(tensor)) {
      layout.sizes.erase(layout.sizes.begin());
      layout.strides.erase(layout.strides.begin());
    }
    return layout;
  }

  /// Where results are: where the call says, or where its tensors are, CPU scalars aside.
  std::optional<c10::Device> device_of_results() const {
    std::optional<c10::Device> found;
    for (const c10::IValue& value : call_.values()) {
      if (value.isDevice()) {
        return value.toDevice();
      }
      for_each_boxed_tensor(
          [&found](const at::Tensor& tensor) {
            const bool is_scalar = tensor.dim() == 0 && tensor.is_cpu();
            if (!found || (found->is_cpu() && !is_scalar)) {
              found = tensor.device();
            }
          },
          value);
    }
    return found;
  }

  at::Tensor empty_of(const at::Tensor& meta, c10::Device device) const {
    std::vector<c10::SymInt> sizes = meta.sym_sizes().vec();
    sizes.insert(sizes.begin(), 0);
    at::Tensor empty = at::empty_symint(sizes, meta.options().device(device));
    const at::ScalarType dtype = meta.scalar_type();
    if (operator_.differentiable && (at::isFloatingType(dtype) || at::isComplexType(dtype))) {
      const auto connect = [&](const at::Tensor& tensor) {
        empty = connected(empty, batch().is_batched(tensor) ? batch().front(tensor) : tensor);
      };
      for (const c10::IValue& value : call_.values()) {
        for_each_boxed_tensor(connect, value);
      }
    }
    return batch().logical(empty);
  }

  /// The result with the history of what it is computed from: a gradient of zeros flows there.
  static at::Tensor connected(const at::Tensor& empty, const at::Tensor& from) {
    if (!is_differentiated(from)) {
      return empty;
    }
    at::Tensor total = from.sum();
    if (total.is_complex() && !empty.is_complex()) {
      total = at::real(total);
    }
    return at::add(empty, total.to(empty.options()));
  }

  // -- by a call on zeros

  void run_on_zeros(torch::jit::Stack& results) const {
    TORCH_CHECK(
        !call_.op().hasTag(at::Tag::dynamic_output_shape) &&
            !call_.op().hasTag(at::Tag::data_dependent_output),
        "its results depend on values by its tags");
    const auto padded = [this](const at::Tensor& tensor) {
      return batch().is_batched(tensor) ? batch().logical(one_more(batch().front(tensor))) : tensor;
    };
    const BatchedCall made(call_.op(), mapped(padded));
    std::optional<GeneratorStates> states;
    if (operator_.draws) {
      states.emplace(made);
    }
    torch::jit::Stack returned;
    Examples(made).run(/*count=*/1, [](int64_t) {}, returned);
    if (states.has_value()) {
      states->restore();
    }
    for (size_t i = 0; i < returned.size(); ++i) {
      TORCH_CHECK(
          call_.written_argument(call_.schema().returns()[i]) || is_of_tensors(returned[i]),
          "a result is no tensor, and there is no example to give it");
    }
    const auto none = [this](const at::Tensor& tensor) {
      return batch().is_batched(tensor) ? batch().logical(batch().front(tensor).narrow(0, 0, 0))
                                        : tensor;
    };
    finish(made.values(), returned, none, results);
  }

  /// One example of zeros for none, with the history of what it stands for.
  static at::Tensor one_more(const at::Tensor& none) {
    std::vector<c10::SymInt> sizes = none.sym_sizes().vec();
    sizes[0] = 1;
    return at::cat({none, at::zeros_symint(sizes, none.options())});
  }

  static bool is_of_tensors(const c10::IValue& value) {
    bool found = value.isNone() || value.isTensor();
    for_each_boxed_tensor([&found](const at::Tensor&) { found = true; }, value);
    return found || (value.isList() && value.toListRef().empty());
  }

  // -- what a call for one example gave

  /// The results: what is written, views of the arguments, and `f` of new tensors.
  template <typename F>
  void finish(
      const std::vector<c10::IValue>& given,
      const torch::jit::Stack& returned,
      const F& f,
      torch::jit::Stack& results) const {
    torch::jit::Stack found; // whole, or none of it: another attempt may follow
    for (size_t i = 0; i < returned.size(); ++i) {
      const c10::Argument& result = call_.schema().returns()[i];
      const std::optional<c10::IValue> written = call_.written_argument(result);
      const auto view = [&](const at::Tensor& tensor) { return empty_view(given, tensor, result); };
      found.push_back(
          written           ? *written
          : is_view(result) ? map_boxed_tensors(view, returned[i])
                            : map_boxed_tensors(f, returned[i]));
    }
    if (call_.op().hasTag(at::Tag::inplace_view)) {
      lay_out_as(given);
    }
    results.insert(results.end(), found.begin(), found.end());
  }

  /// A view without elements of what a result views.
  at::Tensor empty_view(
      const std::vector<c10::IValue>& given,
      const at::Tensor& view,
      const c10::Argument& result) const {
    for (size_t i = 0; i < given.size(); ++i) {
      const std::vector<at::Tensor> tensors = tensors_of(given[i]);
      for (size_t t = 0; same_alias(call_.schema().arguments()[i], result) && t < tensors.size();
           ++t) {
        if (shares_memory(view, tensors[t])) {
          return view_of_nothing(tensors_of(call_.values()[i])[t], view);
        }
      }
    }
    TORCH_CHECK(false, "a result is a view of no argument");
  }

  at::Tensor view_of_nothing(const at::Tensor& tensor, const at::Tensor& view) const {
    StridedLayout layout(view);
    if (!batch().is_batched(tensor)) { // a view for all examples
      layout.offset = layout.offset + tensor.sym_storage_offset() *
                                          static_cast<int64_t>(tensor.element_size()) /
                                          static_cast<int64_t>(view.element_size());
      return view_as(tensor, view, layout);
    }
    layout.insert(0, 0, 1);
    layout.offset = 0;
    return batch().logical(view_as(batch().front(tensor), view, layout));
  }

  /// Gives what an in-place view writes to the sizes that it gave to `examples` of it.
  void lay_out_as(const std::vector<c10::IValue>& examples) const {
    for (size_t i = 0; i < examples.size(); ++i) {
      if (!is_written(call_.schema().arguments()[i])) {
        continue;
      }
      const std::vector<at::Tensor> own = tensors_of(call_.values()[i]);
      for (size_t t = 0; t < own.size(); ++t) {
        const StridedLayout after(tensors_of(examples[i])[t]);
        StridedLayout before = layout_of_example(own[t]);
        before.offset = after.offset;
        lay_out(call_.name(), own[t], before, after);
      }
    }
  }

  const BatchedCall& call_;
  const BatchedOperator operator_;
};

} // namespace detail
} // namespace v1
} // namespace torchext
