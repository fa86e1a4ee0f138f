// SPDX-License-Identifier: BSD-3-Clause
//
// What a backward node saved, as Python sees it: the value that PyTorch's own nodes give, bit for
// bit where they give one. Every function returns a new reference, or throws python_error.
#pragma once

#include <torch/csrc/python_headers.h>

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/core/SymBool.h>
#include <c10/core/SymInt.h>
#include <c10/util/OptionalArrayRef.h>
#include <c10/util/complex.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace torchext {
inline namespace v1 {

/// A tuple of what `element` makes for each index.
PyObject* tuple_of(size_t count, const std::function<PyObject*(size_t)>& element);

/// PyTorch's nodes take every integer for an unsigned one: `_saved_dim` of -1 is 2**64 - 1.
PyObject* to_python(int64_t value);
PyObject* to_python(const c10::SymInt& value);
PyObject* to_python(const c10::SymBool& value);
PyObject* to_python(double value);
PyObject* to_python(bool value);
PyObject* to_python(const c10::complex<double>& value);
PyObject* to_python(const std::string& value);
PyObject* to_python(const at::Scalar& value);
PyObject* to_python(at::ScalarType value);
PyObject* to_python(at::Layout value);
PyObject* to_python(at::MemoryFormat value);
PyObject* to_python(const at::Device& value);
PyObject* to_python(at::DeviceIndex value);

/// Everything else as operators return it: generators, streams, dictionaries, lists of lists.
PyObject* to_python(c10::IValue value);

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

template <typename T, typename = std::enable_if_t<std::is_constructible_v<c10::IValue, const T&>>>
PyObject* to_python(const T& value) {
  return to_python(c10::IValue(value));
}

template <typename T>
PyObject* to_python(const std::optional<T>& value) {
  return value.has_value() ? to_python(*value) : Py_NewRef(Py_None);
}

template <typename T>
PyObject* to_python(const std::vector<T>& values) {
  return tuple_of(values.size(), [&values](size_t i) { return to_python(values[i]); });
}

template <typename T, size_t N>
PyObject* to_python(const std::array<T, N>& values) {
  return tuple_of(N, [&values](size_t i) { return to_python(values[i]); });
}

} // namespace v1
} // namespace torchext
