// SPDX-License-Identifier: BSD-3-Clause
#include "fiber.h"

#include <new>

#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__) && !defined(__aarch64__)
#error \
    "kernels are run on x86-64 and on AArch64: here the registers of other processors are missing"
#endif

// The registers that a function must keep are pushed, the stack pointer is exchanged, and those of the
// other are popped. Neither signal masks nor the rounding mode: a kernel changes none, and saving
// them takes two calls of the system.
extern "C" void torchext_switch_context(void** saved, void* next);

#if defined(__x86_64__)
asm(R"(
.text
.globl torchext_switch_context
.hidden torchext_switch_context
.type torchext_switch_context, @function
torchext_switch_context:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size torchext_switch_context, . - torchext_switch_context
)");
#else
asm(R"(
.text
.globl torchext_switch_context
.hidden torchext_switch_context
.type torchext_switch_context, %function
torchext_switch_context:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size torchext_switch_context, . - torchext_switch_context
)");
#endif

namespace torchext::cuda_on_host {

Stack new_stack(size_t nbytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
  void* found = mmap(nullptr, nbytes + page, PROT_READ | PROT_WRITE, kFlags, /*fd=*/-1, 0);
  if (found == MAP_FAILED || mprotect(found, page, PROT_NONE) != 0) {
    throw std::bad_alloc();
  }
  char* low = static_cast<char*>(found) + page;
  return {low, low + nbytes};
}

Context start_of(const Stack& stack, void (*entry)()) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack.low, stack.high - stack.low);
#endif
  auto* top = reinterpret_cast<void**>(stack.high);
#if defined(__x86_64__)
  // Where `entry` would return to, which is nowhere: there unwinding ends. Then `entry`, to which the
  // switch returns, with the stack as a call leaves it, and six registers.
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) {
    *--top = nullptr;
  }
#else
  constexpr int kWords = 20;
  constexpr int kLinkRegister = 11;
  top -= kWords;
  for (int i = 0; i < kWords; ++i) {
    top[i] = nullptr;
  }
  top[kLinkRegister] = reinterpret_cast<void*>(entry);
#endif
  return top;
}

#if defined(__SANITIZE_ADDRESS__)
// AddressSanitizer is told of each switch, and that nothing is left of what ran on a stack before.
void switch_context(Context* saved, Context next, const Stack& to) {
  void* own = nullptr;
  __sanitizer_start_switch_fiber(&own, to.low, to.high - to.low);
  torchext_switch_context(saved, next);
  __sanitizer_finish_switch_fiber(own, nullptr, nullptr);
}

void arrive_on_stack() {
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
}

Stack own_stack() {
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t nbytes = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &nbytes);
  pthread_attr_destroy(&attributes);
  return {static_cast<char*>(low), static_cast<char*>(low) + nbytes};
}
#else
void switch_context(Context* saved, Context next, const Stack& /*to*/) {
  torchext_switch_context(saved, next);
}

void arrive_on_stack() {}

Stack own_stack() {
  return {nullptr, nullptr};
}
#endif

} // namespace torchext::cuda_on_host
