// SPDX-License-Identifier: BSD-3-Clause
#include "contract.h"

#include <ATen/ops/empty_strided.h>
#include <c10/core/InferenceMode.h>
#include <torchext/generated/boxed.h>
#include <torchext/generated/memory_overlap.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace torchext::runtime {
namespace {

std::string described(const at::Tensor& t) {
  std::ostringstream text;
  text << "a " << t.scalar_type() << " tensor";
  if (t.is_nested()) {
    text << " (nested)";
  } else {
    text << " of size " << t.sizes();
  }
  if (t.layout() != at::kStrided) {
    text << " (" << t.layout() << ")";
  }
  return text.str();
}

bool same_metadata(const at::Tensor& a, const at::Tensor& b) {
  return a.is_nested() == b.is_nested() && a.layout() == b.layout() &&
         a.scalar_type() == b.scalar_type() && (a.is_nested() || a.sizes() == b.sizes());
}

// Whether elements lie in the same places: of a dimension of one element no stride is used.
bool same_places(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) {
    return true;
  }
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) != 1 && a.stride(d) != b.stride(d)) {
      return false;
    }
  }
  return true;
}

// A copy with given strides; by ATen's own kernels.
at::Tensor copy_laid_out(const at::Tensor& t, at::IntArrayRef strides) {
  const Suspended suspended;
  return at::empty_strided(t.sizes(), strides, t.options()).copy_(t);
}

// The same memory as a tensor of its own: the kernel's may be one that it keeps, and what autograd
// notes on the result is not for that.
at::Tensor apart_from(const at::Tensor& t) {
  c10::TensorImpl* impl = t.unsafeGetTensorImpl();
  const c10::VariableVersion version =
      impl->is_inference() ? c10::VariableVersion() : impl->version_counter();
  return at::Tensor(impl->shallow_copy_and_detach(version, /*allow_tensor_metadata_change=*/true));
}

// What differs between results and those that are expected, in the words of an error. A result
// that one of them leaves out is none.
std::optional<std::string> difference(
    at::ArrayRef<c10::IValue> results, at::ArrayRef<c10::IValue> expected) {
  for (size_t i = 0; i < results.size(); ++i) {
    const auto found = detail::tensors_of(results[i]);
    const auto wanted = detail::tensors_of(expected[i]);
    if (results[i].isTensorList() && found.size() != wanted.size()) {
      return c10::str(found.size(), " tensors, and the operator's result has ", wanted.size());
    }
    for (size_t k = 0; k < std::min(found.size(), wanted.size()); ++k) {
      if (!same_metadata(found[k], wanted[k])) {
        return described(found[k]) + ", and the operator's result is " + described(wanted[k]);
      }
    }
  }
  return std::nullopt;
}

at::Tensor as_callers_get_it(const at::Tensor& returned, const at::Tensor& expected) {
  const bool is_known = expected.defined();
  const bool is_seen_alike = returned.is_conj() == (is_known && expected.is_conj()) &&
                             returned.is_neg() == (is_known && expected.is_neg());
  if (is_seen_alike && (!is_known || same_places(returned, expected))) {
    return apart_from(returned);
  }
  return copy_laid_out(returned, is_known ? expected.strides() : returned.strides());
}

c10::IValue as_callers_get_it(const c10::IValue& returned, const c10::IValue& expected) {
  const std::vector<at::Tensor> wanted = detail::tensors_of(expected);
  size_t next = 0;
  const auto make = [&](const at::Tensor& t) {
    return as_callers_get_it(t, next < wanted.size() ? wanted[next++] : at::Tensor());
  };
  return detail::map_boxed_tensors(make, returned);
}

// The same for tensors that share memory.
const void* memory_of(const at::Tensor& t) {
  if (t.has_storage()) {
    return t.storage().unsafeGetStorageImpl();
  }
  return t.unsafeGetTensorImpl();
}

// Whether two tensors of one memory are parts of it.
bool are_apart(const at::Tensor& a, const at::Tensor& b) {
  return a.has_storage() && detail::overlap_status(a, b) == at::MemOverlapStatus::No;
}

