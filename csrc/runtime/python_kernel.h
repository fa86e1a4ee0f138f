// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels in Python.
#pragma once

#include "override.h"

#include <c10/core/SafePyObject.h>
#include <pybind11/pybind11.h>

#include <string>

namespace torchext::runtime {

/// A Python function with the arguments of the operator, called as the operator would be: those
/// that have their default are left out.
class PythonKernel final : public Kernel {
 public:
  explicit PythonKernel(pybind11::object function);
  void run(const c10::OperatorHandle& op, torch::jit::Stack* stack) const override;
  std::string name() const override;

  PyObject* function() const;

 private:
  c10::SafePyObject function_;
};

} // namespace torchext::runtime
