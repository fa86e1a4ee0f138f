// SPDX-License-Identifier: BSD-3-Clause
//
// The tensors of boxed values, and what a schema says of its arguments.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace detail {

/// Calls `f` with each defined tensor of a boxed value, inside lists and dictionaries too.
template <typename F>
void for_each_boxed_tensor(const F& f, const c10::IValue& value) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) {
      f(value.toTensor());
    }
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) {
      for_each_boxed_tensor(f, item);
    }
  } else if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) {
      for_each_boxed_tensor(f, item);
    }
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) {
      for_each_boxed_tensor(f, item.value());
    }
  }
}

/// The value with every tensor in it replaced by `f` of it, inside lists and dictionaries too.
template <typename F>
c10::IValue map_boxed_tensors(const F& f, const c10::IValue& value) {
  if (value.isTensor()) {
    return value.toTensor().defined() ? c10::IValue(f(value.toTensor())) : value;
  }
  bool found = false;
  for_each_boxed_tensor([&found](const at::Tensor&) { found = true; }, value);
  if (!found) {
    return value;
  }
  if (value.isList()) {
    const c10::impl::GenericList list = value.toList();
    c10::impl::GenericList mapped(list.elementType());
    for (const c10::IValue& item : list) {
      mapped.push_back(map_boxed_tensors(f, item));
    }
    return mapped;
  }
  if (value.isTuple()) {
    std::vector<c10::IValue> mapped;
    for (const c10::IValue& item : value.toTupleRef().elements()) {
      mapped.push_back(map_boxed_tensors(f, item));
    }
    return c10::ivalue::Tuple::create(std::move(mapped));
  }
  const c10::impl::GenericDict dict = value.toGenericDict();
  c10::impl::GenericDict mapped(dict.keyType(), dict.valueType());
  for (const auto& item : dict) {
    mapped.insert(item.key(), map_boxed_tensors(f, item.value()));
  }
  return mapped;
}

/// The value with every SymInt in it replaced by `f` of it, where its type in a schema says SymInt.
template <typename F>
c10::IValue map_symints(const F& f, const c10::Type& type, const c10::IValue& value) {
  if (value.isNone()) {
    return value;
  }
  if (const auto* optional = type.castRaw<c10::OptionalType>()) {
    return map_symints(f, *optional->getElementType(), value);
  }
  if (type.kind() == c10::TypeKind::SymIntType) {
    return f(value.toSymInt());
  }
  const auto* list = type.castRaw<c10::ListType>();
  if (list != nullptr && list->getElementType()->kind() == c10::TypeKind::SymIntType) {
    std::vector<c10::SymInt> mapped;
    for (const c10::IValue& item : value.toListRef()) {
      mapped.push_back(f(item.toSymInt()));
    }
    return mapped;
  }
  return value;
}

inline std::vector<at::Tensor> tensors_of(const c10::IValue& value) {
  std::vector<at::Tensor> found;
  for_each_boxed_tensor([&found](const at::Tensor& t) { found.push_back(t); }, value);
  return found;
}

/// Whether an argument that may be missing is given.
inline bool is_there(const c10::IValue& value) {
  return !(value.isNone() || (value.isTensor() && !value.toTensor().defined()));
}

/// Whether an operator has a kernel for tensors without data. torch has one that refuses, so that the
/// key alone has.
inline bool has_meta_kernel(const c10::OperatorHandle& op) {
  bool found = false;
  for (const c10::DispatchKey key :
       {c10::DispatchKey::Meta,
        c10::DispatchKey::CompositeExplicitAutograd,
        c10::DispatchKey::CompositeExplicitAutogradNonFunctional,
        c10::DispatchKey::CompositeImplicitAutograd}) {
    found |= op.hasKernelForDispatchKey(key);
  }
  return found;
}

inline bool is_written(const c10::Argument& argument) {
  if (argument.alias_info() == nullptr) {
    return false;
  }
  bool written = argument.alias_info()->isWrite();
  for (const auto& inner : argument.alias_info()->containedTypes()) {
    written = written || inner.isWrite();
  }
  return written;
}

/// The letters of an annotation; of `Tensor(a)[]` they are the element's.
inline const std::unordered_set<at::Symbol>& alias_sets(const at::AliasInfo& info) {
  const bool is_list = info.beforeSets().empty() && !info.containedTypes().empty();
  return is_list ? info.containedTypes()[0].beforeSets() : info.beforeSets();
}

inline bool same_alias(const c10::Argument& a, const c10::Argument& b) {
  return a.alias_info() != nullptr && b.alias_info() != nullptr &&
         alias_sets(*a.alias_info()) == alias_sets(*b.alias_info());
}

inline bool is_view(const c10::Argument& result) {
  return result.alias_info() != nullptr && !is_written(result);
}

/// What an out= form has no argument for where its functional form makes a tensor of given options:
/// the tensor that it writes to has them. A device that an input has is not said again: what traces
/// the call with stand-ins for tensors would take it literally.
inline c10::IValue option_of(const at::Tensor& out, bool has_device, const std::string& name) {
  if (out.defined() && name == "dtype") {
    return out.scalar_type();
  }
  if (out.defined() && name == "layout") {
    return out.layout();
  }
  return out.defined() && name == "device" && !has_device ? c10::IValue(out.device())
                                                          : c10::IValue();
}

/// The arguments of another form of an operator, by name, out of those of one that writes.
inline std::vector<c10::IValue> arguments_of(
    const c10::FunctionSchema& other,
    const c10::FunctionSchema& schema,
    const std::vector<c10::IValue>& values) {
  at::Tensor out;
  bool has_device = false;
  for (size_t i = values.size(); i-- > 0;) {
    const bool is_out = schema.arguments()[i].kwarg_only() && is_written(schema.arguments()[i]);
    const auto look = [&](const at::Tensor& tensor) {
      has_device = has_device || (!is_out && out.defined() && tensor.device() == out.device());
      out = is_out ? tensor : out;
    };
    for_each_boxed_tensor(look, values[i]);
  }
  std::vector<c10::IValue> found;
  for (const c10::Argument& argument : other.arguments()) {
    const auto index = schema.argumentIndexWithName(argument.name());
    found.push_back(
        index.has_value() ? values[*index] : option_of(out, has_device, argument.name()));
  }
  return found;
}

} // namespace detail
} // namespace v1
} // namespace torchext
