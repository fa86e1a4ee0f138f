// SPDX-License-Identifier: BSD-3-Clause
//
// The entry of a library's second shared object, which torchext.load_library calls.
#pragma once

#include <Python.h>
#include <torchext/visibility.h>

#include <exception>
#include <initializer_list>

namespace torchext {
inline namespace v1 {

/// Adds the classes of some nodes to a dictionary.
using AddClasses = void (*)(PyObject* classes);

/// The classes of a library's nodes by name: a new reference, or nullptr with Python's error set.
inline PyObject* node_classes(std::initializer_list<AddClasses> shards) noexcept {
  PyObject* classes = PyDict_New();
  try {
    for (const AddClasses add : shards) {
      if (classes != nullptr) {
        add(classes);
      }
    }
  } catch (const std::exception& error) {
    Py_CLEAR(classes);
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
    }
  }
  return classes;
}

} // namespace v1
} // namespace torchext

/// Defines what torchext.load_library calls.
#define TORCHEXT_DEFINE_PYTHON_LIBRARY(ns, ...)                      \
  extern "C" TORCHEXT_API PyObject* torchext_python_library_##ns() { \
    return torchext::node_classes({__VA_ARGS__});                    \
  }                                                                  \
  static_assert(true, "")
