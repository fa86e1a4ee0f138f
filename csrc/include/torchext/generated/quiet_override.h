// SPDX-License-Identifier: BSD-3-Clause
//
// Keeps the dispatcher's warning about a kernel that takes another's place from those who asked for
// just that.
#pragma once

#include <c10/util/Exception.h>

#include <string_view>

namespace torchext {
inline namespace v1 {

/// While it lives, this thread does not see that warning, and sees all others.
class QuietOverride {
 public:
  QuietOverride() : handler_(c10::WarningUtils::get_warning_handler()), guard_(&handler_) {}

 private:
  class Handler : public c10::WarningHandler {
   public:
    explicit Handler(c10::WarningHandler* next) : next_(next) {}

    void process(const c10::Warning& warning) override {
      const std::string_view text = warning.msg();
      if (text.find("Overriding a previously registered kernel") == std::string_view::npos) {
        next_->process(warning);
      }
    }

   private:
    c10::WarningHandler* next_;
  };

  // The dispatcher warns once in a process: the warning that is dropped here must not be that one.
  c10::WarningUtils::WarnAlways always_;
  Handler handler_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

} // namespace v1
} // namespace torchext
