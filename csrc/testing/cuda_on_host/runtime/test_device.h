// SPDX-License-Identifier: BSD-3-Clause
//
// The test device, whose memory kernels work on. It is a library of its own, loaded before this one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace torchext::cuda_on_host {

class TestDevice {
 public:
  struct Block {
    const void* data = nullptr; // null where the memory belongs to no allocation
    size_t nbytes = 0;
    int device = 0;
  };

  TestDevice();

  /// Whether the device has this address, and the allocation that it lies in or next to.
  bool find(const void* address, Block& found) const;

  void open(const void* data) const;
  void close(const void* data) const;

  int count() const {
    return count_();
  }
  int current() const {
    return current_();
  }
  /// Makes a device current; false where there is none of this index.
  bool set_current(int index) const {
    return exchange_(index) >= 0;
  }

 private:
  int (*find_)(const void*, const void**, size_t*, int*);
  int (*open_)(const void*);
  void (*close_)(const void*);
  int (*count_)();
  int (*current_)();
  int (*exchange_)(int);
};

const TestDevice& test_device();

} // namespace torchext::cuda_on_host
