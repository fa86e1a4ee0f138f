// SPDX-License-Identifier: BSD-3-Clause
//
// Registration of one operator library: everything or nothing, and never an exception out of a
// static initialiser. Every generated registration goes through the one OperatorLibrary of its
// shared object, which TORCHEXT_DEFINE_LIBRARY defines.
//
// Kernels are registered by pointers, and not by TORCH_FN, for each of which the compiler makes a
// boxed kernel of its own: by pointers all of one signature share one, which halves the time to
// compile registrations without optimisation, and takes a quarter off with it. An unboxed call jumps
// once more, to where the pointer says.
#pragma once

#include <exception>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/library.h>
#include <torchext/generated/quiet_override.h>
#include <torchext/platform.h>
#include <torchext/visibility.h>

namespace torchext {
inline namespace v1 {

using c10::DispatchKey;

/// What one shared object registers in one namespace. Not thread-safe: it is filled by static
/// initialisers, which run under the loader's lock.
class OperatorLibrary {
 public:
  using Fill = void (*)(torch::Library&);

  OperatorLibrary(const char* operator_namespace, const void* address_inside)
      : namespace_(operator_namespace), path_(shared_object_path(address_inside)) {}

  /// Run one registration. After a failure everything is taken back and nothing more registered.
  bool add(torch::Library::Kind kind, std::optional<c10::DispatchKey> key, Fill fill) noexcept {
    return attempt([&] {
      parts_.emplace_back(kind, namespace_, key, path_.c_str(), 0);
      fill(parts_.back());
    });
  }

  /// Run one that registers kernels, for each of these keys.
  bool add(std::initializer_list<c10::DispatchKey> keys, Fill fill) noexcept {
    bool added = true;
    for (const c10::DispatchKey key : keys) {
      added = add(torch::Library::IMPL, key, fill) && added;
    }
    return added;
  }

  /// The same for operators that another namespace defines, in place of the kernels that they have.
  bool override_kernels(
      const char* of, std::initializer_list<c10::DispatchKey> keys, Fill fill) noexcept {
    return attempt([&] {
      const QuietOverride quiet;
      for (const c10::DispatchKey key : keys) {
        parts_.emplace_back(torch::Library::IMPL, of, key, path_.c_str(), 0);
        fill(parts_.back());
      }
    });
  }

  /// Run a check, which throws where the library does not fit what is registered already.
  bool check(void (*require)()) noexcept {
    return attempt(require);
  }

  /// Why registration failed; nullptr where it did not.
  const char* error() const {
    return error_.empty() ? nullptr : error_.c_str();
  }

 private:
  template <typename Step>
  bool attempt(const Step& step) noexcept {
    if (!error_.empty()) {
      return false;
    }
    try {
      step();
    } catch (const c10::Error& error) {
      fail(error.what_without_backtrace());
    } catch (const std::exception& error) {
      fail(error.what());
    }
    return error_.empty();
  }

  void fail(const char* why) noexcept {
    try {
      parts_.clear();
      error_ = "cannot register the operators of namespace '" + namespace_ + "' from " + path_ +
               ": " + why;
      TORCH_WARN(error_);
    } catch (...) {
      // Out of memory while reporting: error_ says at least that there was one.
      error_ = "?";
    }
  }

  std::string namespace_;
  std::string path_;
  std::vector<torch::Library> parts_;
  std::string error_;
};

} // namespace v1
} // namespace torchext

/// Defines the library of a shared object. It is never destroyed: operators stay registered until
/// the process ends, whatever the order in which static objects go.
#define TORCHEXT_DEFINE_LIBRARY(ns)                                             \
  torchext::OperatorLibrary& torchext::generated::ns::library() {               \
    static auto* library = new torchext::OperatorLibrary(                       \
        #ns, reinterpret_cast<const void*>(&torchext::generated::ns::library)); \
    return *library;                                                            \
  }                                                                             \
  extern "C" TORCHEXT_API const char* torchext_library_error_##ns() {           \
    return torchext::generated::ns::library().error();                          \
  }                                                                             \
  static_assert(true, "")

/// `TORCHEXT_LIBRARY_IMPL(m, key, ...) { m.impl(...); }` registers kernels for each of some dispatch
/// keys, as TORCH_LIBRARY_IMPL does for one; it stands where `library()` is the shared object's.
#define TORCHEXT_LIBRARY_IMPL(m, ...) \
  TORCHEXT_LIBRARY_IMPL_(m, library().add, C10_UID, {__VA_ARGS__})

/// The same of operators that another namespace defines.
#define TORCHEXT_OVERRIDE_IMPL(m, of, ...) \
  TORCHEXT_LIBRARY_IMPL_(m, library().override_kernels, C10_UID, of, {__VA_ARGS__})

#define TORCHEXT_LIBRARY_IMPL_(m, add, uid, ...)                           \
  static void C10_CONCATENATE(fill_, uid)(torch::Library&);                \
  [[maybe_unused]] static const bool C10_CONCATENATE(filled_, uid) =       \
      add(__VA_ARGS__, &C10_CONCATENATE(fill_, uid));                      \
  void C10_CONCATENATE(fill_, uid)(torch::Library & m)
