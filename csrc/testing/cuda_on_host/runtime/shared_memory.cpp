// SPDX-License-Identifier: BSD-3-Clause
#include "shared_memory.h"

#include "machine.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include <sys/mman.h>

namespace torchext::cuda_on_host {
namespace {

// Between variables, so that who goes beyond one does not land in the next.
constexpr size_t kGap = 256;
constexpr int kPoison = 0xff; // of floating point these are nan

template <typename T>
T* zeroed(size_t count) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* found = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, kFlags, /*fd=*/-1, 0);
  if (found == MAP_FAILED) {
    throw std::bad_alloc();
  }
  return static_cast<T*>(found);
}

size_t rounded_up(size_t value, size_t to) {
  return (value + to - 1) / to * to;
}

// Whether what was done happened before what `thread` does now.
bool is_before(const Access& done, const Thread& thread) {
  if (done.thread == thread.number || done.epoch != thread.block->epoch) {
    return true;
  }
  const bool is_of_the_warp = done.thread / kWarpSize == thread.number / kWarpSize;
  return is_of_the_warp &&
         done.ticket < thread.warp().known[thread.lane()][done.thread % kWarpSize];
}

std::string text_of_thread(unsigned number, const Block& block) {
  return "thread " + text_of(block.threads[number].index);
}

// Of a read, how many of its bytes nobody wrote, by eight of them. What is read as a whole may be a
// struct, and some of it padding: where a part of eight was written that is not looked at.
class Unwritten {
 public:
  explicit Unwritten(size_t nbytes) : nbytes_(nbytes) {}

  void add(size_t i) {
    if (i / kPart != part_) {
      part_ = i / kPart;
      count_ = 0;
    }
    ++count_;
    is_error_ |= nbytes_ <= kWhole || count_ == std::min(kPart, nbytes_ - part_ * kPart);
  }
  bool is_error() const {
    return is_error_;
  }

 private:
  static constexpr size_t kPart = 8;
  static constexpr size_t kWhole = 4; // no struct is copied by so few

  size_t nbytes_;
  size_t part_ = 0;
  size_t count_ = 0;
  bool is_error_ = false;
};

[[noreturn]] void fail_of_race(
    const Thread& thread,
    const char* doing,
    const char* was_doing,
    const Access& done,
    const void* code) {
  machine().fail_at(
      std::string(doing) + " shared memory that " + text_of_thread(done.thread, *thread.block) +
          " " + was_doing + " at " + place_of_code(done.code) + ", with no barrier between the two",
      code);
}

} // namespace

void SharedLayout::clear() {
  variables.clear();
  end = 0;
  nbytes = 0;
}

size_t SharedLayout::add(const void* key, size_t size, size_t alignment) {
  const size_t offset = rounded_up(end, std::max(alignment, size_t{16}));
  variables.push_back({key, offset, size});
  end = offset + size + kGap;
  nbytes = rounded_up(nbytes, alignment) + size;
  return offset;
}

const SharedLayout::Variable* SharedLayout::find(size_t offset) const {
  for (const Variable& variable : variables) {
    if (variable.offset <= offset && offset < variable.offset + variable.nbytes) {
      return &variable;
    }
  }
  return nullptr;
}

SharedMemory::SharedMemory() : data_(zeroed<char>(kMost)), shadows_(zeroed<Shadow>(kMost)) {}

SharedMemory::~SharedMemory() {
  munmap(data_, kMost);
  munmap(shadows_, kMost * sizeof(Shadow));
}

void SharedMemory::begin(const SharedLayout& layout) {
  ++block_;
  twice_.clear();
  std::memset(data_, kPoison, layout.end);
}

void SharedMemory::poison(size_t offset, size_t nbytes) {
  std::memset(data_ + offset, kPoison, nbytes);
}

void SharedMemory::check(
    Thread& thread,
    const void* address,
    size_t nbytes,
    bool writes,
    bool is_atomic,
    const void* code) {
  const auto offset = static_cast<size_t>(static_cast<const char*>(address) - data_);
  const SharedLayout::Variable* variable = machine().shared_layout().find(offset);
  if (variable == nullptr || offset + nbytes > variable->offset + variable->nbytes) {
    machine().fail_at(
        std::string(writes ? "writes " : "reads ") + std::to_string(nbytes) +
            " bytes of shared memory out of bounds",
        code);
  }
  const Access access{code, thread.number, thread.block->epoch, thread.lane_ticket, is_atomic};
  const bool finds_races = machine().options.finds_races;
  bool is_twice = false;
  Access before{};
  Unwritten unwritten(nbytes);
  for (size_t i = offset; i < offset + nbytes; ++i) {
    Shadow& shadow = shadows_[i];
    if (shadow.block != block_) {
      shadow.block = block_;
      shadow.is_written = false;
      shadow.readers = 0;
    }
    const bool is_unordered = finds_races && shadow.is_written &&
                              !(is_atomic && shadow.writer.is_atomic) &&
                              !is_before(shadow.writer, thread);
    if (!writes || is_atomic) {
      if (!shadow.is_written) {
        unwritten.add(i - offset);
      }
      if (is_unordered) {
        fail_of_race(thread, "reads", "wrote", shadow.writer, code);
      }
    }
    if (writes) {
      for (int k = 0; finds_races && k < shadow.readers; ++k) {
        const Access& reader = shadow.reader[k];
        if (!(is_atomic && reader.is_atomic) && !is_before(reader, thread)) {
          fail_of_race(thread, "writes", "reads", reader, code);
        }
      }
      if (is_unordered && !is_twice) {
        is_twice = true;
        before = shadow.writer;
      }
      shadow.is_written = true;
      shadow.writer = access;
      shadow.readers = 0;
    } else if (shadow.readers == 0 || is_before(shadow.reader[0], thread)) {
      shadow.reader[0] = access;
      shadow.readers = std::max<uint8_t>(shadow.readers, 1);
    } else {
      shadow.reader[1] = access;
      shadow.readers = 2;
    }
  }
  if (unwritten.is_error()) {
    machine().fail_at("reads shared memory that no thread has written to yet", code);
  }
  if (is_twice) {
    Twice twice{offset, std::min(nbytes, sizeof(Twice::first)), {}, before, access};
    std::memcpy(twice.first, data_ + offset, twice.nbytes);
    twice_.push_back(twice);
  }
}

void SharedMemory::check_written_twice(Thread& thread) {
  for (const Twice& twice : twice_) {
    if (std::memcmp(twice.first, data_ + twice.offset, twice.nbytes) != 0) {
      fail_of_race(thread, "writes", "wrote another value to", twice.one, twice.other.code);
    }
  }
  twice_.clear();
}

} // namespace torchext::cuda_on_host
