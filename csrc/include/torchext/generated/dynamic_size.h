// SPDX-License-Identifier: BSD-3-Clause
//
// Sizes that only values tell, while a program is traced: an unbacked SymInt of the trace.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/SymInt.h>
#include <c10/util/Exception.h>

#include <optional>
#include <string>

namespace torchext {
inline namespace v1 {

/// A size of a result of the operator, not larger than `most`, in the trace that `like` belongs to.
/// torchext's Python makes it, which alone knows that trace.
inline c10::SymInt new_traced_size(
    const char* op,
    const char* result,
    const at::Tensor& like,
    const std::optional<c10::SymInt>& most) {
  const auto handle =
      c10::Dispatcher::singleton().findSchema({"torchext::new_dynamic_size", ""});
  TORCH_CHECK_NOT_IMPLEMENTED(
      handle.has_value(),
      op,
      ": the size of '",
      result,
      "' depends on values; tracing such a call needs the Python package torchext, imported");
  torch::jit::Stack stack{std::string(op), std::string(result), like};
  handle->callBoxed(&stack);
  const c10::SymInt size = stack.at(0).toSymInt();
  if (most.has_value()) {
    TORCH_CHECK(
        size.sym_le(*most).expect_true(__FILE__, __LINE__), op, ": ", result, " is too large");
  }
  return size;
}

} // namespace v1
} // namespace torchext
