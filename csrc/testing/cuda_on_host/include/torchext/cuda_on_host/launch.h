// SPDX-License-Identifier: BSD-3-Clause
//
// kernel<<<grid, block, bytes, stream>>>(arguments) is compiled as
//
//   launch("kernel", TORCHEXT_KERNEL(kernel), [&](const auto&... a) { kernel(a...); },
//          Configuration(grid, ...))(arguments)
//
// so that the arguments are evaluated once, on the host, and become the kernel's parameters there:
// where the name says which function it is, by a call with its parameters, in which 0 is a null
// pointer and {1, 2} a struct. Where only the arguments say it, they have the types of their own.
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
  const void* function = nullptr; // the kernel's address, where its name says which one it is
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

/// An integer of which the kernel may make a null pointer, as of the literal 0.
template <typename T>
struct Integer {
  T value;

  operator T() const {
    return value;
  }
  template <typename Pointed>
  operator Pointed*() const {
    return nullptr;
  }
};

template <typename T>
using OrNull = std::conditional_t<std::is_integral_v<T>, Integer<T>, T>;

/// A launch that knows the kernel's parameters by the arguments alone.
template <typename Call>
class Launch {
 public:
  Launch(const char* kernel, Call call, const Configuration& configuration)
      : kernel_(kernel), call_(std::move(call)), configuration_(configuration) {}

  /// Every thread has copies of the arguments.
  template <typename... A>
  void operator()(A... arguments) {
    if constexpr (
        std::is_invocable_v<const Call&, const A&...> ||
        !std::is_invocable_v<const Call&, const OrNull<A>&...>) {
      run_with(std::tuple<A...>(std::move(arguments)...));
    } else {
      run_with(std::tuple<OrNull<A>...>(OrNull<A>{std::move(arguments)}...));
    }
  }

 protected:
  template <typename Values>
  void run_with(Values values) {
    struct Parameters {
      Call call;
      Values values;
    } parameters{std::move(call_), std::move(values)};
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

/// A launch with the first parameters of a kernel, `Given`, or with some of `More` behind them: the
/// others have default arguments.
template <typename Call, typename Given, typename... More>
class LaunchWith;

template <typename Call, typename... Given>
class LaunchWith<Call, std::tuple<Given...>> : public Launch<Call> {
 public:
  using Launch<Call>::Launch;

  void operator()(Given... arguments) {
    this->run_with(std::tuple<Given...>(std::move(arguments)...));
  }
  /// More arguments than the name says have a pack of parameters.
  template <typename... A, std::enable_if_t<(sizeof...(A) > sizeof...(Given)), int> = 0>
  void operator()(A... arguments) {
    Launch<Call>::operator()(std::move(arguments)...);
  }
};

template <typename Call, typename... Given, typename Next, typename... More>
class LaunchWith<Call, std::tuple<Given...>, Next, More...>
    : public LaunchWith<Call, std::tuple<Given..., Next>, More...> {
 public:
  using Longer = LaunchWith<Call, std::tuple<Given..., Next>, More...>;
  using Longer::Longer;
  using Longer::operator();

  void operator()(Given... arguments) {
    this->run_with(std::tuple<Given...>(std::move(arguments)...));
  }
};

/// A launch of a kernel with parameters `P`.
template <typename Call, typename... P>
using LaunchOf = LaunchWith<Call, std::tuple<>, P...>;

template <typename... P>
struct Signature {
  const void* function;
};

/// Of one function: not overloaded, without template arguments to deduce.
template <typename Dependent, typename... P>
Signature<P...> signature_of(Dependent /*tag*/, void (*kernel)(P...)) {
  return {reinterpret_cast<const void*>(kernel)};
}

/// What `launch` finds a kernel's parameters by, if its name says them.
#define TORCHEXT_KERNEL(...)                                                  \
  [&](auto torchext_tag) -> decltype(::torchext::cuda_on_host::signature_of(  \
                             torchext_tag, __VA_ARGS__)) {                    \
    return ::torchext::cuda_on_host::signature_of(torchext_tag, __VA_ARGS__); \
  }

template <typename Call, typename... P>
LaunchOf<Call, P...> launch_of(
    Signature<P...> known, const char* kernel, Call call, Configuration configuration) {
  configuration.function = known.function;
  return {kernel, std::move(call), configuration};
}

template <typename Find, typename Call>
auto launch(const char* kernel, Find find, Call call, const Configuration& configuration) {
  if constexpr (std::is_invocable_v<Find, int>) {
    return launch_of(find(0), kernel, std::move(call), configuration);
  } else {
    return Launch<Call>(kernel, std::move(call), configuration);
  }
}

/// Of any callable.
template <typename Call>
Launch<Call> launch(const char* kernel, Call call, const Configuration& configuration) {
  return {kernel, std::move(call), configuration};
}

/// Of a kernel that a pointer names.
template <typename... P>
LaunchOf<void (*)(P...), P...> launch(
    const char* name, void (*kernel)(P...), const Configuration& configuration) {
  return launch_of(signature_of(0, kernel), name, kernel, configuration);
}

/// `<<<grid, block>>>(arguments)` where a macro has it without the kernel: `kernel ->*
/// chevrons(Configuration(grid, block))(arguments)`.
template <typename... A>
struct BoundLaunch {
  Configuration configuration;
  std::tuple<A...> values;
};

struct Chevrons {
  Configuration configuration;

  template <typename... A>
  BoundLaunch<A...> operator()(A... arguments) const {
    return {configuration, std::tuple<A...>(std::move(arguments)...)};
  }
};

inline Chevrons chevrons(const Configuration& configuration) {
  return {configuration};
}

template <typename P, typename A>
P converted(const A& argument) {
  if constexpr (std::is_pointer_v<P> && std::is_integral_v<A>) {
    return nullptr;
  } else {
    return argument;
  }
}

template <typename... P, typename... A>
void operator->*(void (*kernel)(P...), const BoundLaunch<A...>& bound) {
  const auto run = [&](const A&... arguments) {
    launch("launched by a macro", kernel, bound.configuration)(converted<P>(arguments)...);
  };
  std::apply(run, bound.values);
}

} // namespace torchext::cuda_on_host
