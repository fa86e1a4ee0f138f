// SPDX-License-Identifier: BSD-3-Clause
#include "streams.h"

#include <torchext/platform.h>

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace torchext::testing {
namespace {

// Who never waits must not gather copies without end; a device gets on by itself, too.
constexpr size_t kMostWaiting = 64;

template <typename Visit>
void for_each_element(
    char* data, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t itemsize, Visit visit) {
  if (sizes.empty()) {
    visit(data);
    return;
  }
  for (int64_t i = 0; i < sizes[0]; ++i) {
    for_each_element(
        data + i * strides[0] * itemsize, sizes.slice(1), strides.slice(1), itemsize, visit);
  }
}

// A copy whose values are kept here, while others stand in the destination. It keeps no tensor alive.
class Copy {
 public:
  explicit Copy(const at::Tensor& copied)
      : storage_(copied.storage().getWeakStorageImpl()),
        memory_(copied.storage().data()),
        data_(static_cast<char*>(copied.data_ptr())),
        sizes_(copied.sizes().vec()),
        strides_(copied.strides().vec()),
        itemsize_(static_cast<int64_t>(copied.element_size())) {
    const bool is_bool = copied.scalar_type() == at::kBool;
    values_.reserve(copied.nbytes());
    const std::string all_bits(static_cast<size_t>(itemsize_), '\xff');
    visit([&](char* element) {
      values_.insert(values_.end(), element, element + itemsize_);
      if (is_bool) {
        *element = *element == 0 ? 1 : 0;
      } else { // of floating point: nan
        const bool is_same = std::memcmp(element, all_bits.data(), all_bits.size()) == 0;
        std::memset(element, is_same ? 0 : 0xff, all_bits.size());
      }
    });
  }

  // Writes the values where the destination still is; returns what kept it alive meanwhile.
  c10::intrusive_ptr<c10::StorageImpl> arrive() {
    c10::intrusive_ptr<c10::StorageImpl> storage = storage_.lock();
    if (storage.defined() && storage->data() == memory_) {
      const char* value = values_.data();
      visit([&](char* element) {
        std::memcpy(element, value, static_cast<size_t>(itemsize_));
        value += itemsize_;
      });
    }
    return storage;
  }

 private:
  template <typename Visit>
  void visit(Visit visit) {
    for_each_element(data_, sizes_, strides_, itemsize_, visit);
  }

  c10::weak_intrusive_ptr<c10::StorageImpl> storage_;
  const void* memory_; // another where the storage was resized
  char* data_;
  std::vector<int64_t> sizes_, strides_;
  int64_t itemsize_;
  std::vector<char> values_;
};

using Name = std::pair<c10::DeviceIndex, c10::StreamId>;

Name name_of(const c10::Stream& stream) {
  return {stream.device_index(), stream.id()};
}

// A copy, or another stream that is waited for.
struct Work {
  std::optional<Copy> copy;
  Name other = {};
  uint64_t position = 0; // of the other
};

struct Queue {
  std::deque<Work> waiting;
  uint64_t done = 0;
};

struct Queues {
  std::mutex mutex;
  std::map<Name, Queue> by_name;
};

// Let go of without the mutex: what frees memory may want locks of its own.
using Kept = std::vector<c10::intrusive_ptr<c10::StorageImpl>>;

Queues& queues() {
  static auto* const all = new Queues; // never destroyed: streams are used until the process ends
  return *all;
}

// A child must not find the mutex held by a thread that it has not.
const bool queues_fork_safely =
    hold_while_forking([] { queues().mutex.lock(); }, [] { queues().mutex.unlock(); });

void finish(Queues& all, Name name, uint64_t position, Kept& kept) {
  Queue& queue = all.by_name[name];
  while (!queue.waiting.empty() && queue.done < position) {
    Work work = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    queue.done += 1;
    if (work.copy.has_value()) {
      kept.push_back(work.copy->arrive());
    } else {
      finish(all, work.other, work.position, kept);
    }
  }
}

void add(const c10::Stream& stream, Work work) {
  Kept kept;
  Queues& all = queues();
  const std::lock_guard lock(all.mutex);
  Queue& queue = all.by_name[name_of(stream)];
  queue.waiting.push_back(std::move(work));
  if (queue.waiting.size() > kMostWaiting) {
    finish(all, name_of(stream), queue.done + 1, kept);
  }
}

} // namespace

void put_off(const at::Tensor& copied, const c10::Stream& stream) {
  if (copied.numel() != 0) {
    add(stream, {Copy(copied)});
  }
}

uint64_t position(const c10::Stream& stream) {
  Queues& all = queues();
  const std::lock_guard lock(all.mutex);
  const Queue& queue = all.by_name[name_of(stream)];
  return queue.done + queue.waiting.size();
}

void finish(const c10::Stream& stream, uint64_t position) {
  Kept kept;
  Queues& all = queues();
  const std::lock_guard lock(all.mutex);
  finish(all, name_of(stream), position, kept);
}

void finish_device(c10::DeviceIndex index) {
  Kept kept;
  Queues& all = queues();
  const std::lock_guard lock(all.mutex);
  for (auto& [name, queue] : all.by_name) {
    if (name.first == index) {
      finish(all, name, UINT64_MAX, kept);
    }
  }
}

void wait_for(const c10::Stream& stream, const c10::Stream& other, uint64_t position) {
  if (name_of(stream) != name_of(other)) {
    add(stream, {std::nullopt, name_of(other), position});
  }
}

} // namespace torchext::testing
