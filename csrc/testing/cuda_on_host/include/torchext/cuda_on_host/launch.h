// SPDX-License-Identifier: BSD-3-Clause
//
// kernel<<<grid, block, bytes, stream>>>(arguments) is compiled as
//
//   launch("kernel", [&](const auto&... a) { kernel(a...); }, Configuration(grid, ...))(arguments)
#pragma once

#include <torchext/cuda_on_host/threads.h>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

struct CUstream_st;

namespace torchext::cuda_on_host {

/// What stands between the angle brackets. A stream is a cudaStream_t or what converts to one.
struct Configuration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  CUstream_st* stream;
  bool is_cooperative = false;
  const char* file;
  int line;

  Configuration(
      dim3 grid_,
      dim3 block_,
      size_t shared_bytes_ = 0,
      CUstream_st* stream_ = nullptr,
      const char* file_ = __builtin_FILE(),
      int line_ = __builtin_LINE())
      : grid(grid_),
        block(block_),
        shared_bytes(shared_bytes_),
        stream(stream_),
        file(file_),
        line(line_) {}
};

/// A range of the host's memory that a kernel may read.
struct Range {
  const void* data;
  size_t nbytes;
};

/// Runs `call(data)` once for each thread; returns when all have ended. Throws c10::Error for what
/// the kernel did wrong, and for a configuration that no device takes.
TORCHEXT_CUDA_ON_HOST_API void run(
    const char* kernel,
    const Configuration& configuration,
    void (*call)(void*),
    void* data,
    Range parameters);

template <typename Call>
class Launch {
 public:
  Launch(const char* kernel, Call call, const Configuration& configuration)
      : kernel_(kernel), call_(std::move(call)), configuration_(configuration) {}

  /// Evaluates the arguments once, as a launch does; every thread has copies of them.
  template <typename... Arguments>
  void operator()(Arguments&&... arguments) {
    struct Parameters {
      Call call;
      std::tuple<std::decay_t<Arguments>...> values;
    } parameters{std::move(call_), {std::forward<Arguments>(arguments)...}};
    const auto call = [](void* data) {
      auto* given = static_cast<Parameters*>(data);
      std::apply(given->call, std::as_const(given->values));
    };
    run(kernel_, configuration_, call, &parameters, {&parameters, sizeof(parameters)});
  }

 private:
  const char* kernel_;
  Call call_;
  Configuration configuration_;
};

template <typename Call>
Launch<Call> launch(const char* kernel, Call call, const Configuration& configuration) {
  return {kernel, std::move(call), configuration};
}

} // namespace torchext::cuda_on_host
