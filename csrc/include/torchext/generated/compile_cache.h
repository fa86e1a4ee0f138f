// SPDX-License-Identifier: BSD-3-Clause
//
// What torch.compile has cached on disk belongs to a build of the library: the keys of its caches
// know the names of operators and not the code behind them, so that after a formula was edited a
// compiled function would go on with the old gradient. The tag that is part of every key is kept by
// Python; the library, which is linked without, finds Python where the process has it.
#pragma once

#include <torchext/platform.h>
#include <torchext/visibility.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace torchext {
inline namespace v1 {
namespace detail {

/// Puts `namespace@digest of the file` among the tags, in place of an earlier one. The default value
/// is that of all threads, a value that was set only that of one. A torch that is still to be
/// imported reads the environment.
inline constexpr const char* kTagCompileCache = R"PYTHON(
def tag_compile_cache(namespace, path):
    import hashlib, os, sys
    try:
        with open(path, "rb") as file:
            digest = hashlib.blake2b(file.read(), digest_size=8).hexdigest()
    except OSError:
        digest = os.urandom(8).hex()

    def tagged(tags):
        others = {tag for tag in tags.split() if not tag.startswith(namespace + "@")}
        return " ".join(sorted({*others, f"{namespace}@{digest}"}))

    variable = "TORCH_COMPILE_CACHE_KEY_TAG"
    config = sys.modules.get("torch.compiler.config")
    if config is None:
        os.environ[variable] = tagged(os.environ.get(variable, ""))
        return
    entry = config._config["cache_key_tag"]
    default = entry.env_value_default
    entry.env_value_default = tagged(default if isinstance(default, str) else entry.default)
    if config.cache_key_tag != entry.env_value_default:
        config.cache_key_tag = tagged(config.cache_key_tag)
)PYTHON";

struct PythonObject;

/// The functions of CPython's stable interface that are needed.
struct Python {
  int (*is_initialized)() = find_function<int()>("Py_IsInitialized");
  int (*add_pending_call)(int (*)(void*), void*) =
      find_function<int(int (*)(void*), void*)>("Py_AddPendingCall");
  int (*ensure)() = find_function<int()>("PyGILState_Ensure");
  void (*release)(int) = find_function<void(int)>("PyGILState_Release");
  PythonObject* (*new_module)(const char*) =
      find_function<PythonObject*(const char*)>("PyModule_New");
  PythonObject* (*dict_of)(PythonObject*) =
      find_function<PythonObject*(PythonObject*)>("PyModule_GetDict");
  PythonObject* (*builtins)() = find_function<PythonObject*()>("PyEval_GetBuiltins");
  int (*set_item)(PythonObject*, const char*, PythonObject*) =
      find_function<int(PythonObject*, const char*, PythonObject*)>("PyDict_SetItemString");
  PythonObject* (*compile)(const char*, const char*, int) =
      find_function<PythonObject*(const char*, const char*, int)>("Py_CompileString");
  PythonObject* (*evaluate)(PythonObject*, PythonObject*, PythonObject*) =
      find_function<PythonObject*(PythonObject*, PythonObject*, PythonObject*)>("PyEval_EvalCode");
  PythonObject* (*call_method)(PythonObject*, const char*, const char*, ...) =
      find_function<PythonObject*(PythonObject*, const char*, const char*, ...)>(
          "PyObject_CallMethod");
  void (*print_error)() = find_function<void()>("PyErr_Print");
  void (*decref)(PythonObject*) = find_function<void(PythonObject*)>("Py_DecRef");
};

/// Whose tag, and the file that it is made of.
struct TaggedLibrary {
  std::string name;
  std::string path;
};

/// Runs the function above; with Python's lock, and never in the loader's.
inline void tag_compile_cache(const TaggedLibrary& library) {
  constexpr int kFileInput = 257;
  const Python python;
  PythonObject* module = python.new_module("torchext_compile_cache");
  PythonObject* code = python.compile(kTagCompileCache, __FILE__, kFileInput);
  PythonObject* result = nullptr;
  if (module != nullptr && code != nullptr) {
    PythonObject* names = python.dict_of(module);
    python.set_item(names, "__builtins__", python.builtins());
    if (PythonObject* defined = python.evaluate(code, names, names)) {
      python.decref(defined);
      result = python.call_method(
          module, "tag_compile_cache", "ss", library.name.c_str(), library.path.c_str());
    }
  }
  if (result == nullptr) {
    python.print_error();
  }
  for (PythonObject* object : {module, code, result}) {
    if (object != nullptr) {
      python.decref(object);
    }
  }
}

} // namespace detail

/// Tags the compile cache with a library that the loader is just opening; returns true.
///
/// A pending call runs in the main thread as soon as the loader has returned there. For another
/// thread, which the main thread may be waiting for, a thread of its own asks for Python's lock:
/// whoever waits for that one in the loader's lock may wait for ever.
inline bool tag_compile_cache_when_loaded(const detail::TaggedLibrary& library) noexcept {
  const detail::Python python;
  if (python.is_initialized == nullptr || python.is_initialized() == 0) {
    return true;
  }
  try {
    auto pending = std::make_unique<detail::TaggedLibrary>(library);
    if (is_main_thread()) {
      const auto run = [](void* owned) {
        detail::tag_compile_cache(
            *std::unique_ptr<detail::TaggedLibrary>(static_cast<detail::TaggedLibrary*>(owned)));
        return 0;
      };
      if (python.add_pending_call(run, pending.get()) == 0) {
        static_cast<void>(pending.release());
        return true;
      }
    }
    std::thread([python, owned = std::move(pending)] {
      const int state = python.ensure();
      detail::tag_compile_cache(*owned);
      python.release(state);
    }).detach();
  } catch (...) {
    // Out of memory or of threads: the library works, and so does what it has not cached.
  }
  return true;
}

} // namespace v1
} // namespace torchext

/// Tags the compile cache with the library of a shared object, whoever loads it; and when asked to,
/// with Python's lock.
#define TORCHEXT_TAG_COMPILE_CACHE(ns)                                                    \
  namespace {                                                                             \
  torchext::detail::TaggedLibrary tagged_library() {                                      \
    return {                                                                              \
        #ns,                                                                              \
        torchext::shared_object_path(                                                     \
            reinterpret_cast<const void*>(&torchext::generated::ns::library))};           \
  }                                                                                       \
  const bool is_cache_tagged = torchext::tag_compile_cache_when_loaded(tagged_library()); \
  }                                                                                       \
  extern "C" TORCHEXT_API void torchext_tag_compile_cache_##ns() {                        \
    torchext::detail::tag_compile_cache(tagged_library());                                \
  }                                                                                       \
  static_assert(true, "")
