// SPDX-License-Identifier: BSD-3-Clause
//
// For kernels that a test writes for the test device: the device's memory is host memory, closed to
// everybody but kernels that say so.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <torchext/platform.h>

#include <memory>

namespace torchext {
inline namespace v1 {
namespace testing {

/// A CPU tensor on the memory of a tensor of the test device, with its sizes, strides and dtype. The
/// memory is open while the result lives, which keeps the tensor. Throws where that lies elsewhere.
inline at::Tensor host_access(const at::Tensor& tensor) {
  using Open = int(const void*);
  using Close = void(const void*);
  const auto expect = [&](bool is_of_the_device) {
    TORCH_CHECK(is_of_the_device, "expected a tensor of the test device, not of ", tensor.device());
  };
  expect(tensor.device().type() == c10::kPrivateUse1);
  // The device is an object of its own that no library links, loaded before there are tensors of it.
  static Open* const open = find_function<Open>("torchext_test_device_open");
  static Close* const close = find_function<Close>("torchext_test_device_close");
  TORCH_CHECK(
      open != nullptr && close != nullptr,
      "the test device is not loaded: call torchext.testing.device() first");
  void* data = tensor.data_ptr();
  expect(open(data) == 0);
  // closed before the tensor is let go: captures end from the last
  const std::shared_ptr<void> opened(data, [](void* pages) { close(pages); });
  const auto options = at::TensorOptions().dtype(tensor.dtype());
  return at::from_blob(
      data, tensor.sizes(), tensor.strides(), [tensor, opened](void*) {}, options);
}

} // namespace testing
} // namespace v1
} // namespace torchext