// A copy that promotes as the tensor does.
at::Tensor copy_of(const at::Tensor& t) {
  at::Tensor copy = t.clone();
  if (t.unsafeGetTensorImpl()->is_wrapped_number()) {
    copy.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return copy;
}

// Whether results have an argument's memory though by the schema they are new: torch's own word for
// operators whose caller sees to it that nobody uses the argument any more.
bool is_unsafe_view(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  const std::string base = name.substr(name.rfind(':') + 1);
  return base.rfind("unsafe_", 0) == 0 || base.rfind("_unsafe_view", 0) == 0;
}

} // namespace

Contract::Contract(const Call& call, const Kernel& kernel) : call_(call), kernel_(kernel) {
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (detail::is_written(call.op.schema().arguments()[i])) {
      note_written(i);
    }
  }
  // Overridden for Meta, an operator returns what the override says.
  if (call.key != c10::DispatchKey::Meta) {
    expectation_ = expectation_of(call.op, call.arguments);
  }
}

void Contract::note_written(size_t argument) {
  const auto note = [&](const at::Tensor& t) {
    if (t.layout() == at::kStrided && t.has_storage()) {
      written_.push_back(
          {argument,
           t,
           t.sizes().vec(),
           t.strides().vec(),
           t.storage_offset(),
           t.scalar_type(),
           t.storage().unsafeGetStorageImpl()});
    }
  };
  detail::for_each_boxed_tensor(note, call_.arguments[argument]);
}

void Contract::check_written(const Written& before, const at::Tensor& expected) const {
  const at::Tensor& now = before.tensor;
  const bool is_resized = expected.defined() && expected.sizes() != before.sizes;
  bool is_right = now.scalar_type() == before.dtype;
  if (is_resized) {
    is_right = is_right && now.sizes() == expected.sizes();
  } else {
    is_right = is_right && now.sizes() == before.sizes && now.strides() == before.strides &&
               now.storage_offset() == before.offset &&
               now.storage().unsafeGetStorageImpl() == before.storage;
  }
  if (!is_right) {
    const std::string& name = call_.op.schema().arguments()[before.argument].name();
    refuse("made another tensor of the argument '", name, "', which it is to write to");
  }
}

void Contract::check_all_written() const {
  if (expectation_ == nullptr || expectation_->moves) {
    return;
  }
  size_t next = 0;
  for (size_t i = 0; i < call_.arguments.size() && next < written_.size(); ++i) {
    if (detail::is_written(call_.op.schema().arguments()[i])) {
      for (const at::Tensor& expected : detail::tensors_of(expectation_->arguments[i])) {
        check_written(written_[next++], expected);
      }
    }
  }
}

void Contract::check_kind(const at::Tensor& returned) const {
  if (returned.requires_grad()) {
    refuse("returned a tensor that requires grad; a result is a new tensor");
  }
  if (returned.is_inference() && !c10::InferenceMode::is_enabled()) {
    refuse(
        "returned a tensor made in torch.inference_mode(), through which no gradient flows; return "
        "one that is made outside of it, such as its clone()");
  }
  const auto keys = returned.key_set() - c10::autograd_dispatch_keyset_with_ADInplaceOrView -
                    c10::autocast_dispatch_keyset -
                    c10::DispatchKeySet({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});
  const c10::DispatchKey kind = keys.highestPriorityTypeId();
  if (!c10::isBackendDispatchKey(kind) && !returned.is_nested()) {
    refuse("returned a tensor that only stands for one (", kind, ")");
  }
}

// Where the operator's results are; nothing where only the operator knows.
std::optional<c10::Device> Contract::device() const {
  std::optional<c10::Device> asked;
  std::optional<c10::Device> common;
  const auto look = [&common](const at::Tensor& t) {
    common = !common.has_value() || common->is_cpu() ? t.device() : common;
  };
  for (const c10::IValue& argument : call_.arguments) {
    asked = argument.isDevice() ? argument.toDevice() : asked;
    detail::for_each_boxed_tensor(look, argument);
  }
  return asked.has_value() ? asked : common;
}

