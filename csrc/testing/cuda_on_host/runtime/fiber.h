// SPDX-License-Identifier: BSD-3-Clause
//
// Stacks of their own, and the switch from one to another: a suspended computation is the address
// that its registers were saved at.
#pragma once

#include <cstddef>
#include <cstdint>

namespace torchext::cuda_on_host {

using Context = void*;

/// Pages of a stack; below the lowest lies one that nobody may touch.
struct Stack {
  char* low;
  char* high;

  bool contains(const void* address) const {
    return low <= address && address < high;
  }
};

/// A stack of so many bytes; std::bad_alloc where there is no memory.
Stack new_stack(size_t nbytes);

/// What switching to it calls `entry` on a stack, whose contents are gone. It must not return.
Context start_of(const Stack& stack, void (*entry)());

/// Saves what runs now, and goes on with another, which is on the stack `to`.
void switch_context(Context* saved, Context next, const Stack& to);

/// What `entry` must call first.
void arrive_on_stack();

/// The stack of the thread that calls, which is one of the system's.
Stack own_stack();

} // namespace torchext::cuda_on_host
