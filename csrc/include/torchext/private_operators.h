// SPDX-License-Identifier: BSD-3-Clause
//
// Errors of the operators behind a composite one, in the words of the one that was called.
#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <string_view>
#include <utility>

namespace torchext {
inline namespace v1 {

/// Gives an error that a private operator of the same library begins, `ns::_name: ...`, the name of
/// `op`, whose kernel called it, and says behind it where it was found. The error keeps its type.
C10_NOINLINE inline void name_caller(const char* op, c10::Error& error) {
  const std::string_view caller(op);
  const auto space = caller.substr(0, caller.find("::") + 2);
  const std::string_view message(error.msg());
  const auto end = message.find(": ", space.size());
  const bool is_own = message.substr(0, space.size()) == space && end != message.npos;
  const auto name = is_own ? message.substr(space.size(), end - space.size()) : std::string_view();
  const bool is_name = name.find_first_of(" \n") == name.npos;
  if (!is_name || name.substr(0, 1) != "_" || name.substr(0, 2) == "__") {
    return;
  }
  c10::Error named(
      std::string(caller).append(message.substr(end)), error.backtrace(), error.caller());
  for (const auto& context : error.context()) {
    named.add_context(context);
  }
  named.add_context(std::string("in ").append(message.substr(0, end)));
  error = std::move(named); // only the base: what was thrown stays an IndexError and the like
}

} // namespace v1
} // namespace torchext
