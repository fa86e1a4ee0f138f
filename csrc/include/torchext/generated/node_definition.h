// SPDX-License-Identifier: BSD-3-Clause
//
// What a generated node does of itself, made of a list: the function that computes its gradients,
// its edges, and the members that the function is given, in order.
//
//   NodeDefinition<
//       &MulBackward0_gradients,
//       Edges<1, 1>,
//       Member<&MulBackward0::self_scalar_type>,
//       Member<&MulBackward0::other_>>
//   definition_of(const MulBackward0*);
#pragma once

#include <torchext/generated/compiled_autograd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {

namespace detail {

template <typename T>
constexpr bool is_list_of_variables = std::is_same_v<T, std::vector<SavedVariable>>;

template <typename T>
constexpr bool is_variable = std::is_same_v<T, SavedVariable> || is_list_of_variables<T>;

template <typename T>
struct TypeOfMember;

template <typename Node, typename T>
struct TypeOfMember<T Node::*> {
  using type = T;
};

} // namespace detail

/// A member that gradients are computed from: a value, or what was saved of an argument.
template <auto kMember>
struct Member {
  using Type = typename detail::TypeOfMember<decltype(kMember)>::type;
  static constexpr bool kIsVariable = detail::is_variable<Type>;
  static constexpr bool kIsList = detail::is_list_of_variables<Type>;

  /// What the function is given.
  template <typename Node>
  static decltype(auto) use(Node& node) {
    if constexpr (kIsVariable) {
      return unpack(node.*kMember);
    } else {
      return (node.*kMember);
    }
  }

  template <typename Node>
  static void collected(CompiledNodeArgs& args, const Node& node) {
    if constexpr (kIsVariable) {
      collect(args, node.*kMember, /*is_output=*/false);
    } else {
      collect(args, node.*kMember);
    }
  }

  template <typename Node>
  static void swapped_in(SwapSavedVariables& saved, Node& node) {
    before(saved, node.*kMember);
  }

  template <typename Node>
  static void swapped_out(SwapSavedVariables& saved, Node& node) {
    after(saved, node.*kMember);
  }

  /// What is to be freed, in a tuple.
  template <typename Node>
  static auto taken(Node& node) {
    if constexpr (kIsVariable) {
      return std::make_tuple(moved_out(node.*kMember));
    } else {
      return std::tuple<>();
    }
  }
};

/// The same of what was saved of a result: the node is part of its history.
template <auto kMember>
struct Result : Member<kMember> {
  template <typename Node>
  static auto use(Node& node) {
    return unpack(node.*kMember, node);
  }

  template <typename Node>
  static void collected(CompiledNodeArgs& args, const Node& node) {
    collect(args, node.*kMember, /*is_output=*/true);
  }
};

/// The same of a list of tensors that may be missing.
template <auto kMember>
struct Optionals : Member<kMember> {
  template <typename Node>
  static auto use(Node& node) {
    return unpack_optional(node.*kMember);
  }
};

/// For each argument with a gradient 1, or the member that has the size of a list.
template <auto... kSizes>
struct Edges {
  static constexpr bool kComputesOfNone = false;

  template <typename Node>
  static std::array<size_t, sizeof...(kSizes)> sizes(const Node& node) {
    return {size(node, kSizes)...};
  }

  /// The same from the arguments of the node's function, where those of lists follow the flags.
  template <typename Needs, typename... Rest>
  static std::array<size_t, sizeof...(kSizes)> among(const Needs& /*needs*/, const Rest&... rest) {
    return chosen(std::tie(rest...), std::make_index_sequence<sizeof...(kSizes)>());
  }

 private:
  static constexpr std::array<bool, sizeof...(kSizes)> kIsList{
      !std::is_same_v<decltype(kSizes), int>...};

  static constexpr size_t lists_before(size_t index) {
    size_t count = 0;
    for (size_t i = 0; i < index; ++i) {
      count += kIsList[i] ? 1 : 0;
    }
    return count;
  }

  template <typename Rest, size_t... kIndices>
  static std::array<size_t, sizeof...(kSizes)> chosen(
      const Rest& rest, std::index_sequence<kIndices...> /*indices*/) {
    return {size_among<kIndices>(rest)...};
  }

  template <size_t kIndex, typename Rest>
  static size_t size_among([[maybe_unused]] const Rest& rest) {
    if constexpr (kIsList[kIndex]) {
      return std::get<lists_before(kIndex)>(rest);
    } else {
      return 1;
    }
  }

  template <typename Node>
  static size_t size(const Node& /*node*/, int one) {
    return static_cast<size_t>(one);
  }

  template <typename Node>
  static size_t size(const Node& node, size_t Node::*member) {
    return node.*member;
  }
};

/// The same of a node for which zeros stand in the place of gradients that nobody gave, of all too.
template <auto... kSizes>
struct EdgesOfZeros : Edges<kSizes...> {
  static constexpr bool kComputesOfNone = true;
};

/// Whether the last backward runs, for formulas that ask.
struct RetainVariables {};

