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
#include <mutex>
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

/// Opens what BackwardNode keeps to itself.
struct NodeAccess : BackwardNode {
  static std::mutex& mutex(BackwardNode& node) {
    return node.*(&NodeAccess::mutex_);
  }

  static bool is_released(const BackwardNode& node) {
    return node.*(&NodeAccess::released_);
  }
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

/// A node that this thread reads; hooks that unpack may read other nodes meanwhile, or this again.
class Reading {
 public:
  explicit Reading(const BackwardNode& node) : node_(node), outer_(innermost()) {
    innermost() = this;
  }

  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  ~Reading() {
    innermost() = outer_;
  }

  static bool is_under_way(const BackwardNode& node) {
    const Reading* reading = innermost();
    while (reading != nullptr && &reading->node_ != &node) {
      reading = reading->outer_;
    }
    return reading != nullptr;
  }

 private:
  static Reading*& innermost() {
    static thread_local Reading* reading = nullptr;
    return reading;
  }

  const BackwardNode& node_;
  Reading* const outer_;
};

/// Reads saved variables while no other thread can release them. A thread that runs the node holds
/// its mutex and may want Python's lock, for hooks that unpack; so Python's is given up before the
/// mutex is asked for. The thread that holds the mutex may come here again, from such a hook.
template <typename Read>
auto read_saved(BackwardNode& node, const Read& read) {
  const bool is_running = torch::autograd::get_current_node().get() == &node;
  if (is_running || Reading::is_under_way(node)) {
    return read();
  }
  const pybind11::gil_scoped_release without_python;
  const std::lock_guard<std::mutex> lock(NodeAccess::mutex(node));
  const Reading reading(node);
  return read();
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
    TORCH_CHECK(!NodeAccess::is_released(node), torch::autograd::ERR_BACKWARD_TWICE);
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
    TORCH_CHECK(!NodeAccess::is_released(node), torch::autograd::ERR_BACKWARD_TWICE);
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
