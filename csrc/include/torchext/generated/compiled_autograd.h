// SPDX-License-Identifier: BSD-3-Clause
//
// Compiled autograd: how a backward node becomes a call in the graph that torch.compile traces.
// A node is a pure function of the incoming gradients and of what it saved; that function is bound
// in Python once, and its arguments travel as IValues, so that sizes may be symbolic.
#pragma once

// GCC 12 is wrong about c10::ivalue::TupleElements, where nodes unpack the options of a tensor.
#pragma GCC diagnostic ignored "-Warray-bounds"

#include <c10/util/Type.h>
#include <torch/csrc/dynamo/compiled_autograd.h>
#include <torchext/generated/autograd.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// What PyTorch has no rule for although it knows the types, added as its header says.
namespace torch::dynamo::autograd {

template <>
struct IValuePacker<c10::complex<double>> {
  static at::IValue pack(const c10::complex<double>& value) {
    return value;
  }
  static c10::complex<double> unpack(const at::IValue& value) {
    return value.toComplexDouble();
  }
  static at::TypePtr packed_type() {
    return at::ComplexType::get();
  }
};

/// Only for a generator that is not there: see collect.
template <>
struct IValuePacker<at::Generator> {
  static at::IValue pack(const at::Generator& value) {
    return value;
  }
  static at::Generator unpack(const at::IValue& value) {
    return value.toGenerator();
  }
  static at::TypePtr packed_type() {
    return at::GeneratorType::get();
  }
};

} // namespace torch::dynamo::autograd

namespace torchext {
inline namespace v1 {
namespace detail {

template <typename T, typename = void>
struct IsCollected : std::false_type {};

template <typename T>
struct IsCollected<
    T,
    std::void_t<decltype(std::declval<CompiledNodeArgs&>().collect(std::declval<const T&>()))>>
    : std::true_type {};

template <typename T, typename = void>
struct IsSwapped : std::false_type {};

template <typename T>
struct IsSwapped<
    T,
    std::void_t<decltype(std::declval<SwapSavedVariables&>().before(std::declval<T&>()))>>
    : std::true_type {};

} // namespace detail

// ---- the key of a traced graph: what a node holds. Nothing that differs may be left out.

inline void collect(CompiledNodeArgs& args, const SavedVariable& saved, bool is_output) {
  args.collect(saved, is_output);
}

inline void collect(
    CompiledNodeArgs& args, const std::vector<SavedVariable>& saved, bool is_output) {
  args.collect(saved, is_output);
}

inline void collect(CompiledNodeArgs& args, const c10::complex<double>& value) {
  args.collect(value.real());
  args.collect(value.imag());
}

/// Python cannot compare generators, so that no graph could be found again by one.
inline void collect(CompiledNodeArgs&, const at::Generator&) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "compiled autograd cannot trace a node that saved an at::Generator");
}

inline void collect(CompiledNodeArgs& args, const c10::List<bool>& values) {
  args.collect(static_cast<int64_t>(values.size()));
  for (const bool value : values) {
    args.collect(value);
  }
}

template <size_t N>
void collect(CompiledNodeArgs& args, const std::array<bool, N>& values) {
  for (const bool value : values) {
    args.collect(value);
  }
}

template <typename T>
void collect(CompiledNodeArgs& args, const std::optional<T>& value);
template <typename T>
void collect(CompiledNodeArgs& args, const std::vector<T>& values);
template <typename T>
void collect(CompiledNodeArgs& args, const c10::OptionalArray<T>& values);

/// A value of a type that PyTorch has no rule for cannot be part of a graph.
template <typename T>
void collect(CompiledNodeArgs& args, const T& value) {
  if constexpr (detail::IsCollected<T>::value) {
    args.collect(value);
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false,
        "compiled autograd cannot trace a node that saved a ",
        c10::demangle(typeid(T).name()));
  }
}

template <typename T>
void collect(CompiledNodeArgs& args, const std::optional<T>& value) {
  args.collect(value.has_value());
  if (value.has_value()) {
    collect(args, *value);
  }
}

template <typename T>
void collect(CompiledNodeArgs& args, const std::vector<T>& values) {
  args.collect(static_cast<int64_t>(values.size()));
  for (const T& value : values) {
    collect(args, value);
  }
}