namespace detail {

/// A function that stores gradients as one that returns them: none where it would be given none.
template <auto kStore, typename EdgeSizes, typename Function = decltype(kStore)>
struct Returning;

template <auto kStore, typename EdgeSizes, typename... Arguments>
struct Returning<kStore, EdgeSizes, void (*)(Gradients&, const variable_list&, Arguments...)> {
  static variable_list call(const variable_list& grads, Arguments... arguments) {
    Gradients outputs(EdgeSizes::among(arguments...));
    if (EdgeSizes::kComputesOfNone || any_defined(grads)) {
      kStore(outputs, grads, arguments...);
    }
    return outputs.taken();
  }
};

} // namespace detail

template <auto kGradients, typename EdgeSizes, typename... Members>
struct NodeDefinition {
  static constexpr auto kFunction = &detail::Returning<kGradients, EdgeSizes>::call;
  using Sizes = EdgeSizes;
  static constexpr bool kHasVariables = (Members::kIsVariable || ...);
  static constexpr bool kHasLists = (Members::kIsList || ...);
  static constexpr bool kRetains = false;

  /// Calls `f` with what the function is given behind the gradients.
  template <typename Node, typename F>
  static variable_list call(Node& node, bool /*retain_variables*/, const F& f) {
    return f(Members::use(node)...);
  }

  template <typename Node>
  static auto taken(Node& node) {
    return std::tuple_cat(Members::taken(node)...);
  }

  template <typename Node>
  static void collected([[maybe_unused]] CompiledNodeArgs& args, const Node& node) {
    (Members::collected(args, node), ...);
  }

  template <typename Node>
  static void swapped_in([[maybe_unused]] SwapSavedVariables& saved, Node& node) {
    (Members::swapped_in(saved, node), ...);
  }

  template <typename Node>
  static void swapped_out([[maybe_unused]] SwapSavedVariables& saved, Node& node) {
    (Members::swapped_out(saved, node), ...);
  }
};

template <auto kGradients, typename EdgeSizes, typename... Members>
struct NodeDefinition<kGradients, EdgeSizes, RetainVariables, Members...>
    : NodeDefinition<kGradients, EdgeSizes, Members...> {
  static constexpr bool kRetains = true;

  template <typename Node, typename F>
  static variable_list call(Node& node, bool retain_variables, const F& f) {
    return f(Members::use(node)..., retain_variables);
  }
};

namespace detail {

/// The name by which compiled autograd calls the function: "my_ops_MulBackward0".
inline std::string compiled_name(const std::type_info& node) {
  std::string name = c10::demangle(node.name());
  const std::string prefix = "torchext::generated::";
  name.erase(0, name.rfind(prefix, 0) == 0 ? prefix.size() : 0);
  for (size_t at = name.find("::"); at != std::string::npos; at = name.find("::", at)) {
    name.replace(at, 2, "_");
  }
  return name;
}

} // namespace detail

template <typename Own>
using DefinitionOf = decltype(definition_of(static_cast<const Own*>(nullptr)));

template <typename Own>
variable_list NodeOf<Own>::apply(variable_list&& grads) {
  using Definition = DefinitionOf<Own>;
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  if constexpr (Definition::kHasVariables || Definition::kRetains) {
    lock.lock(); // what the engine changes while another thread may be in the node
  }
  return computed<Definition>([&](const auto&... arguments) {
    return Definition::kFunction(grads, arguments...);
  });
}

template <typename Own>
void NodeOf<Own>::release_variables() {
  using Definition = DefinitionOf<Own>;
  if constexpr (Definition::kHasVariables) {
    when_nobody_reads([this] { return Definition::taken(static_cast<Own&>(*this)); });
  }
}

template <typename Own>
void NodeOf<Own>::compiled_args(CompiledNodeArgs& args) const {
  DefinitionOf<Own>::collected(args, static_cast<const Own&>(*this));
}

template <typename Own>
variable_list NodeOf<Own>::apply_with_saved(
    const variable_list& grads, SwapSavedVariables& saved) {
  using Definition = DefinitionOf<Own>;
  static const std::string name = detail::compiled_name(typeid(Own));
  Own& node = static_cast<Own&>(*this);
  Definition::swapped_in(saved, node);
  variable_list grad_inputs = computed<Definition>([&](const auto&... arguments) {
    return apply_compiled<Definition::kFunction>(node, name.c_str(), saved, grads, arguments...);
  });
  Definition::swapped_out(saved, node);
  return grad_inputs;
}

template <typename Own>
template <typename Definition, typename F>
variable_list NodeOf<Own>::computed(const F& f) {
  if constexpr (Definition::kHasLists) {
    check_not_released();
  } else if constexpr (Definition::kHasVariables) {
    check_release_does_not_wait();
  }
  Own& node = static_cast<Own&>(*this);
  const auto needs = needs_input_grad(Definition::Sizes::sizes(node));
  return Definition::call(node, retain_variables, [&](auto&&... used) { return f(needs, used...); });
}

} // namespace v1
} // namespace torchext
