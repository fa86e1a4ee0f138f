// SPDX-License-Identifier: BSD-3-Clause
//
// torchext._runtime: what torchext/overriding.py, torchext/fallback.py and torchext/testing call.

#include "expectation.h"
#include "fallback.h"
#include "override.h"
#include "python_kernel.h"

#include <c10/core/DispatchKeySet.h>
#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torchext/generated/boxed.h>
#include <torchext/generated/fallback_state.h>
#include <torchext/generated/overriding.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

namespace torchext::runtime {
namespace {

template <typename... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw py::value_error(c10::str(parts...));
}

c10::OperatorHandle find_operator(const std::string& name, const std::string& overload) {
  const auto found = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!found.has_value()) {
    refuse("there is no operator ", name, overload.empty() ? "" : ".", overload);
  }
  return *found;
}

c10::DispatchKey backend_key(const std::string& name) {
  std::optional<c10::DispatchKey> key;
  try {
    key = c10::parseDispatchKey(name);
  } catch (const c10::Error&) {
    refuse("'", name, "' is no dispatch key");
  }
  if (c10::isPerBackendFunctionalityKey(*key)) {
    refuse("'", name, "' is for several backends: name one of them, such as ", name, "CPU");
  }
  if (!c10::isBackendDispatchKey(*key)) {
    refuse("'", name, "' is no backend: kernels are overridden below autograd, for CPU, CUDA, ...");
  }
  return *key;
}

void check_can_be_overridden(const c10::OperatorHandle& op, c10::DispatchKey key) {
  if (!op.hasComputedKernelForDispatchKey(key)) {
    refuse(op.operator_name(), " has no kernel for ", key, " that could be overridden");
  }
  try {
    check_keeps_gradient(op, key);
  } catch (const c10::Error& error) {
    refuse(error.what_without_backtrace());
  }
}

// Whether two arguments or results have the same type and are written to or viewed alike.
bool are_alike(const c10::Argument& a, const c10::Argument& b) {
  const bool is_alias = a.alias_info() != nullptr;
  return *a.real_type() == *b.real_type() && a.kwarg_only() == b.kwarg_only() &&
         is_alias == (b.alias_info() != nullptr) &&
         (!is_alias || *a.alias_info() == *b.alias_info());
}

bool have_same_signature(const c10::FunctionSchema& a, const c10::FunctionSchema& b) {
  const auto same_argument = [](const c10::Argument& x, const c10::Argument& y) {
    return x.name() == y.name() && are_alike(x, y);
  };
  return std::equal(
             a.arguments().begin(),
             a.arguments().end(),
             b.arguments().begin(),
             b.arguments().end(),
             same_argument) &&
         std::equal(
             a.returns().begin(),
             a.returns().end(),
             b.returns().begin(),
             b.returns().end(),
             are_alike);
}

std::unique_ptr<Override> make_override(
    const c10::OperatorHandle& op,
    const std::string& key_name,
    std::shared_ptr<const Kernel> kernel) {
  const c10::DispatchKey key = backend_key(key_name);
  check_can_be_overridden(op, key);
  // Another thread may hold the dispatcher's lock and wait for Python's.
  const py::gil_scoped_release release;
  return std::make_unique<Override>(op, key, std::move(kernel));
}

using Name = std::pair<std::string, std::string>; // and overload

std::unique_ptr<Override> override_by_operator(
    const Name& name, const std::string& key, const Name& by) {
  const c10::OperatorHandle op = find_operator(name.first, name.second);
  const c10::OperatorHandle target = find_operator(by.first, by.second);
  if (!have_same_signature(op.schema(), target.schema())) {
    refuse(
        target.operator_name(),
        " cannot override ",
        op.operator_name(),
        ", its schema differs:\n    ",
        target.schema(),
        "\n    ",
        op.schema());
  }
  return make_override(op, key, std::make_shared<OperatorKernel>(target));
}

