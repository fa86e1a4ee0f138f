// SPDX-License-Identifier: BSD-3-Clause
//
// What generated backward nodes and autograd kernels lean on.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torchext/generated/autograd/aside.h>
#include <torchext/generated/autograd/forward_mode.h>
#include <torchext/generated/autograd/history.h>
#include <torchext/generated/autograd/new_results.h>
#include <torchext/generated/autograd/saved_variables.h>
#include <torchext/visibility.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {

using torch::autograd::isDifferentiableType; // conditions of output_differentiability call it
using torch::autograd::variable_list;
using torch::dynamo::autograd::CompiledNodeArgs;
using torch::dynamo::autograd::SwapSavedVariables;

/// Base of the generated nodes.
class TORCHEXT_API BackwardNode : public torch::autograd::Node {
 public:
  using Node::Node;

  /// Of all that backward calls, this alone is called without the node's mutex.
  void will_release_variables() override {
    const std::lock_guard lock(mutex_);
    retain_variables = false;
  }

  /// Whether what was saved is to be freed when nobody reads it any more; backward may not use it.
  void check_release_does_not_wait() const {
    TORCH_CHECK(!release_waits_, torch::autograd::ERR_BACKWARD_TWICE);
  }

  /// The same; and saved lists of tensors cannot tell by themselves that they were freed.
  void check_not_released() const {
    check_release_does_not_wait();
    TORCH_CHECK(!released_, torch::autograd::ERR_BACKWARD_TWICE);
  }

  /// Reads what was saved, which no other thread frees meanwhile. No lock is held: where hooks
  /// unpack, they may run any node, this too, and wait for other threads.
  template <typename Read>
  auto read_saved(const Read& read) {
    struct Reading {
      explicit Reading(BackwardNode& node) : node(node) {
        ++node.readers_;
      }
      Reading(const Reading&) = delete;
      Reading& operator=(const Reading&) = delete;
      ~Reading() {
        // never so in a hook of a backward that holds the mutex: it would not have begun
        if (--node.readers_ == 0 && node.release_waits_) {
          node.release_variables();
        }
      }
      BackwardNode& node;
    };
    const Reading reading(*this);
    check_release_does_not_wait();
    return read();
  }

 protected:
  /// Formulas may ask for it: false where this is the last backward.
  bool retain_variables = true;

  /// For each argument, one tensor or a list of `sizes[i]`, whether this backward needs a gradient.
  template <size_t N>
  std::array<bool, N> needs_input_grad(const std::array<size_t, N>& sizes) const {
    std::array<bool, N> needs{};
    size_t output = 0;
    for (size_t i = 0; i < N; ++i) {
      for (size_t j = 0; j < sizes[i]; ++j) {
        needs[i] = task_should_compute_output(output++) || needs[i];
      }
    }
    return needs;
  }

  /// Frees what was saved, which `take` moves out; where somebody reads that without the mutex, when
  /// they are done.
  template <typename Take>
  void when_nobody_reads(const Take& take) {
    // Freed without the mutex: the finalizers of packed objects may do what they like.
    std::optional<decltype(take())> taken;
    const std::lock_guard lock(mutex_);
    release_waits_ = true;
    if (readers_ == 0) {
      taken.emplace(take());
      released_ = true;
      release_waits_ = false;
    }
  }

 private:
  bool released_ = false;
  // Who is to free sets this and then looks at readers_; who is to read, the other way round.
  std::atomic<bool> release_waits_ = false;
  std::atomic<int32_t> readers_ = 0;
};

/// Base of one generated node, which has its members and, as the one function that keeps its type in
/// one place, its name. Where `definition_of(const Own*)` is declared, torchext/generated/node_definition.h
/// makes the rest of it.
template <typename Own>
class TORCHEXT_API NodeOf : public BackwardNode {
 public:
  using BackwardNode::BackwardNode;
  variable_list apply(variable_list&& grads) final;
  void release_variables() final;
  void compiled_args(CompiledNodeArgs& args) const final;
  variable_list apply_with_saved(const variable_list& grads, SwapSavedVariables& saved) final;

