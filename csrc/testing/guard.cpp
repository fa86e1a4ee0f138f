// SPDX-License-Identifier: BSD-3-Clause
//
// The current device, and how c10's device guards and torch.accelerator reach it.
#include "device.h"
#include "streams.h"

#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceCapability.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace torchext::testing {
namespace {

thread_local c10::DeviceIndex current = 0;

// The current stream of each device, by its number; 0 is the default one.
thread_local c10::StreamId current_streams[kDeviceCount] = {};

// A new stream is one of so many, in turn, as those of CUDA are: what is kept of each stays little.
constexpr c10::StreamId kStreams = 32;
std::atomic<c10::StreamId> made_streams{0};

using Clock = std::chrono::steady_clock;

c10::Stream stream_of(c10::DeviceIndex index, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kPrivateUse1, index), id);
}

// An event is nullptr before it is recorded.
struct Event {
  Clock::time_point time;
  c10::Stream stream;
  uint64_t position; // of the stream's work
};

Event& recorded(void* event) {
  return *static_cast<Event*>(event);
}

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
    return current_stream(device.index());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return stream_of(indexed(device), 0);
  }
  c10::Stream getStreamFromGlobalPool(
      c10::Device device, bool /*is_high_priority*/) const override {
    return getNewStream(device, 0);
  }
  c10::Stream getNewStream(c10::Device device, int /*priority*/) const override {
    return stream_of(indexed(device), 1 + made_streams++ % kStreams);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    c10::StreamId& id = current_streams[checked_index(stream.device_index())];
    return stream_of(stream.device_index(), std::exchange(id, stream.id()));
  }
  // Who asks whether a stream is done asks until it is.
  bool queryStream(const c10::Stream& stream) const override {
    finish(stream);
    return true;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    finish(stream);
  }
  void synchronizeDevice(c10::DeviceIndex index) const override {
    finish_device(static_cast<c10::DeviceIndex>(checked_index(index)));
  }
  void record(
      void** event,
      const c10::Stream& stream,
      c10::DeviceIndex /*index*/,
      c10::EventFlag /*flag*/) const override {
    const Event now{Clock::now(), stream, position(stream)};
    if (*event == nullptr) {
      *event = new Event(now);
    } else {
      recorded(*event) = now;
    }
  }
  void destroyEvent(void* event, c10::DeviceIndex /*index*/) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) {
      wait_for(stream, recorded(event).stream, recorded(event).position);
    }
  }
  bool queryEvent(void* event) const override {
    synchronizeEvent(event);
    return true;
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) {
      finish(recorded(event).stream, recorded(event).position);
    }
  }
  double elapsedTime(void* start, void* end, c10::DeviceIndex /*index*/) const override {
    TORCH_CHECK(
        start != nullptr && end != nullptr,
        "Both events must be recorded before calculating elapsed time.");
    const auto passed = recorded(end).time - recorded(start).time;
    return std::chrono::duration<double, std::milli>(passed).count();
  }
  // What a device computes, the CPU computes.
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    checked_index(device.index());
    return {};
  }

 private:
  static c10::DeviceIndex indexed(c10::Device device) {
    return static_cast<c10::DeviceIndex>(checked_index(device.index()));
  }
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
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return default_generator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return new_generator(index);
  }
  bool isPinnedPtr(const void* data) const override {
    return is_pinned(data);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return pinned_memory_allocator();
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

c10::Stream current_stream(c10::DeviceIndex index) {
  const size_t known = checked_index(index);
  return stream_of(static_cast<c10::DeviceIndex>(known), current_streams[known]);
}

size_t checked_index(c10::DeviceIndex index) {
  TORCH_CHECK(
      -1 <= index && index < kDeviceCount,
      "torchext: no test device has index ",
      static_cast<int>(index),
      "; there are ",
      static_cast<int>(kDeviceCount));
  return static_cast<size_t>(index < 0 ? current : index);
}

c10::DeviceIndex exchange_device(c10::DeviceIndex index) {
  TORCH_CHECK(index >= 0, "torchext: no test device has index ", static_cast<int>(index));
  checked_index(index);
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

const char* torchext_test_device_backward(int index) {
  thread_local std::string error;
  try {
    TORCH_CHECK(
        0 <= index && index < torchext::testing::kDeviceCount, "no test device has index ", index);
    const c10::Device device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(index));
    at::zeros({}, at::TensorOptions(device)).set_requires_grad(true).backward();
    return nullptr;
  } catch (const std::exception& caught) {
    error = caught.what();
    return error.c_str();
  } catch (...) {
    return "an exception of an unknown type";
  }
}
