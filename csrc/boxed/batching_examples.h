// SPDX-License-Identifier: BSD-3-Clause
//
// A call of the operator for each example of a batch, and what the calls give together: new results
// are stacked, views of an argument are one view of it, what is written to is written in its place.
#pragma once

#include <ATen/core/enum_tag.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "batching_call.h"
#include "batching_layouts.h"
#include "batching_views.h"

namespace torchext {
inline namespace v1 {
namespace detail {

/// Whether values of two examples, which are no tensors, are the same.
inline bool is_same(const c10::IValue& a, const c10::IValue& b) {
  const bool both_nan =
      a.isDouble() && b.isDouble() && std::isnan(a.toDouble()) && std::isnan(b.toDouble());
  return both_nan || a.is(b) || a == b;
}

/// The calls of all examples.
class Examples {
 public:
  explicit Examples(const BatchedCall& call)
      : call_(call),
        changes_layouts_(call.op().hasTag(at::Tag::inplace_view)),
        writes_to_copies_(!changes_layouts_ && (is_recorded() || is_differentiated_call(call))) {}

  /// `before(index)` runs before the call of each example, of which there is one at least.
  template <typename F>
  void run(int64_t count, const F& before, torch::jit::Stack& results) {
    if (writes_to_copies_) {
      call_.check_copied_apart();
      copied_ = call_.written_tensors();
    }
    for (int64_t index = 0; index < count; ++index) {
      before(index);
      call_example(index);
    }
    if (changes_layouts_) {
      change_layouts();
    }
    for (size_t i = 0; i < schema().returns().size(); ++i) {
      results.push_back(result(i));
    }
  }

 private:
  static bool is_differentiated_call(const BatchedCall& call) {
    bool found = false;
    const auto ask = [&found](const at::Tensor& t) { found = found || is_differentiated(t); };
    for (const c10::IValue& value : call.values()) {
      for_each_boxed_tensor(ask, value);
    }
    return found;
  }

  const c10::FunctionSchema& schema() const {
    return call_.schema();
  }

  const c10::Argument& argument(size_t index) const {
    return schema().arguments()[index];
  }

  void call_example(int64_t index) {
    torch::jit::Stack stack;
    std::vector<at::Tensor> copies; // what is given twice is one tensor here as well
    for (const at::Tensor& tensor : copied_) {
      copies.push_back(call_.batch().example(tensor, index).clone());
    }
    for (size_t i = 0; i < call_.values().size(); ++i) {
      const auto part = [&](const at::Tensor& tensor) {
        const size_t copy = BatchedCall::place_of(copied_, tensor);
        return copy < copies.size() ? copies[copy] : given(tensor, index, i);
      };
      stack.push_back(map_boxed_tensors(part, call_.values()[i]));
    }
    given_.push_back(stack);
    const std::vector<Place> before = written_places(stack);
    call_.op().callBoxed(&stack);
    TORCH_CHECK(
        changes_layouts_ || written_places(given_.back()) == before,
        "vmap: ",
        call_.name(),
        " resizes what it writes to: an example is a part of its batch, and keeps its size");
    returned_.push_back(std::move(stack));
    for (size_t i = 0; writes_to_copies_ && i < call_.values().size(); ++i) {
      if (is_written(argument(i))) {
        copy_back(index, i);
      }
    }
  }

  /// What an example has of a tensor of an argument.
  at::Tensor given(const at::Tensor& tensor, int64_t index, size_t argument_index) const {
    if (!is_written(argument(argument_index))) {
      return call_.batch().example(tensor, index);
    }
    if (changes_layouts_) { // without history: the layout of the whole batch has it
      return call_.batch().front(tensor).detach().select(0, index);
    }
    return call_.batch().example(tensor, index);
  }

  void copy_back(int64_t index, size_t argument_index) const {
    const std::vector<at::Tensor> batched = tensors_of(call_.values()[argument_index]);
    const std::vector<at::Tensor> copies = tensors_of(given_.back()[argument_index]);
    for (size_t t = 0; t < batched.size(); ++t) {
      call_.batch().example(batched[t], index).copy_(copies[t]);
    }
  }

  using Place = std::pair<StridedLayout, const void*>; // of a tensor, and its storage

  std::vector<Place> written_places(const torch::jit::Stack& stack) const {
    std::vector<Place> found;
    const auto add = [&found](const at::Tensor& t) {
      const void* storage = t.has_storage() ? t.storage().unsafeGetStorageImpl() : nullptr;
      found.emplace_back(StridedLayout(t), storage);
    };
    for (size_t i = 0; i < stack.size(); ++i) {
      if (is_written(argument(i))) {
        for_each_boxed_tensor(add, stack[i]);
      }
    }
    return found;
  }

  /// Gives what an in-place view changed the layout that it gave each example.
  void change_layouts() const {
    for (size_t i = 0; i < call_.values().size(); ++i) {
      if (!is_written(argument(i))) {
        continue;
      }
      const std::vector<at::Tensor> batched = tensors_of(call_.values()[i]);
      for (size_t t = 0; t < batched.size(); ++t) {
        std::vector<at::Tensor> examples;
        for (const torch::jit::Stack& given : given_) {
          examples.push_back(tensors_of(given[i])[t]);
        }
        even_layouts(examples, argument(i).name());
        lay_out(
            call_.name(), batched[t], StridedLayout(batched[t]), StridedLayout(examples.front()));
      }
    }
  }

  c10::IValue result(size_t index) const {
    const c10::Argument& result = schema().returns()[index];
    const std::optional<c10::IValue> written = call_.written_argument(result);
    if (written.has_value()) {
      return *written;
    }
    std::vector<c10::IValue> values;
    for (const torch::jit::Stack& returned : returned_) {
      values.push_back(returned[index]);
    }
    const bool is_aliasing = is_view(result);
    return together(values, [&](const std::vector<at::Tensor>& tensors) {
      return is_aliasing ? view(tensors, result) : stacked(tensors);
    });
  }

  /// One value for those of all examples; `f` makes one tensor of several.
  template <typename F>
  c10::IValue together(const std::vector<c10::IValue>& values, const F& f) const {
    const c10::IValue& first = values.front();
    bool is_tensor = false;
    bool has_tensors = false;
    for (const c10::IValue& value : values) {
      is_tensor = is_tensor || (value.isTensor() && value.toTensor().defined());
      for_each_boxed_tensor([&](const at::Tensor&) { has_tensors = true; }, value);
    }
    if (is_tensor) {
      return f(defined_tensors(values));
    }
    if (!has_tensors) {
      for (const c10::IValue& value : values) {
        check_same(first, value);
      }
      return first;
    }
    std::vector<std::vector<c10::IValue>> items;
    for (const c10::IValue& value : values) {
      items.push_back(items_of(value, first));
      TORCH_CHECK(
          items.back().size() == items.front().size(),
          "vmap: ",
          call_.name(),
          " returns a list of ",
          items.front().size(),
          " for one example of the batch, and one of ",
          items.back().size(),
          " for another");
    }
    std::vector<c10::IValue> joined;
    for (size_t item = 0; item < items.front().size(); ++item) {
      std::vector<c10::IValue> of_examples;
      for (const std::vector<c10::IValue>& example : items) {
        of_examples.push_back(example[item]);
      }
      joined.push_back(together(of_examples, f));
    }
    return with_items(first, std::move(joined));
  }

  std::vector<at::Tensor> defined_tensors(const std::vector<c10::IValue>& values) const {
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& value : values) {
      const bool is_defined = value.isTensor() && value.toTensor().defined();
      TORCH_CHECK(
          is_defined,
          "vmap: ",
          call_.name(),
          " returns a tensor for one example of the batch, and none for another");
      tensors.push_back(value.toTensor());
    }
    return tensors;
  }

  void check_same(const c10::IValue& value, const c10::IValue& other) const {
    TORCH_CHECK(
        is_same(value, other),
        "vmap: ",
        call_.name(),
        " returns ",
        value,
        " for one example of the batch, and ",
        other,
        " for another: what is no tensor must be the same for all");
  }

  /// What a list or tuple holds, or a dictionary at the keys of another.
  static std::vector<c10::IValue> items_of(const c10::IValue& value, const c10::IValue& other) {
    if (value.isList()) {
      return value.toListRef().vec();
    }
    if (value.isTuple()) {
      return value.toTupleRef().elements().vec();
    }
    std::vector<c10::IValue> items;
    if (value.isGenericDict() && value.toGenericDict().size() == other.toGenericDict().size()) {
      for (const auto& item : other.toGenericDict()) {
        items.push_back(value.toGenericDict().at(item.key()));
      }
    }
    return items;
  }

  c10::IValue with_items(const c10::IValue& like, std::vector<c10::IValue> items) const {
    if (like.isList()) {
      c10::impl::GenericList list(like.toList().elementType());
      for (c10::IValue& item : items) {
        list.push_back(std::move(item));
      }
      return list;
    }
    if (like.isTuple()) {
      return c10::ivalue::Tuple::create(std::move(items));
    }
    const c10::impl::GenericDict dict = like.toGenericDict();
    c10::impl::GenericDict mapped(dict.keyType(), dict.valueType());
    size_t next = 0;
    for (const auto& item : dict) {
      mapped.insert(item.key(), items[next++]);
    }
    return mapped;
  }

  at::Tensor stacked(const std::vector<at::Tensor>& tensors) const {
    const at::Tensor& first = tensors.front();
    for (const at::Tensor& other : tensors) {
      TORCH_CHECK(
          other.sym_sizes() == first.sym_sizes() && other.scalar_type() == first.scalar_type() &&
              other.device() == first.device(),
          "vmap: ",
          call_.name(),
          " has a result of shape ",
          first.sym_sizes(),
          ", ",
          first.scalar_type(),
          " on ",
          first.device(),
          ", for one example of the batch and one of shape ",
          other.sym_sizes(),
          ", ",
          other.scalar_type(),
          " on ",
          other.device(),
          ", for another: no tensor is a batch of both");
    }
    return call_.batch().logical(at::stack(tensors));
  }

  /// The view of the whole batch that views of all examples are.
  at::Tensor view(const std::vector<at::Tensor>& views, const c10::Argument& result) const {
    const Viewed found = viewed(views, result);
    const at::Tensor& base = found.tensor;
    const c10::SymInt distance = even_layouts(views, found.name);
    StridedLayout layout(views.front());
    const bool is_batched = call_.batch().is_batched(base);
    const bool is_of_all = !is_batched && (views.size() == 1 || distance == 0);
    if (!is_of_all) {
      layout.insert(0, call_.batch().size(), distance);
    }
    at::Tensor physical = is_batched ? call_.batch().front(base) : base;
    check_moves(views, distance, physical, is_batched);
    if (c10::GradMode::is_enabled() && is_differentiated(found.example) &&
        !is_differentiated(views.front())) {
      physical = physical.detach(); // as the operator does
    }
    const at::Tensor view = view_as(physical, views.front(), layout);
    return is_of_all ? view : call_.batch().logical(view);
  }

  /// The views of examples that lie apart are not one and the same, if their place in the memory is
  /// not given as such.
  void check_moves(
      const std::vector<at::Tensor>& views,
      const c10::SymInt& distance,
      const at::Tensor& physical,
      bool is_batched) const {
    if (!is_batched || views.size() == 1 || !StridedLayout(views.front()).has_elements() ||
        innermost(physical).sym_numel() == 0) {
      return;
    }
    TORCH_CHECK(
        distance != 0 || physical.sym_stride(0) == 0,
        "vmap: ",
        call_.name(),
        " views places of the memory that do not depend on the example");
  }

  c10::SymInt even_layouts(
      const std::vector<at::Tensor>& tensors, const std::string& argument) const {
    std::vector<StridedLayout> layouts;
    for (const at::Tensor& tensor : tensors) {
      TORCH_CHECK(
          tensor.layout() == at::kStrided,
          "vmap: ",
          call_.name(),
          " has a view that is not strided, which cannot be batched");
      layouts.emplace_back(tensor);
    }
    const std::optional<c10::SymInt> distance = even_distance(layouts);
    TORCH_CHECK(
        distance.has_value(),
        "vmap: ",
        call_.name(),
        " views each example of the batch in another way: no view of '",
        argument,
        "' is a batch of them");
    return *distance;
  }

  /// What results view: a tensor of an argument, and what the first example has of it.
  struct Viewed {
    at::Tensor tensor;
    at::Tensor example;
    std::string name; // of the argument
  };

  Viewed viewed(const std::vector<at::Tensor>& views, const c10::Argument& result) const {
    std::optional<Viewed> found;
    for (size_t i = 0; i < call_.values().size(); ++i) {
      const std::vector<at::Tensor> own = tensors_of(call_.values()[i]);
      for (size_t t = 0; same_alias(argument(i), result) && t < own.size(); ++t) {
        if (!is_viewed(views, i, t)) {
          continue;
        }
        const Viewed next{own[t], tensors_of(given_.front()[i])[t], argument(i).name()};
        if (covers(next.example, views.front())) {
          return next;
        }
        found = found.has_value() ? found : next;
      }
    }
    TORCH_CHECK(
        found.has_value(),
        "vmap: ",
        call_.name(),
        " returns by its schema a view of an argument, and by its kernel a tensor that shares no "
        "memory with it for every example of the batch");
    return *found;
  }

  /// Whether the views of all examples are of tensor t of an argument.
  bool is_viewed(const std::vector<at::Tensor>& views, size_t argument, size_t t) const {
    for (size_t example = 0; example < views.size(); ++example) {
      if (!shares_memory(views[example], tensors_of(given_[example][argument])[t])) {
        return false;
      }
    }
    return true;
  }

  const BatchedCall& call_;
  const bool changes_layouts_;
  // Of what is written to a part of a tensor Inductor loses some where its sizes are symbolic; and
  // a node that saves the part sees a version that rises with each of the others.
  const bool writes_to_copies_;
  std::vector<at::Tensor> copied_;
  std::vector<torch::jit::Stack> given_;
  std::vector<torch::jit::Stack> returned_;
};

} // namespace detail
} // namespace v1
} // namespace torchext
