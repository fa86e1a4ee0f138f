// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of the host that kernels may use: what cudaMallocHost, cudaHostAlloc, cudaMallocManaged and
// cudaHostRegister gave to both.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>

namespace torchext::cuda_on_host {

class HostMemory {
 public:
  enum class Kind { kPinned, kRegistered, kManaged };
  struct Range {
    const char* begin;
    size_t nbytes;
    Kind kind;
  };

  /// False where it begins in a range that is known.
  bool add(const void* data, size_t nbytes, Kind kind);
  /// The range that begins there, which is known no longer.
  std::optional<Range> remove(const void* data);
  /// The range that an address lies in, or just behind.
  std::optional<Range> find(const void* address) const;

 private:
  mutable std::mutex mutex_;
  std::map<const char*, Range> ranges_;
};

HostMemory& host_memory();

} // namespace torchext::cuda_on_host
