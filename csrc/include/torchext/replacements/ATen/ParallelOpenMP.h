// SPDX-License-Identifier: BSD-3-Clause
//
// For at::parallel_for torch's header has an OpenMP pragma, which Clang turns into calls of LLVM's
// runtime: a second pool of threads beside torch's, and asking omp_get_num_threads(), which is
// torch's, would have each of them do the whole range. Here Clang starts the threads of torch's own
// runtime, GCC's, as GCC does for the pragma, with -fopenmp and without. Every other compiler reads
// torch's header.
#pragma once
#pragma GCC system_header

#if !defined(__clang__) || defined(__CUDACC__) || !defined(__linux__)
#include_next <ATen/ParallelOpenMP.h>
#else

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

#define INTRA_OP_PARALLEL

namespace at::internal {

// libgomp's, under names that no header of OpenMP can declare otherwise
int num_threads_of_team() __asm__("omp_get_num_threads");
int thread_of_team() __asm__("omp_get_thread_num");
void run_in_team(void (*function)(void*), void* data, unsigned threads, unsigned flags)
    __asm__("GOMP_parallel");

// `f(begin, end)` for parts of the range, in as many threads as torch has or as there are parts of
// the grain's size. The first exception of any is thrown in the end.
template <typename F>
inline void invoke_parallel(int64_t begin, int64_t end, int64_t grain_size, const F& f) {
  struct Team {
    const F& f;
    int64_t begin, end, grain_size;
    std::atomic_flag has_failed = ATOMIC_FLAG_INIT;
    std::exception_ptr error = nullptr;

    void work() {
      int64_t threads = num_threads_of_team();
      if (grain_size > 0) {
        threads = std::min(threads, divup(end - begin, grain_size));
      }
      const int64_t thread = thread_of_team();
      const int64_t count = divup(end - begin, threads);
      const int64_t first = begin + thread * count;
      if (first >= end) {
        return;
      }
      try {
        ThreadIdGuard guard(static_cast<int>(thread));
        f(first, std::min(end, first + count));
      } catch (...) {
        if (!has_failed.test_and_set()) {
          error = std::current_exception();
        }
      }
    }
  };
  Team team{f, begin, end, grain_size};
  run_in_team([](void* data) { static_cast<Team*>(data)->work(); }, &team, 0, 0);
  if (team.error) {
    std::rethrow_exception(team.error);
  }
}

} // namespace at::internal

#endif
