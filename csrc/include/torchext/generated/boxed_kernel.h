// SPDX-License-Identifier: BSD-3-Clause
//
// The types of a boxed kernel's arguments.
#pragma once

#include <ATen/core/stack.h>

namespace c10 {
class OperatorHandle;
} // namespace c10
