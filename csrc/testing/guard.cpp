// SPDX-License-Identifier: BSD-3-Clause
//
// The current device, and how c10's device guards and torch.accelerator reach it.
#include "device.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace torchext::testing {
namespace {

thread_local c10::DeviceIndex current = 0;

// Each device has one stream, the default one. Nothing is ever pending on it, so an event has happened
// when it is recorded; autograd records events where a gradient crosses devices.
struct GuardImpl final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return c10::kPrivateUse1;
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    return {c10::kPrivateUse1, exchange_device(device.index())};
  }
  c10::Device getDevice() const override {
    return {c10::kPrivateUse1, current};
  }
  void setDevice(c10::Device device) const override {
    exchange_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    current = device.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return kDeviceCount;
  }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return getStream(device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return getStream(stream.device());
  }
  bool queryStream(const c10::Stream& /*stream*/) const override {
    return true;
  }
  void synchronizeStream(const c10::Stream& /*stream*/) const override {}
  void synchronizeDevice(c10::DeviceIndex /*index*/) const override {}
  void record(
      void** /*event*/,
      const c10::Stream& /*stream*/,
      c10::DeviceIndex /*index*/,
      c10::EventFlag /*flag*/) const override {}
  void block(void* /*event*/, const c10::Stream& /*stream*/) const override {}
  bool queryEvent(void* /*event*/) const override {
    return true;
  }
  void synchronizeEvent(void* /*event*/) const override {}
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return true;
  }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override {
    return true;
  }
  c10::DeviceIndex deviceCount() const override {
    return kDeviceCount;
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return current;
  }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    exchange_device(index);
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return exchange_device(index);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchange_device(index);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t nbytes) const override {
    resize_storage(storage, nbytes);
  }
};

// Both are leaked: the registries hold plain pointers until the process ends.
C10_REGISTER_GUARD_IMPL(PrivateUse1, GuardImpl)
const bool hooks_registered = (at::RegisterPrivateUse1HooksInterface(new Hooks), true);

} // namespace

c10::DeviceIndex current_device() noexcept {
  return current;
}

c10::DeviceIndex exchange_device(c10::DeviceIndex index) {
  TORCH_CHECK(
      0 <= index && index < kDeviceCount,
      "torchext: no test device has index ",
      static_cast<int>(index),
      "; there are ",
      static_cast<int>(kDeviceCount));
  const c10::DeviceIndex previous = current;
  current = index;
  return previous;
}

} // namespace torchext::testing

int torchext_test_device_count() {
  return torchext::testing::kDeviceCount;
}

int torchext_test_device_current() {
  return torchext::testing::current_device();
}

int torchext_test_device_exchange(int index) {
  if (index < 0 || index >= torchext::testing::kDeviceCount) {
    return -1;
  }
  return torchext::testing::exchange_device(static_cast<c10::DeviceIndex>(index));
}