void Contract::check_device(const at::Tensor& returned, const c10::Device& expected) const {
  const c10::Device found = returned.device();
  const bool is_same = found.type() == expected.type() &&
                       (!expected.has_index() || found.index() == expected.index());
  // Lengths and seeds are the CPU's on every device.
  const bool is_count =
      found.is_cpu() && c10::isIntegralType(returned.scalar_type(), /*includeBool=*/false);
  if (!is_same && !is_count) {
    refuse("returned a tensor on ", found, ", and the operator's result is on ", expected);
  }
}

// Autograd gives a result a history of its own, which an argument or what shares its memory has.
void Contract::check_is_new(const std::vector<at::Tensor>& results) const {
  std::vector<std::pair<const void*, size_t>> given;
  for (size_t i = 0; i < call_.arguments.size(); ++i) {
    const auto add = [&](const at::Tensor& t) { given.emplace_back(memory_of(t), i); };
    detail::for_each_boxed_tensor(add, call_.arguments[i]);
  }
  std::sort(given.begin(), given.end());
  for (const at::Tensor& t : results) {
    const std::pair<const void*, size_t> first{memory_of(t), 0};
    const auto found = std::lower_bound(given.begin(), given.end(), first);
    if (found != given.end() && found->first == first.first) {
      const std::string& name = call_.op.schema().arguments()[found->second].name();
      refuse("returned the argument '", name, "' or its memory; a result is a new tensor");
    }
  }
}

// Results of one operator may be parts of one memory, and not the same parts.
void Contract::check_apart(const std::vector<at::Tensor>& results) const {
  std::vector<std::pair<const void*, const at::Tensor*>> sorted;
  for (const at::Tensor& t : results) {
    sorted.emplace_back(memory_of(t), &t);
  }
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    for (size_t k = i + 1; k < sorted.size() && sorted[k].first == sorted[i].first; ++k) {
      if (!are_apart(*sorted[i].second, *sorted[k].second)) {
        refuse("returned the same memory twice; each result is a tensor of its own");
      }
    }
  }
}

// Results that are of the sizes and dtypes that are expected. Where they are not, it is Meta that
// may be wrong, and the kernel that was there before has the last word.
std::shared_ptr<const Expectation> Contract::expectation_like(
    at::ArrayRef<c10::IValue> results) const {
  if (expectation_ == nullptr || !difference(results, expectation_->results).has_value()) {
    return expectation_;
  }
  const std::shared_ptr<const Expectation> former = of_former_kernel();
  const auto& expected = former != nullptr ? former : expectation_;
  if (const auto found = difference(results, expected->results)) {
    refuse("returned ", *found);
  }
  return expected;
}

// On copies, as it may write; nullptr where calling it would change what is drawn after it.
std::shared_ptr<const Expectation> Contract::of_former_kernel() const {
  if (call_.op.hasTag(at::Tag::nondeterministic_seeded)) {
    return nullptr;
  }
  const Suspended suspended;
  torch::jit::Stack stack;
  for (const c10::IValue& argument : call_.arguments) {
    stack.push_back(detail::map_boxed_tensors(&copy_of, argument));
  }
  call_.former.call_boxed(call_.op, call_.keys, &stack);
  return corrected_expectation(call_.op, call_.arguments, *expectation_, stack);
}

void Contract::fulfil(torch::jit::Stack& stack) const {
  check_all_written();
  const std::optional<c10::Device> expected_device = device();
  const auto& returns = call_.op.schema().returns();
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < returns.size(); ++i) {
    if (returns[i].alias_info() == nullptr) {
      const auto add = [&all](const at::Tensor& t) { all.push_back(t); };
      detail::for_each_boxed_tensor(add, torch::jit::peek(stack, i, returns.size()));
    }
  }
  if (!is_unsafe_view(call_.op)) {
    check_is_new(all);
  }
  for (const at::Tensor& t : all) {
    check_kind(t);
    if (expected_device.has_value()) {
      check_device(t, *expected_device);
    }
  }
  check_apart(all);
  const auto expectation = expectation_like(torch::jit::last(stack, returns.size()));
  for (size_t i = 0; i < returns.size(); ++i) {
    if (returns[i].alias_info() == nullptr) {
      c10::IValue& result = torch::jit::peek(stack, i, returns.size());
      result = as_callers_get_it(
          result, expectation == nullptr ? c10::IValue() : expectation->results[i]);
    }
  }
}

} // namespace torchext::runtime
