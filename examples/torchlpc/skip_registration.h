// SPDX-License-Identifier: BSD-3-Clause
//
// The package's files register their kernels and make a Python module. Here the two YAML files do
// the former, and a library of operators links no Python: what they say becomes functions that
// nobody calls.
#pragma once

#include <Python.h>
#include <torch/library.h>

#undef PyModule_Create
#define PyModule_Create(definition) (static_cast<void>(definition), nullptr)
#undef TORCH_LIBRARY
#define TORCH_LIBRARY(name, m) \
  [[maybe_unused]] static void C10_ANONYMOUS_VARIABLE(register_)(torch::Library & m)
#undef TORCH_LIBRARY_IMPL
#define TORCH_LIBRARY_IMPL(name, key, m) TORCH_LIBRARY(name, m)
