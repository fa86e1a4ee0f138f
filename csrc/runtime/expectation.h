// SPDX-License-Identifier: BSD-3-Clause
//
// What an operator itself would return for arguments, and leave of those that it writes to: by its
// Meta kernel, which computes sizes, strides and dtypes and no values.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <atomic>
#include <exception>
#include <memory>
#include <vector>

namespace torchext::runtime {

/// Tensors of the Meta device in the places of those of a call.
struct Expectation {
  std::vector<c10::IValue> arguments; // after the call
  std::vector<c10::IValue> results;
  bool moves = false; // whether an argument has other memory afterwards, as that of `set_`
};

/// Which exceptions of a Meta kernel are no word of the kernel's, such as Python's interrupts.
inline std::atomic<bool (*)(const std::exception&)> is_interrupt{nullptr};

/// nullptr where the operator cannot tell: it has no Meta kernel, the arguments are no strided
/// tensors, or the kernel refuses them, as it does where sizes depend on values.
///
/// Many of ATen's Meta kernels are Python, and slow: so it is kept for the next call that differs
/// in nothing but values.
std::shared_ptr<const Expectation> expectation_of(
    const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments);

/// What a kernel did return, in place of what Meta says: ATen's are not always of one mind.
std::shared_ptr<const Expectation> corrected_expectation(
    const c10::OperatorHandle& op,
    const std::vector<c10::IValue>& arguments,
    const Expectation& wrong,
    const std::vector<c10::IValue>& results);

} // namespace torchext::runtime
