// SPDX-License-Identifier: BSD-3-Clause
#include "host_memory.h"

#include <iterator>

namespace torchext::cuda_on_host {

bool HostMemory::add(const void* data, size_t nbytes, Kind kind) {
  const auto* begin = static_cast<const char*>(data);
  const auto known = find(data);
  if (known.has_value() && begin < known->begin + known->nbytes) {
    return false;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  ranges_[begin] = {begin, nbytes, kind};
  return true;
}

std::optional<HostMemory::Range> HostMemory::remove(const void* data) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = ranges_.find(static_cast<const char*>(data));
  if (found == ranges_.end()) {
    return std::nullopt;
  }
  const Range range = found->second;
  ranges_.erase(found);
  return range;
}

std::optional<HostMemory::Range> HostMemory::find(const void* address) const {
  const auto* at = static_cast<const char*>(address);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto next = ranges_.upper_bound(at);
  if (next == ranges_.begin()) {
    return std::nullopt;
  }
  const Range& range = std::prev(next)->second;
  return at <= range.begin + range.nbytes ? std::optional(range) : std::nullopt;
}

HostMemory& host_memory() {
  static HostMemory only;
  return only;
}

} // namespace torchext::cuda_on_host
