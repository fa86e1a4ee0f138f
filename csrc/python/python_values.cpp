// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/generated/python_values.h>

#include <torch/csrc/Device.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/object_ptr.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/tensor_memoryformats.h>

#include <utility>

// Declared in a header that takes a minute to compile.
namespace torch::jit {
TORCH_PYTHON_API pybind11::object toPyObject(c10::IValue value);
}

namespace torchext {
inline namespace v1 {
namespace {

/// The reference that a function of Python's C API made.
PyObject* checked(PyObject* made) {
  if (made == nullptr) {
    throw python_error();
  }
  return made;
}

} // namespace

PyObject* tuple_of(size_t count, const std::function<PyObject*(size_t)>& element) {
  THPObjectPtr tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(count))));
  for (size_t i = 0; i < count; ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), checked(element(i)));
  }
  return tuple.release();
}

PyObject* to_python(int64_t value) {
  return checked(PyLong_FromUnsignedLongLong(static_cast<unsigned long long>(value)));
}

PyObject* to_python(const c10::SymInt& value) {
  const auto number = value.maybe_as_int();
  return number ? to_python(*number) : pybind11::cast(value).release().ptr();
}

PyObject* to_python(const c10::SymBool& value) {
  return pybind11::cast(value).release().ptr();
}

PyObject* to_python(double value) {
  return checked(PyFloat_FromDouble(value));
}

PyObject* to_python(bool value) {
  return Py_NewRef(value ? Py_True : Py_False);
}

PyObject* to_python(const c10::complex<double>& value) {
  return checked(PyComplex_FromDoubles(value.real(), value.imag()));
}

PyObject* to_python(const std::string& value) {
  return checked(PyUnicode_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size())));
}

PyObject* to_python(const at::Scalar& value) {
  if (value.isComplex()) {
    return to_python(value.toComplexDouble());
  }
  if (value.isFloatingPoint()) {
    return to_python(value.toDouble());
  }
  if (value.isBoolean()) {
    return to_python(value.toBool());
  }
  return checked(PyLong_FromLongLong(value.toLong()));
}

PyObject* to_python(at::ScalarType value) {
  return Py_NewRef(reinterpret_cast<PyObject*>(torch::getTHPDtype(value)));
}

PyObject* to_python(at::Layout value) {
  return Py_NewRef(reinterpret_cast<PyObject*>(torch::getTHPLayout(value)));
}

PyObject* to_python(at::MemoryFormat value) {
  return Py_NewRef(torch::utils::getTHPMemoryFormat(value));
}

PyObject* to_python(const at::Device& value) {
  return checked(THPDevice_New(value));
}

PyObject* to_python(at::DeviceIndex value) {
  return checked(PyLong_FromLong(value));
}

PyObject* to_python(c10::IValue value) {
  return torch::jit::toPyObject(std::move(value)).release().ptr();
}

} // namespace v1
} // namespace torchext
