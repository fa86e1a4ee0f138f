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
  template <typename Node>
  static std::array<size_t, sizeof...(kSizes)> sizes(const Node& node) {
    return {size(node, kSizes)...};
  }

 private:
  template <typename Node>
  static size_t size(const Node& /*node*/, int one) {
    return static_cast<size_t>(one);
  }

  template <typename Node>
  static size_t size(const Node& node, size_t Node::*member) {
    return node.*member;
  }
};

/// Whether the last backward runs, for formulas that ask.
struct RetainVariables {};

template <auto kGradients, typename EdgeSizes, typename... Members>
struct NodeDefinition {
  static constexpr auto kFunction = kGradients;
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
