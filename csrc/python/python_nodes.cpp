// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/generated/python_nodes.h>

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_cpp_function.h>
#include <torch/csrc/autograd/python_variable.h>

namespace torchext {
inline namespace v1 {
namespace detail {
namespace {

/// Reads what a node has saved without Python's lock: a thread that runs the node may hold that of
/// the node and want Python's, for hooks that unpack.
template <typename Read>
auto read_saved(BackwardNode& node, const Read& read) {
  const pybind11::gil_scoped_release without_python;
  return node.read_saved(read);
}

} // namespace

torch::autograd::Node& node_of(PyObject* self, const std::type_info& expected) {
  torch::autograd::Node* node =
      reinterpret_cast<torch::autograd::THPCppFunction*>(self)->cdata.get();
  TORCH_CHECK(node != nullptr, "the node of this grad_fn is gone");
  const std::type_info& type = typeid(*node);
  TORCH_CHECK(
      &type == &expected, "another library has a node ", node->name(), " of this namespace");
  return *node;
}

PyObject* saved_value(BackwardNode& node, const SavedVariable& saved) {
  return THPVariable_Wrap(read_saved(node, [&] { return saved.unpack(node.getptr()); }));
}

PyObject* saved_value(BackwardNode& node, const std::vector<SavedVariable>& saved) {
  const std::vector<at::Tensor> tensors = read_saved(node, [&] {
    node.check_not_released();
    return unpack(saved, node);
  });
  return tuple_of(tensors.size(), [&tensors](size_t i) { return THPVariable_Wrap(tensors[i]); });
}

PyObject* raw_value(PyObject* self, BackwardNode&, SavedVariable& saved) {
  const auto policy = pybind11::return_value_policy::reference_internal;
  return pybind11::cast(saved, policy, self).release().ptr();
}

PyObject* raw_value(PyObject* self, BackwardNode& node, std::vector<SavedVariable>& saved) {
  const std::vector<SavedVariable*> pointers = read_saved(node, [&] {
    node.check_not_released();
    std::vector<SavedVariable*> found;
    for (SavedVariable& one : saved) {
      found.push_back(&one);
    }
    return found;
  });
  return tuple_of(pointers.size(), [&](size_t i) { return raw_value(self, node, *pointers[i]); });
}

PyObject* without_exceptions(PyObject* self, PyObject* (*read)(PyObject* self)) {
  HANDLE_TH_ERRORS
  return read(self);
  END_HANDLE_TH_ERRORS
}

void add_class(
    PyObject* classes,
    const char* name,
    const std::type_info& node,
    PyTypeObject& type,
    std::initializer_list<PyGetSetDef> saved) {
  using namespace torch::autograd; // the macro's names
  if (type.tp_name == nullptr) {
    auto* properties = new std::vector<PyGetSetDef>{THP_FUNCTION_DEFAULT_PROPERTIES};
    properties->insert(properties->end(), saved);
    properties->push_back({});
    _initFunctionPyTypeObject(type, name, properties->data(), nullptr);
    registerCppFunction(node, &type);
  }
  if (PyDict_SetItemString(classes, name, reinterpret_cast<PyObject*>(&type)) != 0) {
    throw python_error();
  }
}

} // namespace detail
} // namespace v1
} // namespace torchext