 private:
  template <typename Definition, typename F>
  variable_list computed(const F& f);
};

inline bool any_defined(const variable_list& grads) {
  for (const at::Tensor& grad : grads) {
    if (grad.defined()) {
      return true;
    }
  }
  return false;
}

/// The gradients that a node is given, in which `next` and `skip`, called for each differentiable
/// result in turn, put zeros for those that are undefined.
struct MaterializedGrads {
  explicit MaterializedGrads(const variable_list& given) : grads(given) {}

  void next(const torch::autograd::TypeAndSize& info) {
    at::Tensor& grad = grads[count_++];
    if (!grad.defined()) {
      grad = zeros_of(info);
    }
  }

  void next(const std::vector<torch::autograd::TypeAndSize>& infos) {
    for (const torch::autograd::TypeAndSize& info : infos) {
      next(info);
    }
  }

  void skip() {
    ++count_;
  }

  variable_list grads;

 private:
  size_t count_ = 0;
};

/// A result whose gradient formulas name, and which of the gradients it is; -1: any of them.
struct GradOf {
  const char* result;
  int64_t index;
};

/// Adds to an error of a formula that it was given undefined gradients, if it was.
inline void explain_undefined(
    c10::Error& error,
    const char* name,
    std::initializer_list<GradOf> named,
    const variable_list& grads) {
  for (const GradOf& grad : named) {
    for (size_t i = 0; i < grads.size(); ++i) {
      if ((grad.index < 0 || static_cast<size_t>(grad.index) == i) && !grads[i].defined()) {
        error.add_context(c10::str(
            name,
            ": a formula was given an undefined gradient of the result '",
            grad.result,
            "', on which nothing that was differentiated depends. 'materialize_grads: True' in the "
            "entry of derivatives.yaml gives zeros for it; a formula can ask whether it is "
            "defined()"));
        break;
      }
    }
  }
}

/// Whether a formula gives what the gradient of a list of tensors is.
template <typename Gradient>
constexpr bool is_list_of_gradients = std::is_convertible_v<const Gradient&, at::TensorList>&&
    !std::is_convertible_v<const Gradient&, at::Tensor>;

/// What a formula gives, kept: a reference to tensors may be one to what the formula made.
template <typename Gradient>
std::decay_t<Gradient> kept(Gradient&& gradient) {
  return std::forward<Gradient>(gradient);
}

inline variable_list kept(at::TensorList gradients) {
  return gradients.vec();
}

/// Refuse a list that has fewer tensors than a formula for the i-th element reads.
inline void check_elements(size_t wanted, const char* name, size_t size) {
  TORCH_CHECK(
      size >= wanted, "a formula for each of ", wanted, " tensors reads '", name, "', which has ", size);
}

/// The gradients that a node computes: one for each of its arguments, or for each tensor of a list.
class Gradients {
 public:
  /// With the number of gradients of each argument.
  template <size_t N>
  explicit Gradients(const std::array<size_t, N>& sizes) {
    for (const size_t size : sizes) {
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + size);
    }
    grads_.resize(ends_.empty() ? 0 : ends_.back());
  }

  void store(size_t argument, const at::Tensor& grad) {
    TORCH_INTERNAL_ASSERT(ends_[argument] - begin(argument) == 1);
    grads_[begin(argument)] = grad;
  }

  void store(size_t argument, at::TensorList grads) {
    const size_t size = ends_[argument] - begin(argument);
    TORCH_CHECK(
        grads.size() == size,
        "a formula gave ",
        grads.size(),
        " gradients for a list of ",
        size,
        " tensors");
    for (size_t i = 0; i < size; ++i) {
      grads_[begin(argument) + i] = grads[i];
    }
  }

  variable_list taken() {
    return std::move(grads_);
  }

 private:
  size_t begin(size_t argument) const {
    return argument == 0 ? 0 : ends_[argument - 1];
  }

  c10::SmallVector<size_t, 4> ends_; // where those of an argument end
  variable_list grads_;
};

} // namespace v1
} // namespace torchext
