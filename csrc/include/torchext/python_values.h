// SPDX-License-Identifier: BSD-3-Clause
//
// What a backward node saved, as Python sees it: the value that PyTorch's own nodes give, bit for
// bit where they give one. Every function returns a new reference, or throws python_error.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymInt.h>
#include <c10/util/OptionalArrayRef.h>
#include <c10/util/complex.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/tensor_memoryformats.h>

#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// Declared in a header that takes a minute to compile.
namespace torch::jit {
TORCH_PYTHON_API pybind11::object toPyObject(c10::IValue value);
}

namespace torchext {
inline namespace v1 {

/// The reference that a function of Python's C API made.
inline PyObject* checked(PyObject* made) {
  if (made == nullptr) {
    throw python_error();
  }
  return made;
}

/// A tuple of what `convert` makes of each element.
template <typename List, typename Convert>
PyObject* tuple_of(const List& list, const Convert& convert) {
  THPObjectPtr tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(list.size()))));
  Py_ssize_t index = 0;
  for (const auto& element : list) {
    PyTuple_SET_ITEM(tuple.get(), index++, checked(convert(element)));
  }
  return tuple.release();
}

/// PyTorch's nodes take every integer for an unsigned one: `_saved_dim` of -1 is 2**64 - 1.
inline PyObject* to_python(int64_t value) {
  return checked(PyLong_FromUnsignedLongLong(static_cast<unsigned long long>(value)));
}

inline PyObject* to_python(const c10::SymInt& value) {
  const auto number = value.maybe_as_int();
  return number ? to_python(*number) : pybind11::cast(value).release().ptr();
}

inline PyObject* to_python(const c10::SymBool& value) {
  return pybind11::cast(value).release().ptr();
}

inline PyObject* to_python(double value) {
  return checked(PyFloat_FromDouble(value));
}

inline PyObject* to_python(bool value) {
  return Py_NewRef(value ? Py_True : Py_False);
}

inline PyObject* to_python(const c10::complex<double>& value) {
  return checked(PyComplex_FromDoubles(value.real(), value.imag()));
}

inline PyObject* to_python(const std::string& value) {
  return checked(PyUnicode_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size())));
}

inline PyObject* to_python(const at::Scalar& value) {
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

inline PyObject* to_python(at::ScalarType value) {
  return Py_NewRef(reinterpret_cast<PyObject*>(torch::getTHPDtype(value)));
}

inline PyObject* to_python(at::Layout value) {
  return Py_NewRef(reinterpret_cast<PyObject*>(torch::getTHPLayout(value)));
}

inline PyObject* to_python(at::MemoryFormat value) {
  return Py_NewRef(torch::utils::getTHPMemoryFormat(value));
}

inline PyObject* to_python(const at::Device& value) {
  return checked(THPDevice_New(value));
}

inline PyObject* to_python(at::DeviceIndex value) {
  return checked(PyLong_FromLong(value));
}

template <typename T>
PyObject* to_python(const std::optional<T>& value);

template <typename T>
PyObject* to_python(const std::vector<T>& values);

template <typename T, size_t N>
PyObject* to_python(const std::array<T, N>& values);

template <typename T>
PyObject* to_python(const c10::OptionalArray<T>& values) {
  return to_python(values.list);
}

/// Everything else as operators return it: generators, streams, dictionaries, lists of lists.
template <typename T, typename = std::enable_if_t<std::is_constructible_v<c10::IValue, const T&>>>
PyObject* to_python(const T& value) {
  return torch::jit::toPyObject(c10::IValue(value)).release().ptr();
}

template <typename T>
PyObject* to_python(const std::optional<T>& value) {
  return value.has_value() ? to_python(*value) : Py_NewRef(Py_None);
}

template <typename T>
PyObject* to_python(const std::vector<T>& values) {
  return tuple_of(values, [](const T& value) { return to_python(value); });
}

template <typename T, size_t N>
PyObject* to_python(const std::array<T, N>& values) {
  return tuple_of(values, [](const T& value) { return to_python(value); });
}

} // namespace v1
} // namespace torchext
