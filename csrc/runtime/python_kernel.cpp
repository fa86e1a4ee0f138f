// SPDX-License-Identifier: BSD-3-Clause
#include "python_kernel.h"

#include "contract.h"

#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/utils/pybind.h>
#include <torchext/generated/boxed.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Declared in a header that takes half a gigabyte to compile.
namespace torch::jit {
TORCH_PYTHON_API pybind11::object toPyObject(c10::IValue value);
TORCH_PYTHON_API c10::IValue toIValue(
    pybind11::handle object, const c10::TypePtr& type, std::optional<int32_t> size = std::nullopt);
} // namespace torch::jit

namespace torchext::runtime {
namespace {

// Python's error as an exception that autograd carries from its threads to the caller's. What
// Python's operators ask of a TypeError is whether the other operand knows what to do: `==` would
// be False, so that the function's own is the cause of another one.
[[noreturn]] void throw_python_error(const c10::OperatorHandle& op, const Kernel& kernel) {
  if (PyErr_ExceptionMatches(PyExc_TypeError) != 0) {
    std::string what = toString(op.operator_name());
    {
      const py::error_scope kept;
      what += ": its overriding kernel " + kernel.name() + " raised a TypeError";
    }
    py::raise_from(PyExc_RuntimeError, what.c_str());
  }
  python_error error;
  error.persist();
  throw error;
}

// Dynamo may be on where an operator is called, between the graphs of a function that it compiles.
// While this lives it does not compile the function of a kernel, whose operators are kernels: what
// Inductor makes code for would pass by the overrides around this one.
class Uncompiled {
 public:
  Uncompiled() : before_(set_callback()(py::none())) {}
  Uncompiled(const Uncompiled&) = delete;
  Uncompiled& operator=(const Uncompiled&) = delete;
  ~Uncompiled() {
    const py::error_scope kept;
    set_callback()(before_);
  }

 private:
  static const py::object& set_callback() {
    static const auto* found =
        new py::object(py::module_::import("torch._C._dynamo.eval_frame").attr("set_eval_frame"));
    return *found;
  }

  py::object before_;
};

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
    const c10::OperatorHandle& op,
    const PythonKernel& kernel,
    const std::vector<c10::IValue>& values) {
  const auto& arguments = op.schema().arguments();
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
  const Uncompiled uncompiled;
  PyObject* result = PyObject_Call(kernel.function(), given.ptr(), keywords.ptr());
  if (result == nullptr) {
    throw_python_error(op, kernel);
  }
  return py::reinterpret_steal<py::object>(result);
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
    const Kernel& kernel,
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
  refuse(op, kernel, "returned '", found, "', and the operator's result is ", type->repr_str());
}

// A result that is an argument: the function may return it, or nothing.
c10::IValue written(
    const c10::OperatorHandle& op,
    const Kernel& kernel,
    const c10::Argument& expected,
    const std::vector<c10::IValue>& values,
    py::handle given) {
  const auto& arguments = op.schema().arguments();
  const auto own = std::find_if(arguments.begin(), arguments.end(), [&](const c10::Argument& a) {
    return detail::same_alias(a, expected);
  });
  TORCH_INTERNAL_ASSERT(own != arguments.end(), op.schema());
  const c10::IValue& value = values[own - arguments.begin()];
  if (!given.is_none()) {
    const auto found = detail::tensors_of(to_result(op, kernel, expected, given));
    const auto are_same = [](const at::Tensor& a, const at::Tensor& b) { return a.is_same(b); };
    const auto wanted = detail::tensors_of(value);
    if (!std::equal(found.begin(), found.end(), wanted.begin(), wanted.end(), are_same)) {
      refuse(
          op, kernel, "returned another tensor than '", own->name(), "', which it is to write to");
    }
  }
  return value;
}

std::vector<py::object> results_of(
    const c10::OperatorHandle& op, const Kernel& kernel, const py::object& returned) {
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
    refuse(op, kernel, "returned ", found.size(), " results, and the operator has ", count);
  }
  return found;
}

} // namespace

PythonKernel::PythonKernel(py::object function)
    : function_(function.release().ptr(), getPyInterpreter()) {}

PyObject* PythonKernel::function() const {
  return function_.ptr(getPyInterpreter());
}

std::string PythonKernel::name() const {
  const py::gil_scoped_acquire gil;
  const py::handle function = this->function();
  const bool is_named = py::hasattr(function, "__qualname__");
  return py::str(is_named ? function.attr("__qualname__") : function);
}

void PythonKernel::run(const c10::OperatorHandle& op, torch::jit::Stack* stack) const {
  const c10::FunctionSchema& schema = op.schema();
  const std::vector<c10::IValue> values = torch::jit::pop(*stack, schema.arguments().size());
  const py::gil_scoped_acquire gil;
  const py::object returned = call(op, *this, values);
  const std::vector<py::object> results = results_of(op, *this, returned);
  for (size_t i = 0; i < results.size(); ++i) {
    const c10::Argument& expected = schema.returns()[i];
    if (detail::is_written(expected)) {
      torch::jit::push(*stack, written(op, *this, expected, values, results[i]));
    } else {
      const bool may_be_none = is_masked(schema, i, values);
      torch::jit::push(*stack, to_result(op, *this, expected, results[i], may_be_none));
    }
  }
}

} // namespace torchext::runtime
