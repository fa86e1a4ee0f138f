// SPDX-License-Identifier: BSD-3-Clause
#include "python_kernel.h"

#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>
#include <torchext/boxed.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace torchext::runtime {
namespace {

// Python's error as an exception that autograd carries from its threads to the caller's.
[[noreturn]] void throw_python_error() {
  python_error error;
  error.persist();
  throw error;
}

// Not a TypeError: Python's `+` would take it for its own and say that tensors have no addition.
template <typename... Parts>
[[noreturn]] void refuse(const c10::OperatorHandle& op, py::handle function, const Parts&... what) {
  const bool is_named = py::hasattr(function, "__qualname__");
  const std::string name = py::str(is_named ? function.attr("__qualname__") : function);
  TORCH_CHECK(false, op.operator_name(), ": its overriding kernel ", name, " returned ", what...);
}

// Dtypes, layouts and memory formats are numbers to the dispatcher.
py::object to_python(const c10::Argument& argument, c10::IValue value) {
  c10::TypePtr type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) {
    type = optional->getElementType();
  }
  if (!value.isNone()) {
    switch (type->kind()) {
      case c10::TypeKind::ScalarTypeType:
        return py::cast(static_cast<at::ScalarType>(value.toInt()));
      case c10::TypeKind::LayoutType:
        return py::cast(static_cast<at::Layout>(value.toInt()));
      case c10::TypeKind::MemoryFormatType:
        return py::cast(static_cast<at::MemoryFormat>(value.toInt()));
      default:
        break;
    }
  }
  return torch::jit::toPyObject(std::move(value));
}

bool has_default(const c10::Argument& argument, const c10::IValue& value) {
  return argument.default_value().has_value() && *argument.default_value() == value;
}

py::object call(
    py::handle function,
    const c10::FunctionSchema& schema,
    const std::vector<c10::IValue>& values) {
  const auto& arguments = schema.arguments();
  size_t positional = 0;
  py::dict keywords;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_left_out = has_default(arguments[i], values[i]);
    if (!arguments[i].kwarg_only()) {
      positional = is_left_out ? positional : i + 1;
    } else if (!is_left_out) {
      keywords[arguments[i].name().c_str()] = to_python(arguments[i], values[i]);
    }
  }
  py::tuple given(positional);
  for (size_t i = 0; i < positional; ++i) {
    given[i] = to_python(arguments[i], values[i]);
  }
  PyObject* result = PyObject_Call(function.ptr(), given.ptr(), keywords.ptr());
  if (result == nullptr) {
    throw_python_error();
  }
  return py::reinterpret_steal<py::object>(result);
}

// Autograd gives a result a history of its own, which an argument or what shares its memory has.
void check_new(
    const c10::OperatorHandle& op,
    py::handle function,
    const c10::IValue& result,
    const std::vector<c10::IValue>& values) {
  const auto check = [&](const at::Tensor& tensor) {
    if (tensor.requires_grad()) {
      refuse(op, function, "a tensor that requires grad; a result is a new tensor");
    }
    for (size_t i = 0; tensor.defined() && i < values.size(); ++i) {
      const auto compare = [&](const at::Tensor& argument) {
        const bool has_memory = argument.has_storage() && tensor.has_storage();
        if (argument.is_same(tensor) || (has_memory && argument.is_alias_of(tensor))) {
          const std::string& name = op.schema().arguments()[i].name();
          refuse(op, function, "the argument '", name, "' or its memory; a result is a new tensor");
        }
      };
      torchext::detail::for_each_boxed_tensor(compare, values[i]);
    }
  };
  torchext::detail::for_each_boxed_tensor(check, result);
}

// Whether nobody asked for a result: an `output_mask` says for which gradients somebody does.
bool is_masked(
    const c10::FunctionSchema& schema, size_t result, const std::vector<c10::IValue>& values) {
  for (const c10::IValue& value : values) {
    if (value.isBoolList() && value.toBoolList().size() == schema.returns().size()) {
      return !value.toBoolList()[result];
    }
  }
  return false;
}

