// SPDX-License-Identifier: BSD-3-Clause
//
// What the runtime asks of the operating system: the only header with POSIX calls.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

/// A function that the loader runs before the static initialisers of the library: schemas are
/// registered before kernels, so that an operator that exists already is refused before any of its
/// kernels is replaced.
#define TORCHEXT_RUN_FIRST __attribute__((constructor(1000)))

namespace torchext {
inline namespace v1 {

/// Path of the shared object that holds this address; empty where the system cannot tell.
inline std::string shared_object_path(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

/// Calls `lock` before the process forks, and `unlock` afterwards in both. Returns true.
inline bool hold_while_forking(void (*lock)(), void (*unlock)()) {
  pthread_atfork(lock, unlock, unlock);
  return true;
}

/// Whether this thread is the one that the process began with.
inline bool is_main_thread() {
  return syscall(SYS_gettid) == getpid();
}

/// A function that some library of the process makes visible; nullptr where there is none.
template <typename Function>
Function* find_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

} // namespace v1
} // namespace torchext
