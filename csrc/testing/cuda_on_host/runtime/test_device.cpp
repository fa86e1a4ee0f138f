// SPDX-License-Identifier: BSD-3-Clause
#include "test_device.h"

#include <c10/util/Exception.h>
#include <torchext/platform.h>

namespace torchext::cuda_on_host {
namespace {

template <typename Function>
void bind(Function*& function, const char* name) {
  function = find_function<Function>(name);
  TORCH_CHECK(function != nullptr, "the test device is not loaded: it has no ", name);
}

} // namespace

TestDevice::TestDevice() {
  bind(find_, "torchext_test_device_find");
  bind(open_, "torchext_test_device_open");
  bind(close_, "torchext_test_device_close");
  bind(count_, "torchext_test_device_count");
  bind(current_, "torchext_test_device_current");
  bind(exchange_, "torchext_test_device_exchange");
}

bool TestDevice::find(const void* address, Block& found) const {
  return find_(address, &found.data, &found.nbytes, &found.device) == 0;
}

void TestDevice::open(const void* data) const {
  TORCH_CHECK(open_(data) == 0, "memory of the test device cannot be opened");
}

void TestDevice::close(const void* data) const {
  close_(data);
}

const TestDevice& test_device() {
  static const TestDevice only;
  return only;
}

} // namespace torchext::cuda_on_host
