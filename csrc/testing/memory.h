// SPDX-License-Identifier: BSD-3-Clause
//
// The pages of the test device's memory. Nobody can read or write them, save while they are open: so
// a kernel of the CPU that is given a tensor of the device dies where it touches it.
#pragma once

#include <cstddef>

namespace torchext::testing {

/// What was asked for, and for which device.
struct Allocation {
  size_t nbytes = 0;
  int device = 0;
};

/// Pages of their own, closed, with all bits set; nullptr for no bytes. They end, but for less than
/// 64 bytes, where the allocation does, and whoever goes on dies. Throws std::bad_alloc, and
/// std::runtime_error where the process may not have the addresses.
void* allocate_pages(Allocation allocation);

/// Gives them back; whoever still uses them dies.
Allocation release_pages(void* data) noexcept;

/// Opens the allocation that an address lies in until as many calls of close_pages; nothing for
/// nullptr. Throws std::invalid_argument for what is no memory of the device.
void open_pages(const void* data);
void close_pages(const void* data) noexcept;

/// Whether an address is one of the device's. If it lies in an allocation, or in the page behind one,
/// that one's begin and size; otherwise a begin of nullptr.
bool find_allocation(const void* address, const void*& data, Allocation& found);

/// Opens the memory of an address while it lives.
class OpenPages {
 public:
  explicit OpenPages(const void* data) : data_(data) {
    open_pages(data);
  }
  OpenPages(const OpenPages&) = delete;
  OpenPages& operator=(const OpenPages&) = delete;
  ~OpenPages() {
    close_pages(data_);
  }

 private:
  const void* data_;
};

} // namespace torchext::testing
