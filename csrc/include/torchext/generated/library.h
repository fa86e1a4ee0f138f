// SPDX-License-Identifier: BSD-3-Clause
//
// Registration of one operator library: everything or nothing, and never an exception out of a
// static initialiser. Every generated registration goes through the one OperatorLibrary of its
// shared object, which TORCHEXT_DEFINE_LIBRARY defines.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <c10/core/CompileTimeFunctionPointer.h>
#include <c10/util/Exception.h>
#include <torch/library.h>
#include <torchext/generated/quiet_override.h>
#include <torchext/platform.h>
#include <torchext/visibility.h>

namespace torchext {
inline namespace v1 {

/// TORCH_FN of an instance of a template, which has commas.
template <auto kFunction>
constexpr c10::CompileTimeFunctionPointer<std::remove_pointer_t<decltype(kFunction)>, kFunction>
    torch_fn{};

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

  /// The same for operators that another namespace defines, in place of the kernels that they have.
  bool override_kernels(const char* of, c10::DispatchKey key, Fill fill) noexcept {
    return attempt([&] {
      const QuietOverride quiet;
      parts_.emplace_back(torch::Library::IMPL, of, key, path_.c_str(), 0);
      fill(parts_.back());
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