template <typename T>
void collect(CompiledNodeArgs& args, const c10::OptionalArray<T>& values) {
  collect(args, values.list);
}

// ---- tracing: saved values are swapped for those of the trace, and back

template <typename T>
void before(SwapSavedVariables& saved, T& value) {
  if constexpr (detail::IsSwapped<T>::value) {
    saved.before(value);
  }
}

template <typename T>
void after(SwapSavedVariables& saved, T& value) {
  if constexpr (detail::IsSwapped<T>::value) {
    saved.after(value);
  }
}

template <typename T>
void before(SwapSavedVariables& saved, std::vector<T>& values) {
  for (T& value : values) {
    before(saved, value);
  }
}

template <typename T>
void after(SwapSavedVariables& saved, std::vector<T>& values) {
  for (T& value : values) {
    after(saved, value);
  }
}

template <typename T>
void before(SwapSavedVariables& saved, std::optional<T>& value) {
  if (value.has_value()) {
    before(saved, *value);
  }
}

template <typename T>
void after(SwapSavedVariables& saved, std::optional<T>& value) {
  if (value.has_value()) {
    after(saved, *value);
  }
}

template <typename T>
void before(SwapSavedVariables& saved, c10::OptionalArray<T>& values) {
  before(saved, values.list);
}

template <typename T>
void after(SwapSavedVariables& saved, c10::OptionalArray<T>& values) {
  after(saved, values.list);
}

namespace detail {

/// One value out of the packed ones.
template <typename T>
struct Unpack {
  static T next(torch::dynamo::autograd::PackedArgs& packed) {
    return packed.unpack<T>();
  }
};

template <size_t N>
struct Unpack<std::array<bool, N>> {
  static std::array<bool, N> next(torch::dynamo::autograd::PackedArgs& packed) {
    const auto values = packed.unpack<std::vector<bool>>();
    std::array<bool, N> found{};
    std::copy_n(values.begin(), N, found.begin());
    return found;
  }
};

template <>
struct Unpack<c10::List<bool>> {
  static c10::List<bool> next(torch::dynamo::autograd::PackedArgs& packed) {
    c10::List<bool> found;
    for (const bool value : packed.unpack<std::vector<bool>>()) {
      found.push_back(value);
    }
    return found;
  }
};

/// Binds the function of a node in Python, where the graph calls it by name.
template <typename... Arguments>
void bind(
    PyObject* compiler,
    const std::string& name,
    variable_list (*function)(const variable_list&, Arguments...)) {
  using torch::dynamo::autograd::IValuePacker;
  using torch::dynamo::autograd::PackedArgs;
  std::vector<at::TypePtr> types = {IValuePacker<std::decay_t<Arguments>>::packed_type()...};
  const auto call = [function](const variable_list& grads, const std::vector<c10::IValue>& values) {
    PackedArgs packed(values);
    // Braces evaluate in order.
    const std::tuple<std::decay_t<Arguments>...> arguments{
        Unpack<std::decay_t<Arguments>>::next(packed)...};
    return std::apply(
        [&](const auto&... unpacked) { return function(grads, unpacked...); }, arguments);
  };
  torch::dynamo::autograd::getPyCompilerInterface()->bind_function(
      compiler, name, call, std::move(types));
}

} // namespace detail

/// Puts the call of a node's function into the graph; `name` is unique in the process.
template <auto function, typename... Arguments>
variable_list apply_compiled(
    const torch::autograd::Node& node,
    const char* name,
    SwapSavedVariables& saved,
    const variable_list& grads,
    const Arguments&... arguments) {
  using torch::dynamo::autograd::IValuePacker;
  // Tracing holds the interpreter's lock and compiled autograd's own.
  static bool is_bound = false;
  if (!is_bound) {
    detail::bind(saved.get_py_compiler(), name, function);
    is_bound = true;
  }
  torch::dynamo::autograd::PackedArgs packed;
  (packed.pack(arguments), ...);
  const at::IValue metadata =
      IValuePacker<std::vector<std::optional<torch::autograd::InputMetadata>>>::pack(
          torch::dynamo::autograd::get_input_metadata(node.next_edges()));
  return torch::dynamo::autograd::getPyCompilerInterface()->call_function(
      saved.get_py_compiler(), "apply_functional", name, grads, packed.vec(), metadata);
}

} // namespace v1
} // namespace torchext
