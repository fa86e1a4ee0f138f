// SPDX-License-Identifier: BSD-3-Clause
//
// The Python class of a backward node: grad_fn shows under the node's name, and what the node saved
// are properties, `_saved_self` and `_raw_saved_self`, as those of PyTorch's own nodes are. Only a
// library's second shared object includes this, the one that needs Python.
#pragma once

#include <torchext/generated/python_values.h>

#include <torchext/generated/autograd.h>

#include <initializer_list>
#include <typeinfo>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace detail {

template <typename>
struct MemberOf;

/// The class and the type of a pointer to a member.
template <typename C, typename M>
struct MemberOf<M C::*> {
  using Class = C;
  using Member = M;
};

/// The node of a grad_fn object. Classes are found by the name of a type, which two libraries may
/// both have: then the class found is that of the library loaded last, and does not fit.
torch::autograd::Node& node_of(PyObject* self, const std::type_info& type);

/// What backward would read, hooks applied.
PyObject* saved_value(BackwardNode& node, const SavedVariable& saved);
PyObject* saved_value(BackwardNode& node, const std::vector<SavedVariable>& saved);

template <typename T>
PyObject* saved_value(BackwardNode&, const T& value) {
  return to_python(value);
}

/// The SavedVariable itself, as a SavedTensor that keeps the node alive.
PyObject* raw_value(PyObject* self, BackwardNode& node, SavedVariable& saved);
PyObject* raw_value(PyObject* self, BackwardNode& node, std::vector<SavedVariable>& saved);

/// What `read` returns; where it throws, null with the error set in Python.
PyObject* without_exceptions(PyObject* self, PyObject* (*read)(PyObject* self));

template <auto member>
PyObject* read_value(PyObject* self) {
  using Class = typename MemberOf<decltype(member)>::Class;
  auto& node = static_cast<Class&>(node_of(self, typeid(Class)));
  return saved_value(node, node.*member);
}

template <auto member>
PyObject* read_raw_value(PyObject* self) {
  using Class = typename MemberOf<decltype(member)>::Class;
  auto& node = static_cast<Class&>(node_of(self, typeid(Class)));
  return raw_value(self, node, node.*member);
}

template <PyObject* (*read)(PyObject* self)>
PyGetSetDef property(const char* name) {
  const auto get = [](PyObject* self, void*) { return without_exceptions(self, read); };
  return {name, get, nullptr, nullptr, nullptr};
}

void add_class(
    PyObject* classes,
    const char* name,
    const std::type_info& node,
    PyTypeObject& type,
    std::initializer_list<PyGetSetDef> saved);

} // namespace detail

/// The property of a saved value.
template <auto member>
PyGetSetDef saved(const char* name) {
  return detail::property<&detail::read_value<member>>(name);
}

/// The property of a saved tensor, or list of them, before its hooks have unpacked it.
template <auto member>
PyGetSetDef raw_saved(const char* name) {
  return detail::property<&detail::read_raw_value<member>>(name);
}

/// Registers the class of a node with these properties and those that every node has, and adds it
/// to a dictionary. The first call makes the class, which lives as long as the process.
template <typename Class>
void add_class(PyObject* classes, const char* name, std::initializer_list<PyGetSetDef> saved) {
  static PyTypeObject type;
  detail::add_class(classes, name, typeid(Class), type, saved);
}

} // namespace v1
} // namespace torchext
