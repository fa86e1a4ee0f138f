// SPDX-License-Identifier: BSD-3-Clause
//
// What a kernel in the place of an operator's must return, and leave of what it writes to.
#pragma once

#include "expectation.h"
#include "layers.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>
#include <c10/util/Exception.h>

#include <memory>
#include <optional>
#include <vector>

namespace torchext::runtime {

/// Not a TypeError: Python's `+` would take it for its own and say that tensors have no addition.
template <typename... Parts>
[[noreturn]] void refuse(
    const c10::OperatorHandle& op, const Kernel& kernel, const Parts&... what) {
  TORCH_CHECK(false, op.operator_name(), ": its overriding kernel ", kernel.name(), " ", what...);
}

/// The kernel that was there before those that override it.
class FormerKernel {
 public:
  virtual void call_boxed(
      const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) const = 0;

 protected:
  ~FormerKernel() = default;
};

/// A call of an operator whose kernel for a key is overridden.
struct Call {
  const c10::OperatorHandle& op;
  c10::DispatchKey key;
  c10::DispatchKeySet keys;
  const FormerKernel& former;
  std::vector<c10::IValue> arguments;
};

/// What holds between a call and a kernel; made before the kernel runs.
class Contract {
 public:
  Contract(const Call& call, const Kernel& kernel);

  /// Refuses what the kernel has done, or makes its results, the last on the stack, what they are
  /// to the operator's callers: tensors of their own, laid out as the operator's.
  void fulfil(torch::jit::Stack& stack) const;

 private:
  // A tensor that is written to, as it was.
  struct Written {
    size_t argument;
    at::Tensor tensor;
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    int64_t offset;
    at::ScalarType dtype;
    const c10::StorageImpl* storage;
  };

  template <typename... Parts>
  [[noreturn]] void refuse(const Parts&... what) const {
    runtime::refuse(call_.op, kernel_, what...);
  }

  void note_written(size_t argument);
  void check_written(const Written& before, const at::Tensor& expected) const;
  void check_all_written() const;
  void check_kind(const at::Tensor& returned) const;
  void check_is_new(const std::vector<at::Tensor>& results) const;
  std::optional<c10::Device> device() const;
  void check_device(const at::Tensor& returned, const c10::Device& expected) const;
  void check_apart(const std::vector<at::Tensor>& results) const;
  std::shared_ptr<const Expectation> expectation_like(at::ArrayRef<c10::IValue> results) const;
  std::shared_ptr<const Expectation> of_former_kernel() const;

  const Call& call_;
  const Kernel& kernel_;
  std::vector<Written> written_;
  std::shared_ptr<const Expectation> expectation_;
};

} // namespace torchext::runtime