std::unique_ptr<Override> override_by_function(
    const Name& name, const std::string& key, py::object function) {
  const c10::OperatorHandle op = find_operator(name.first, name.second);
  for (const c10::Argument& result : op.schema().returns()) {
    if (detail::is_view(result)) {
      refuse(op.operator_name(), " returns a view, which a function in Python cannot make for it");
    }
  }
  return make_override(op, key, std::make_shared<PythonKernel>(std::move(function)));
}

// A function of Python's that refers to its override is garbage with it: the collector must see it.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (py::detail::is_holder_constructed(self)) {
    const Kernel* kernel = py::cast<const Override&>(py::handle(self)).kernel_of_its_own();
    if (const auto* own = dynamic_cast<const PythonKernel*>(kernel)) {
      Py_VISIT(own->function());
    }
  }
  return 0;
}

int clear(PyObject* self) {
  if (py::detail::is_holder_constructed(self)) {
    py::cast<Override&>(py::handle(self)).let_go();
  }
  return 0;
}

// While entered, this thread's warnings of C++ are dropped, which no filter of Python's sees.
class IgnoredWarnings {
 public:
  void enter() {
    static Ignore ignore;
    previous_ = c10::WarningUtils::get_warning_handler();
    c10::WarningUtils::set_warning_handler(&ignore);
  }

  void exit() {
    c10::WarningUtils::set_warning_handler(previous_);
  }

 private:
  struct Ignore final : c10::WarningHandler {
    void process(const c10::Warning& /*warning*/) override {}
  };

  c10::WarningHandler* previous_ = nullptr;
};

// Ctrl-C, which no kernel has an answer to.
bool is_python_interrupt(const std::exception& error) {
  const auto* raised = dynamic_cast<const python_error*>(&error);
  const py::gil_scoped_acquire gil;
  return raised != nullptr && PyErr_GivenExceptionMatches(raised->type, PyExc_Exception) == 0;
}

// While entered, no override holds on this thread.
class SuspendedOverrides {
 public:
  void enter() {
    suspended_.emplace();
  }

  void exit() {
    suspended_.reset();
  }

 private:
  std::optional<Suspended> suspended_;
};

void collect_garbage(PyHeapTypeObject* type) {
  type->ht_type.tp_flags |= Py_TPFLAGS_HAVE_GC;
  type->ht_type.tp_traverse = &traverse;
  type->ht_type.tp_clear = &clear;
}

} // namespace
} // namespace torchext::runtime

PYBIND11_MODULE(_runtime, module) {
  using namespace torchext::runtime;
  py::class_<IgnoredWarnings>(module, "IgnoredWarnings")
      .def(py::init<>())
      .def("__enter__", &IgnoredWarnings::enter)
      .def("__exit__", [](IgnoredWarnings& self, const py::args&) { self.exit(); });
  py::class_<Override>(module, "Override", py::custom_type_setup(&collect_garbage))
      .def("enter", &Override::enter, py::arg("place"))
      .def("exit", &Override::exit, py::arg("place"));
  py::class_<SuspendedOverrides>(module, "SuspendedOverrides")
      .def(py::init<>())
      .def("__enter__", &SuspendedOverrides::enter)
      .def("__exit__", [](SuspendedOverrides& self, const py::args&) { self.exit(); });
  is_interrupt = &is_python_interrupt;
  module.def("override_by_operator", &override_by_operator);
  module.def("override_by_function", &override_by_function);

  // The dispatcher's lock is never waited for with Python's held.
  const py::call_guard<py::gil_scoped_release> release;
  module.def("enable_fallback", &enable_fallback, release);
  module.def("disable_fallback", &disable_fallback, release);
  module.def("push_fallback_mode", &push_fallback_mode_of);
  module.def("pop_fallback_mode", &torchext::pop_fallback_mode);
  module.def("fallback_counts", &fallback_counts, release);
  module.def("reset_fallback_counts", &reset_fallback_counts, release);
  use_python_warnings();
}