c10::IValue to_result(
    const c10::OperatorHandle& op,
    py::handle function,
    const c10::Argument& expected,
    py::handle given,
    bool may_be_none = false) {
  const auto& type = expected.real_type();
  // Where a tensor is expected, toIValue takes None for an undefined one.
  if (may_be_none || !given.is_none() || type->kind() != c10::TypeKind::TensorType) {
    try {
      return torch::jit::toIValue(given, type);
    } catch (const std::exception&) {
      PyErr_Clear();
    }
  }
  const char* found = Py_TYPE(given.ptr())->tp_name;
  refuse(op, function, "'", found, "', and the operator's result is ", type->repr_str());
}

std::vector<at::Tensor> tensors_of(const c10::IValue& value) {
  std::vector<at::Tensor> found;
  const auto add = [&found](const at::Tensor& tensor) { found.push_back(tensor); };
  torchext::detail::for_each_boxed_tensor(add, value);
  return found;
}

// A result that is an argument: the function may return it, or nothing.
c10::IValue written(
    const c10::OperatorHandle& op,
    py::handle function,
    const c10::Argument& expected,
    const std::vector<c10::IValue>& values,
    py::handle given) {
  const auto& arguments = op.schema().arguments();
  const auto own = std::find_if(arguments.begin(), arguments.end(), [&](const c10::Argument& a) {
    return torchext::detail::same_alias(a, expected);
  });
  TORCH_INTERNAL_ASSERT(own != arguments.end(), op.schema());
  const c10::IValue& value = values[own - arguments.begin()];
  if (!given.is_none()) {
    const auto found = tensors_of(to_result(op, function, expected, given));
    const auto are_same = [](const at::Tensor& a, const at::Tensor& b) { return a.is_same(b); };
    const auto wanted = tensors_of(value);
    if (!std::equal(found.begin(), found.end(), wanted.begin(), wanted.end(), are_same)) {
      refuse(op, function, "another tensor than '", own->name(), "', which it is to write to");
    }
  }
  return value;
}

std::vector<py::object> results_of(
    const c10::OperatorHandle& op, py::handle function, const py::object& returned) {
  const size_t count = op.schema().returns().size();
  if (count == 1) {
    return {returned};
  }
  std::vector<py::object> found;
  if (PyTuple_Check(returned.ptr()) || PyList_Check(returned.ptr())) {
    for (const py::handle item : returned) {
      found.push_back(py::reinterpret_borrow<py::object>(item));
    }
  } else if (!returned.is_none()) {
    found = {returned};
  }
  if (found.size() != count) {
    refuse(op, function, found.size(), " results, and the operator has ", count);
  }
  return found;
}

} // namespace

PythonKernel::PythonKernel(py::object function)
    : function_(function.release().ptr(), getPyInterpreter()) {}

PyObject* PythonKernel::function() const {
  return function_.ptr(getPyInterpreter());
}

void PythonKernel::run(const c10::OperatorHandle& op, torch::jit::Stack* stack) const {
  const c10::FunctionSchema& schema = op.schema();
  const std::vector<c10::IValue> values = torch::jit::pop(*stack, schema.arguments().size());
  const py::gil_scoped_acquire gil;
  const py::handle function = this->function();
  const py::object returned = call(function, schema, values);
  const std::vector<py::object> results = results_of(op, function, returned);
  for (size_t i = 0; i < results.size(); ++i) {
    const c10::Argument& expected = schema.returns()[i];
    if (torchext::detail::is_written(expected)) {
      torch::jit::push(*stack, written(op, function, expected, values, results[i]));
    } else {
      const bool may_be_none = is_masked(schema, i, values);
      c10::IValue result = to_result(op, function, expected, results[i], may_be_none);
      check_new(op, function, result, values);
      torch::jit::push(*stack, std::move(result));
    }
  }
}

} // namespace torchext::runtime
