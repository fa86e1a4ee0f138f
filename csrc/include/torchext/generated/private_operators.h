// SPDX-License-Identifier: BSD-3-Clause
//
// Errors of the operators behind a composite one, in the words of the one that was called.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

namespace torchext {
inline namespace v1 {

namespace detail {

/// The name of a private operator of the library of `op` that an error begins, `ns::_name: ...`;
/// empty where it begins otherwise.
inline std::string_view private_operator(std::string_view op, std::string_view message) {
  const size_t space = op.find("::") + 2;
  const std::string_view name = message.substr(0, message.find(": ", space));
  if (name.size() == message.size() || name.substr(0, space) != op.substr(0, space)) {
    return {};
  }
  const bool is_private = name.substr(space, 1) == "_" && name.substr(space, 2) != "__";
  const size_t dot = name.find('.', space);
  const c10::OperatorName operator_name(
      std::string(name.substr(0, dot)),
      std::string(dot == name.npos ? std::string_view() : name.substr(dot + 1)));
  const bool is_there =
      is_private && c10::Dispatcher::singleton().findSchema(operator_name).has_value();
  return is_there ? name : std::string_view();
}

/// Throws a copy with another message where the error is of just this type: what was thrown may be
/// held and thrown again by others.
template <typename Thrown>
void throw_copy(const c10::Error& error, const c10::Error& named) {
  if (typeid(error) == typeid(Thrown)) {
    Thrown copy(static_cast<const Thrown&>(error));
    static_cast<c10::Error&>(copy) = named;
    throw copy;
  }
}

template <typename... Thrown>
void throw_copy_of(const c10::Error& error, const c10::Error& named) {
  (throw_copy<Thrown>(error, named), ...);
}

} // namespace detail

/// Throws an error that a private operator of the same library begins, `ns::_name: ...`, again in
/// the name of `op`, whose kernel called it, with where it was found behind it, as an error of the
/// same type. Returns where the error begins otherwise, or is of another type than these.
C10_NOINLINE inline void name_caller(const char* op, const c10::Error& error) {
  const std::string_view message(error.msg());
  const std::string_view name = detail::private_operator(op, message);
  if (name.empty()) {
    return;
  }
  std::string own(op);
  own.append(message.substr(name.size())).append(" (in ").append(name).append(")");
  c10::Error named(std::move(own), error.backtrace(), error.caller());
  for (const auto& context : error.context()) {
    named.add_context(context);
  }
  detail::throw_copy_of<
      c10::Error,
      c10::IndexError,
      c10::ValueError,
      c10::TypeError,
      c10::NotImplementedError,
      c10::LinAlgError,
      c10::OutOfMemoryError>(error, named);
}

} // namespace v1
} // namespace torchext
