// SPDX-License-Identifier: BSD-3-Clause
//
// The Meta kernels of structured operators. Sizes may be symbolic there. A meta function of a
// torchext::MetaBase computes with them itself; one of a TensorIterator, which cannot, runs on
// stand-ins that have the dtypes and numbers of dimensions of its tensors, and the result's sizes
// and strides are computed here as TensorIterator would.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty_strided.h>
#include <c10/util/SmallVector.h>
#include <torchext/elementwise.h>
#include <torchext/generated/dynamic_size.h>
#include <torchext/generated/structured_results.h>

#include <array>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace torchext {
inline namespace v1 {
namespace structured {

/// What a Meta kernel leaves out of what the others do.
struct NoKernel {
  template <typename... Inputs>
  void reads(const Inputs&... /*inputs*/) const {}

  template <typename... Arguments>
  void impl(const Arguments&... /*arguments*/) const {}

  void copy_back() const {}
};

/// The results of a Meta kernel whose meta class is a torchext::MetaBase.
template <typename Class, size_t N>
class SymbolicMeta : public Class {
 public:
  void set_output_strided(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      at::TensorOptions options TORCHEXT_NAMES_PARAMETER) final {
    set(index, c10::fromIntArrayRefSlow(sizes), c10::fromIntArrayRefSlow(strides), options);
  }

  void set_output_raw_strided(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      at::TensorOptions options TORCHEXT_NAMES_PARAMETER) final {
    set(index, c10::fromIntArrayRefSlow(sizes), c10::fromIntArrayRefSlow(strides), options);
  }

  void set_output_strided_symint(
      int64_t index,
      c10::SymIntArrayRef sizes,
      c10::SymIntArrayRef strides,
      at::TensorOptions options) final {
    set(index, sizes, strides, options);
  }

  void set_output_raw_strided_symint(
      int64_t index,
      c10::SymIntArrayRef sizes,
      c10::SymIntArrayRef strides,
      at::TensorOptions options) final {
    set(index, sizes, strides, options);
  }

  c10::SymInt new_dynamic_size(
      const char* op,
      const char* result,
      const at::Tensor& like,
      const std::optional<c10::SymInt>& most) final {
    return new_traced_size(op, result, like, most);
  }

 protected:
  virtual void set(
      int64_t index,
      c10::SymIntArrayRef sizes,
      c10::SymIntArrayRef strides,
      const at::TensorOptions& options) = 0;
};

inline at::Tensor new_symbolic_result(
    c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, const at::TensorOptions& options) {
  const at::TensorOptions meta = options.device(at::kMeta);
  return strides.empty() ? at::empty_symint(sizes, meta)
                         : at::empty_strided_symint(sizes, strides, meta);
}

template <typename Class, size_t N>
class SymbolicNewResults final : public SymbolicMeta<Class, N>, private NoKernel {
 public:
  using NoKernel::impl;

  explicit SymbolicNewResults(const char* /*op*/) {}

  const at::Tensor& maybe_get_output(int64_t index) override {
    return outputs_[index];
  }

  auto results() {
    return taken(outputs_);
  }

  at::Tensor result(int64_t index) {
    return std::move(outputs_[index]);
  }

 private:
  void set(
      int64_t index,
      c10::SymIntArrayRef sizes,
      c10::SymIntArrayRef strides,
      const at::TensorOptions& options) override {
    detail::of_result(outputs_, index) = new_symbolic_result(sizes, strides, options);
  }

  detail::PerResult<at::Tensor, N> outputs_;
};

/// Brings an out= tensor to the result's sizes, and to its strides where that changes it.
inline void resize_symbolic(
    const at::Tensor& output, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  if (at::native::resize_output_symint(output, sizes) && !strides.empty()) {
    output.as_strided__symint(sizes, strides);
  }
}

inline void check_in_place_sizes(
    const char* op, const at::Tensor& written, c10::SymIntArrayRef sizes) {
  bool same = written.dim() == static_cast<int64_t>(sizes.size());
  for (size_t i = 0; same && i < sizes.size(); ++i) {
    // On symbols a runtime assertion rather than a guard.
    same =
        written.sym_size(static_cast<int64_t>(i)).sym_eq(sizes[i]).expect_true(__FILE__, __LINE__);
  }
  TORCH_CHECK(
      same,
      op,
      ": the in-place tensor must have the shape of the result, ",
      sizes,
      ", got ",
      written.sym_sizes());
}

template <Written written, typename Class, size_t N>
class SymbolicGivenResults final : public SymbolicMeta<Class, N>, private NoKernel {
 public:
  using NoKernel::copy_back;
  using NoKernel::impl;
  using NoKernel::reads;

  template <typename... Outputs>
  explicit SymbolicGivenResults(const char* op, const Outputs&... outputs)
      : op_(op), outputs_{std::cref<at::Tensor>(outputs)...} {}

  const at::Tensor& maybe_get_output(int64_t index) override {
    return new_[index].defined() ? new_[index] : outputs_[index].get();
  }

  at::Tensor result(int64_t index) {
    return new_[index].defined() ? std::move(new_[index]) : outputs_[index].get();
  }

 private:
  void set(
      int64_t index,
      c10::SymIntArrayRef sizes,
      [[maybe_unused]] c10::SymIntArrayRef strides,
      const at::TensorOptions& options) override {
    const at::Tensor& output = outputs_[index].get();
    if (!output.defined()) {
      new_[index] = new_symbolic_result(sizes, strides, options);
      return;
    }
    if constexpr (written == Written::kInPlace) {
      check_written(op_, "in-place", output, options);
      check_in_place_sizes(op_, output, sizes);
    } else {
      check_written(op_, "out=", output, options);
      resize_symbolic(output, sizes, strides);
    }
  }

  const char* op_;
  std::array<std::reference_wrapper<const at::Tensor>, N> outputs_;
  std::array<at::Tensor, N> new_;
};

/// Small tensors in the place of those with symbolic sizes: as many dimensions, all of size 1.
/// Where no size is symbolic, the tensors themselves.
class StandIns {
 public:
  /// `arguments` are those of the meta function and the results that it is given.
  template <typename... Arguments>
  explicit StandIns(const char* op, const Arguments&... arguments) : op_(op) {
    (look(arguments), ...);
    if (is_symbolic_) {
      pairs_.reserve(sizeof...(Arguments)); // handed out by reference
      (add(arguments), ...);
    }
  }

  const at::Tensor& of(const at::Tensor& tensor) const {
    for (const Pair& pair : pairs_) {
      if (pair.original.is_same(tensor)) {
        return pair.stand_in;
      }
    }
    return tensor;
  }

  at::OptionalTensorRef of(const at::OptionalTensorRef& tensor) const {
    return tensor.has_value() ? at::OptionalTensorRef(of(*tensor)) : at::OptionalTensorRef();
  }

  /// Other arguments are themselves.
  template <typename Argument>
  const Argument& of(const Argument& argument) const {
    return argument;
  }

  /// A stand-in for an out= tensor: empty, so that giving it a size warns of nothing.
  at::Tensor of_output(const at::Tensor& output) const {
    if (!is_symbolic_) {
      return output;
    }
    return at::Tensor(at::detail::empty_meta({0}, output.options().device(at::kMeta)));
  }

  /// Calls the meta function with the stand-ins of its arguments, and what is to follow; returns
  /// what the meta function does.
  template <typename Op, typename Finish, typename... Arguments>
  auto meta(Op& op, const Finish& finish, const Arguments&... arguments) const {
    if constexpr (std::is_void_v<decltype(op.meta(of(arguments)...))>) {
      op.meta(of(arguments)...);
      finish();
    } else {
      auto precomputed = op.meta(of(arguments)...);
      finish();
      return precomputed;
    }
  }

  /// After the meta function: the results' own sizes and strides.
  template <typename Class, size_t N>
  void finish(NewResults<Class, Home::kMeta, N>& op) const {
    for (size_t i = 0; is_symbolic_ && i < N; ++i) {
      op.output(i) = result(op, op.output(i));
    }
  }

  template <Written written, typename Class, size_t N, typename Outputs>
  void finish(
      const GivenResults<written, Class, Home::kMeta, N>& op, const Outputs& outputs) const {
    if (!is_symbolic_) {
      return;
    }
    const c10::SymDimVector shape = sizes(op);
    if constexpr (written == Written::kInPlace) {
      check_in_place_sizes(op_, outputs[0], shape);
    } else {
      const c10::SymDimVector strides = strides_of(op, shape);
      for (const at::Tensor& output : outputs) {
        resize_symbolic(output, shape, strides);
      }
    }
  }

 private:
  struct Pair {
    at::Tensor original;
    at::Tensor stand_in;
  };

  void look(const at::Tensor& tensor) {
    is_symbolic_ = is_symbolic_ ||
                   (tensor.defined() && tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides());
  }

  void look(const at::OptionalTensorRef& tensor) {
    if (tensor.has_value()) {
      look(*tensor);
    }
  }

  template <typename Argument>
  void look(const Argument& /*argument*/) {}

  void add(const at::OptionalTensorRef& tensor) {
    if (tensor.has_value()) {
      add(*tensor);
    }
  }

  template <typename Argument>
  void add(const Argument& /*argument*/) {}

  void add(const at::Tensor& tensor) {
    if (tensor.defined()) {
      const c10::SmallVector<int64_t, 6> ones(tensor.dim(), 1);
      at::Tensor stand_in(at::detail::empty_meta(ones, tensor.options().device(at::kMeta)));
      if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
        stand_in.unsafeGetTensorImpl()->set_wrapped_number(true);
      }
      pairs_.push_back({tensor, stand_in});
    }
  }

  /// The tensors that the iterator runs over, without scalars, which decide on no shape.
  c10::SmallVector<const at::Tensor*, 4> operands(const at::TensorIteratorBase& iter) const {
    c10::SmallVector<const at::Tensor*, 4> found;
    for (int i = iter.noutputs(); i < iter.ntensors(); ++i) {
      const at::Tensor& operand = iter.tensor(i);
      const Pair* pair = std::find_if(pairs_.begin(), pairs_.end(), [&](const Pair& item) {
        return item.stand_in.is_same(operand);
      });
      TORCH_CHECK(
          pair != pairs_.end() || operand.dim() == 0,
          op_,
          ": its meta function iterates over other tensors than its arguments, which symbolic "
          "sizes do not allow");
      if (operand.dim() > 0) {
        found.push_back(&pair->original);
      }
    }
    return found;
  }

  c10::SymDimVector sizes(const at::TensorIteratorBase& iter) const {
    c10::SymDimVector found;
    for (const at::Tensor* operand : operands(iter)) {
      found = at::infer_size_symdimvector(found, operand->sym_sizes());
    }
    return found;
  }

  template <typename Results>
  c10::SymDimVector strides_of(const Results& op, c10::SymIntArrayRef shape) const {
    return detail::result_strides(detail::converted_to(op.converts_to(), operands(op)), shape);
  }

  template <typename Results>
  at::Tensor result(const Results& iter, const at::Tensor& stand_in) const {
    const c10::SymDimVector shape = sizes(iter);
    TORCH_CHECK(
        stand_in.numel() == 1 && stand_in.dim() == static_cast<int64_t>(shape.size()),
        op_,
        ": its meta function gives the result another shape than that of its arguments, which "
        "symbolic sizes do not allow");
    return new_symbolic_result(shape, strides_of(iter, shape), stand_in.options());
  }

  const char* op_;
  bool is_symbolic_ = false;
  c10::SmallVector<Pair, 4> pairs_;
};

/// The results of a Meta kernel whose meta class is a TensorIterator.
template <typename Class, size_t N>
class IteratorNewResults final : public NoKernel {
 public:
  explicit IteratorNewResults(const char* op) : op_(op) {}

  template <typename... Arguments>
  auto meta(const Arguments&... arguments) {
    const StandIns stand_ins(op_, arguments...);
    NewResults<Class, Home::kMeta, N> op(op_);
    const auto finish = [&] {
      stand_ins.finish(op);
      for (size_t i = 0; i < N; ++i) {
        outputs_[i] = op.result(static_cast<int64_t>(i));
      }
    };
    return stand_ins.meta(op, finish, arguments...);
  }

  const at::Tensor& maybe_get_output(int64_t index) const {
    return outputs_[index];
  }

  auto results() {
    return taken(outputs_);
  }

 private:
  const char* op_;
  std::array<at::Tensor, N> outputs_;
};

template <Written written, typename Class, size_t N>
class IteratorGivenResults final : public NoKernel {
 public:
  template <typename... Outputs>
  explicit IteratorGivenResults(const char* op, const Outputs&... outputs)
      : op_(op), outputs_{outputs...} {}

  template <typename... Arguments>
  auto meta(const Arguments&... arguments) {
    return meta_on(std::make_index_sequence<N>(), arguments...);
  }

  const at::Tensor& maybe_get_output(int64_t index) const {
    return outputs_[index];
  }

 private:
  template <size_t... indices, typename... Arguments>
  auto meta_on(std::index_sequence<indices...> /*sequence*/, const Arguments&... arguments) {
    const StandIns stand_ins(op_, arguments..., outputs_[indices]...);
    const std::array<at::Tensor, N> given{stand_in_of(stand_ins, outputs_[indices])...};
    GivenResults<written, Class, Home::kMeta, N> op(op_, given[indices]...);
    return stand_ins.meta(op, [&] { stand_ins.finish(op, outputs_); }, arguments...);
  }

  static at::Tensor stand_in_of(const StandIns& stand_ins, const at::Tensor& output) {
    return written == Written::kOut ? stand_ins.of_output(output) : stand_ins.of(output);
  }

  const char* op_;
  std::array<at::Tensor, N> outputs_;
};

} // namespace structured
} // namespace v1
} // namespace torchext
