// SPDX-License-Identifier: BSD-3-Clause
//
// The Meta kernel of operators that only write to arguments: shapes stay as they are.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torchext/boxed.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace torchext {
inline namespace v1 {

/// Returns the arguments that the results are, and writes nothing.
inline void written_meta(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const auto count = schema.arguments().size();
  const std::vector<c10::IValue> values(stack->end() - static_cast<int64_t>(count), stack->end());
  torch::jit::drop(*stack, count);
  for (const c10::Argument& result : schema.returns()) {
    for (size_t i = 0; i < count; ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      if (detail::is_written(argument) && detail::same_alias(result, argument)) {
        stack->push_back(values[i]);
        break;
      }
    }
  }
}

} // namespace v1
} // namespace torchext
