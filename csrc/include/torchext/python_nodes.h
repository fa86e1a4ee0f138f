// SPDX-License-Identifier: BSD-3-Clause
//
// The Python class of a backward node: grad_fn shows under the node's name, and what the node saved
// are properties, `_saved_self` and `_raw_saved_self`, as those of PyTorch's own nodes are. Only a
// library's second shared object includes this, the one that needs Python.
#pragma once

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_cpp_function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torchext/autograd.h>
#include <torchext/python_values.h>

#include <initializer_list>
#include <type_traits>
#include <typeinfo>
#include <utility>
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
template <typename Class>
Class& node_of(PyObject* self) {
  torch::autograd::Node* node =
      reinterpret_cast<torch::autograd::THPCppFunction*>(self)->cdata.get();
  TORCH_CHECK(node != nullptr, "the node of this grad_fn is gone");
  const std::type_info& type = typeid(*node);
  TORCH_CHECK(
      &type == &typeid(Class), "another library has a node ", node->name(), " of this namespace");
  return static_cast<Class&>(*node);
}

/// Reads what a node has saved without Python's lock: a thread that runs the node may hold that of
/// the node and want Python's, for hooks that unpack.
template <typename Read>
auto read_saved(BackwardNode& node, const Read& read) {
  const pybind11::gil_scoped_release without_python;
  return node.read_saved(read);
}

inline PyObject* wrap(const at::Tensor& tensor) {
  return THPVariable_Wrap(tensor);
}

/// What backward would read, hooks applied.
inline PyObject* saved_value(BackwardNode& node, const SavedVariable& saved) {
  return wrap(read_saved(node, [&] { return saved.unpack(node.getptr()); }));
}

inline PyObject* saved_value(BackwardNode& node, const std::vector<SavedVariable>& saved) {
  const std::vector<at::Tensor> tensors = read_saved(node, [&] {
    node.check_not_released();
    return unpack(saved, node);
  });
  return tuple_of(tensors, &wrap);
}

template <typename T>
PyObject* saved_value(BackwardNode&, const T& value) {
  return to_python(value);
}

/// The SavedVariable itself, as a SavedTensor that keeps the node alive.
inline PyObject* raw_value(PyObject* self, BackwardNode&, SavedVariable& saved) {
  const auto policy = pybind11::return_value_policy::reference_internal;
  return pybind11::cast(saved, policy, self).release().ptr();
}

inline PyObject* raw_value(PyObject* self, BackwardNode& node, std::vector<SavedVariable>& saved) {
  const std::vector<SavedVariable*> pointers = read_saved(node, [&] {
    node.check_not_released();
    std::vector<SavedVariable*> found;
    for (SavedVariable& one : saved) {
      found.push_back(&one);
    }
    return found;
  });
  return tuple_of(pointers, [&](SavedVariable* one) { return raw_value(self, node, *one); });
}

template <auto member>
PyObject* get_saved(PyObject* self, void*) {
  HANDLE_TH_ERRORS
  auto& node = node_of<typename MemberOf<decltype(member)>::Class>(self);
  return saved_value(node, node.*member);
  END_HANDLE_TH_ERRORS
}

template <auto member>
PyObject* get_raw_saved(PyObject* self, void*) {
  HANDLE_TH_ERRORS
  auto& node = node_of<typename MemberOf<decltype(member)>::Class>(self);
  return raw_value(self, node, node.*member);
  END_HANDLE_TH_ERRORS
}

} // namespace detail

/// The property of a saved value.
template <auto member>
PyGetSetDef saved(const char* name) {
  return {name, &detail::get_saved<member>, nullptr, nullptr, nullptr};
}

/// The property of a saved tensor, or list of them, before its hooks have unpacked it.
template <auto member>
PyGetSetDef raw_saved(const char* name) {
  return {name, &detail::get_raw_saved<member>, nullptr, nullptr, nullptr};
}

/// Registers the class of a node with these properties and those that every node has, and adds it
/// to a dictionary. The first call makes the class, which lives as long as the process.
template <typename Class>
void add_class(PyObject* classes, const char* name, std::initializer_list<PyGetSetDef> saved) {
  using namespace torch::autograd; // the macro's names
  static PyTypeObject type;
  if (type.tp_name == nullptr) {
    auto* properties = new std::vector<PyGetSetDef>{THP_FUNCTION_DEFAULT_PROPERTIES};
    properties->insert(properties->end(), saved);
    properties->push_back({});
    _initFunctionPyTypeObject(type, name, properties->data(), nullptr);
    registerCppFunction(typeid(Class), &type);
  }
  if (PyDict_SetItemString(classes, name, reinterpret_cast<PyObject*>(&type)) != 0) {
    throw python_error();
  }
}

} // namespace v1
} // namespace torchext
