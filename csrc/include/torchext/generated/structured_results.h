// SPDX-License-Identifier: BSD-3-Clause
//
// The results of structured operators: what makes, checks or resizes those that a meta function
// sets, before a kernel of the same class fills them.
//
// Header only, no mutable statics: several libraries in one process may include it.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Scalar.h>
#include <c10/util/SmallVector.h>
#include <torchext/compat.h>
#include <torchext/elementwise.h>
#include <torchext/generated/arguments.h>
#include <torchext/generated/home.h>
#include <torchext/generated/memory_overlap.h>
#include <torchext/meta_base.h>

#ifdef TORCHEXT_WITH_CUDA
#include <ATen/cuda/EmptyTensor.h>
#endif

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace torchext {
inline namespace v1 {

/// A dispatcher's argument as meta functions and kernels of structured operators take it.
inline at::OptionalTensorRef as_argument(const std::optional<at::Tensor>& tensor) {
  const bool is_there = tensor.has_value() && tensor->defined();
  return is_there ? at::OptionalTensorRef(*tensor) : at::OptionalTensorRef();
}

inline at::OptionalScalarRef as_argument(const std::optional<at::Scalar>& scalar) {
  return scalar.has_value() ? at::OptionalScalarRef(&*scalar) : at::OptionalScalarRef();
}

inline int64_t as_argument(const c10::SymInt& value) {
  return value.guard_int(__FILE__, __LINE__);
}

inline std::optional<int64_t> as_argument(const std::optional<c10::SymInt>& value) {
  return value.has_value() ? std::optional(as_argument(*value)) : std::nullopt;
}

inline at::IntArrayRef as_argument(c10::SymIntArrayRef values) {
  return C10_AS_INTARRAYREF_SLOW(values);
}

inline at::OptionalIntArrayRef as_argument(const at::OptionalSymIntArrayRef& values) {
  using Found = std::optional<at::IntArrayRef>;
  return values.has_value() ? Found(as_argument(*values)) : Found();
}

namespace structured {

template <Home home>
at::Tensor new_result(
    at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options) {
  if constexpr (home == Home::kCPU) {
    const at::ScalarType dtype = c10::typeMetaToScalarType(options.dtype());
    const bool pinned = options.pinned_memory();
    return at::Tensor(
        strides.empty() ? at::detail::empty_cpu(sizes, dtype, pinned, options.memory_format_opt())
                        : at::detail::empty_strided_cpu(sizes, strides, dtype, pinned));
  } else if constexpr (home == Home::kMeta) {
    const at::TensorOptions meta = options.device(at::kMeta);
    return at::Tensor(
        strides.empty() ? at::detail::empty_meta(sizes, meta)
                        : at::detail::empty_strided_meta(sizes, strides, meta));
#ifdef TORCHEXT_WITH_CUDA
  } else if constexpr (home == Home::kCUDA) {
    return at::Tensor(
        strides.empty() ? at::detail::empty_cuda(sizes, options)
                        : at::detail::empty_strided_cuda(sizes, strides, options));
#endif
  } else {
    return strides.empty() ? at::empty(sizes, options) : at::empty_strided(sizes, strides, options);
  }
}

/// Makes the device of the results current, until the kernel has run.
class DeviceSelection {
 public:
  void select(at::Device device) {
    const std::optional<at::Device> current = guard_.current_device();
    if (current.has_value()) {
      TORCH_INTERNAL_ASSERT(*current == device, "results on ", *current, " and ", device);
    } else {
      guard_.reset_device(device);
    }
  }

 private:
  c10::OptionalDeviceGuard guard_;
};

/// Of kernels whose device there is only one of.
class NoDeviceSelection {
 public:
  void select(at::Device /*device*/) {}
};

template <Home home>
using Selection = std::
    conditional_t<home == Home::kCPU || home == Home::kMeta, NoDeviceSelection, DeviceSelection>;

template <typename Class>
inline constexpr bool kIsIterator = std::is_base_of_v<at::TensorIteratorBase, Class>;

inline void check_written(
    const char* op, const char* form, const at::Tensor& written, const at::TensorOptions& options) {
  const auto dtype = c10::typeMetaToScalarType(options.dtype());
  TORCH_CHECK(
      written.scalar_type() == dtype,
      op,
      ": the ",
      form,
      " tensor must have dtype ",
      dtype,
      ", got ",
      written.scalar_type());
  TORCH_CHECK(
      written.device() == options.device(),
      op,
      ": the ",
      form,
      " tensor must be on ",
      options.device(),
      ", got one on ",
      written.device());
}

/// What the results of all forms have in common.
template <typename Class>
class Results : public Class {
 public:
  /// The dtype that an iterator on the CPU converts its inputs to; Undefined where they stay as they
  /// are. It is one that they are promoted to then, or what makes floats of integers.
  at::ScalarType converts_to() const {
    at::native::ResultTypeState state = {};
    for (int i = this->noutputs(); i < this->ntensors(); ++i) {
      state = at::native::update_result_type_state(this->tensor(i), state);
    }
    const at::ScalarType promoted = at::native::result_type(state), common = this->common_dtype_;
    const bool is_made_float = promoted != at::ScalarType::Undefined &&
                               at::isIntegralType(promoted, /*includeBool=*/true) &&
                               common == c10::get_default_dtype_as_scalartype();
    return common == promoted || is_made_float ? common : at::ScalarType::Undefined;
  }

 protected:
  /// The strides of a result, which an iterator on the CPU finds after it has converted what is of
  /// another dtype. On each device, and on Meta, results have these.
  template <Home home>
  auto strides_of(at::IntArrayRef sizes, at::IntArrayRef strides) const {
    if constexpr (!kIsIterator<Class> || home == Home::kCPU) {
      return strides;
    } else {
      c10::SmallVector<const at::Tensor*, 4> inputs;
      for (int i = this->noutputs(); i < this->ntensors(); ++i) {
        inputs.push_back(&this->tensor(i));
      }
      const auto operands = detail::converted_to(converts_to(), inputs);
      if (std::any_of(operands.begin(), operands.end(), [](const detail::Operand& operand) {
            return operand.is_converted();
          })) {
        const c10::SymDimVector found =
            detail::result_strides(operands, c10::fromIntArrayRefSlow(sizes));
        return c10::DimVector(C10_AS_INTARRAYREF_SLOW(found));
      }
      return c10::DimVector(strides);
    }
  }
};

/// What an operator with these results returns.
template <size_t N>
auto taken(std::array<at::Tensor, N>& outputs) {
  if constexpr (N == 1) {
    return std::move(outputs[0]);
  } else {
    return std::apply(
        [](auto&... output) { return std::make_tuple(std::move(output)...); }, outputs);
  }
}

inline std::vector<at::Tensor> taken(std::vector<at::Tensor>& outputs) {
  return std::move(outputs);
}

/// The new results of a functional form.
template <typename Class, Home home, size_t N>
class NewResults final : public Results<Class> {
 public:
  explicit NewResults(const char* /*op*/) {}

  const at::Tensor& maybe_get_output(int64_t index) override {
    return outputs_[index];
  }

  void set_output_strided(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      at::TensorOptions options TORCHEXT_NAMES_PARAMETER) override {
    set(index, sizes, strides, options TORCHEXT_NAMES_ARGUMENT);
  }

  void set_output_raw_strided(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      at::TensorOptions options TORCHEXT_NAMES_PARAMETER) override {
    set(index, sizes, strides, options TORCHEXT_NAMES_ARGUMENT);
  }

  at::Tensor& output(int64_t index) {
    return outputs_[index];
  }

  /// What the operator returns.
  auto results() {
    return taken(outputs_);
  }

  at::Tensor result(int64_t index) {
    return std::move(outputs_[index]);
  }

 private:
  void set(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      const at::TensorOptions& options TORCHEXT_NAMES_PARAMETER) {
    selection_.select(options.device());
    const auto own = this->template strides_of<home>(sizes, strides);
    outputs_[index] = new_result<home>(sizes, own, options);
    if constexpr (kIsIterator<Class>) {
      Class::set_output_raw_strided(index, sizes, own, options TORCHEXT_NAMES_ARGUMENT);
    }
  }

  std::array<at::Tensor, N> outputs_;
  Selection<home> selection_;
};

enum class Written { kInPlace, kOut };

/// The results that an in-place or out= form is given. Where a kernel cannot write to one as it
/// is, it writes to another tensor, which copy_back() copies. An undefined one is new.
template <Written written, typename Class, Home home, size_t N>
class GivenResults final : public Results<Class> {
 public:
  template <typename... Outputs>
  explicit GivenResults(const char* op, const Outputs&... outputs)
      : op_(op), outputs_{std::cref<at::Tensor>(outputs)...} {}

  const at::Tensor& maybe_get_output(int64_t index) override {
    return others_[index].defined() ? others_[index] : outputs_[index].get();
  }

  void set_output_strided(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      at::TensorOptions options TORCHEXT_NAMES_PARAMETER) override {
    prepare(index, sizes, strides, options);
    if (!others_[index].defined() && outputs_[index].get().strides() != strides) {
      others_[index] = new_result<home>(sizes, strides, options);
    }
    set_in_iterator(index, sizes, strides, options TORCHEXT_NAMES_ARGUMENT);
  }

  void set_output_raw_strided(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      at::TensorOptions options TORCHEXT_NAMES_PARAMETER) override {
    const auto own = this->template strides_of<home>(sizes, strides);
    prepare(index, sizes, own, options);
    set_in_iterator(index, sizes, own, options TORCHEXT_NAMES_ARGUMENT);
  }

  /// To be called before the meta function: what the kernel reads. A result that overlaps itself,
  /// or in part what is read or another result, is refused. `own` may be a result: kernels of
  /// operators with an in-place form cope with that.
  template <typename... Inputs>
  void reads(const at::Tensor& own, const Inputs&... inputs) {
    own_ = own;
    (for_each_tensor([this](const at::Tensor& input) { inputs_.push_back(input); }, inputs), ...);
    for (size_t i = 0; i < N; ++i) {
      const at::Tensor& output = outputs_[i].get();
      if (!output.defined()) {
        continue;
      }
      at::assert_no_internal_overlap(output);
      refuse_partial_overlap(output, own);
      for (const at::Tensor& input : inputs_) {
        refuse_partial_overlap(output, input);
      }
      for (size_t j = 0; j < i; ++j) {
        refuse_partial_overlap(output, outputs_[j].get());
        TORCH_CHECK(
            !is_same_memory(output, outputs_[j].get()), op_, ": two results are one tensor");
      }
    }
  }

  at::Tensor result(int64_t index) {
    return outputs_[index].get().defined() ? outputs_[index].get() : std::move(others_[index]);
  }

  void copy_back() const {
    for (size_t i = 0; i < N; ++i) {
      if (C10_UNLIKELY(others_[i].defined() && outputs_[i].get().defined())) {
        at::native::resize_output(outputs_[i].get(), others_[i].sizes());
        outputs_[i].get().copy_(others_[i]);
      }
    }
  }

 private:
  void prepare(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      const at::TensorOptions& options) {
    selection_.select(options.device());
    const at::Tensor& output = outputs_[index].get();
    if (!output.defined()) {
      others_[index] = new_result<home>(sizes, strides, options);
      return;
    }
    if constexpr (written == Written::kInPlace) {
      check_written(op_, "in-place", output, options);
      TORCH_CHECK(
          output.sizes() == sizes,
          op_,
          ": the in-place tensor must have the shape of the result, ",
          sizes,
          ", got ",
          output.sizes());
    } else {
      check_written(op_, "out=", output, options);
    }
    if (is_read(output, sizes)) {
      others_[index] = new_result<home>(sizes, strides, options);
    } else if (written == Written::kOut && at::native::resize_output(output, sizes)) {
      if (!strides.empty()) {
        output.as_strided_(sizes, strides);
      } else if (options.memory_format_opt().has_value()) {
        output.unsafeGetTensorImpl()->empty_tensor_restride(*options.memory_format_opt());
      }
    } // strides are an advice to new results
  }

  /// Whether the kernel would read what it writes, or what a resize changes.
  bool is_read(const at::Tensor& output, at::IntArrayRef sizes) const {
    const bool resizes = output.sizes() != sizes;
    const auto shares = [&](const at::Tensor& input) {
      return input.defined() && input.has_storage() && output.has_storage() &&
             input.storage().is_alias_of(output.storage());
    };
    const auto clashes = [&](const at::Tensor& input) {
      return resizes ? shares(input) : is_same_memory(output, input);
    };
    return (resizes && shares(own_)) || std::any_of(inputs_.begin(), inputs_.end(), clashes);
  }

  void set_in_iterator(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      const at::TensorOptions& options TORCHEXT_NAMES_PARAMETER) {
    if constexpr (kIsIterator<Class>) {
      Class::set_output_raw_strided(index, sizes, strides, options TORCHEXT_NAMES_ARGUMENT);
    }
  }

  static bool is_same_memory(const at::Tensor& output, const at::Tensor& input) {
    return input.defined() && input.numel() > 0 &&
           detail::overlap_status(output, input) == at::MemOverlapStatus::Full;
  }

  void refuse_partial_overlap(const at::Tensor& output, const at::Tensor& input) const {
    TORCH_CHECK(
        !input.defined() || detail::overlap_status(output, input) != at::MemOverlapStatus::Partial,
        op_,
        ": a result overlaps an input or another result in part; clone one of them");
  }

  const char* op_;
  std::array<std::reference_wrapper<const at::Tensor>, N> outputs_;
  std::array<at::Tensor, N> others_;
  at::Tensor own_;
  c10::SmallVector<at::Tensor, 2> inputs_;
  Selection<home> selection_;
};

} // namespace structured
} // namespace v1
} // namespace torchext
