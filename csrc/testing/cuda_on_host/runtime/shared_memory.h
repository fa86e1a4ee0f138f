// SPDX-License-Identifier: BSD-3-Clause
//
// The shared memory of a block: variables with gaps between them, and for each byte who wrote and read
// it last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace torchext::cuda_on_host {

struct Thread;

/// Where the variables of a launch lie, the same in each of its blocks.
struct SharedLayout {
  struct Variable {
    const void* key;
    size_t offset;
    size_t nbytes;
  };

  std::vector<Variable> variables;
  size_t end = 0;    // of all, with the gaps
  size_t nbytes = 0; // without

  void clear();
  size_t add(const void* key, size_t nbytes, size_t alignment);

  /// The variable that a byte lies in, or null.
  const Variable* find(size_t offset) const;
};

/// An access that was, to a byte.
struct Access {
  const void* code;
  unsigned thread;
  unsigned epoch;
  unsigned ticket; // among the lanes of the thread's warp
  bool is_atomic;
};

class SharedMemory {
 public:
  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Forgets what another block left.
  void begin(const SharedLayout& layout);

  char* data() const {
    return data_;
  }
  bool contains(const void* address) const {
    return data_ <= address && address < data_ + kMost;
  }

  /// Fails where the access is to no variable, reads what nobody wrote, or has no order against that
  /// of another thread.
  void check(
      Thread& thread,
      const void* address,
      size_t nbytes,
      bool writes,
      bool is_atomic,
      const void* code);

  /// Looks at what two threads wrote without an order: where it was the same, nothing is wrong.
  void check_written_twice(Thread& thread);

  void poison(size_t offset, size_t nbytes);

  // What an SM of any architecture has, and gaps.
  static constexpr size_t kMost = 512 << 10;

 private:
  // Of one byte. Of readers two are kept: one of those without an order against a writer is enough.
  struct Shadow {
    unsigned block; // the others mean nothing where it is not this one
    bool is_written;
    uint8_t readers;
    Access writer;
    Access reader[2];
  };
  struct Twice {
    size_t offset;
    size_t nbytes;
    unsigned char first[16]; // the bytes that the first wrote
    Access one;
    Access other;
  };

  char* data_;
  Shadow* shadows_; // pages of zeros, until they are written
  std::vector<Twice> twice_;
  unsigned block_ = 0;
};

} // namespace torchext::cuda_on_host
