// SPDX-License-Identifier: BSD-3-Clause
//
// Cooperative groups of a block, of tiles of a warp, of the lanes that are active, and of a grid that was
// launched as one (CUDA C++ Programming Guide, "Cooperative Groups").
#pragma once

#include <cuda_runtime.h>

namespace cooperative_groups {

class thread_block {
 public:
  void sync(TORCHEXT_HERE) const {
    ::torchext::cuda_on_host::barrier("thread_block.sync", true, file, line);
  }
  static unsigned size() {
    const uint3 n = ::torchext::cuda_on_host::block_size();
    return n.x * n.y * n.z;
  }
  static unsigned num_threads() {
    return size();
  }
  static unsigned thread_rank() {
    const uint3 i = ::torchext::cuda_on_host::thread_index();
    const uint3 n = ::torchext::cuda_on_host::block_size();
    return i.x + n.x * (i.y + n.y * i.z);
  }
  static dim3 group_index() {
    return ::torchext::cuda_on_host::block_index();
  }
  static dim3 thread_index() {
    return ::torchext::cuda_on_host::thread_index();
  }
  static dim3 group_dim() {
    return ::torchext::cuda_on_host::block_size();
  }
  static dim3 dim_threads() {
    return group_dim();
  }
};

inline thread_block this_thread_block() {
  return {};
}

class grid_group {
 public:
  void sync(TORCHEXT_HERE) const {
    ::torchext::cuda_on_host::grid_barrier(file, line);
  }
  static bool is_valid() {
    return true;
  }
  static unsigned long long num_blocks() {
    const uint3 n = ::torchext::cuda_on_host::grid_size();
    return static_cast<unsigned long long>(n.x) * n.y * n.z;
  }
  static unsigned long long size() {
    return num_blocks() * thread_block::size();
  }
  static unsigned long long num_threads() {
    return size();
  }
  static unsigned long long block_rank() {
    const uint3 i = ::torchext::cuda_on_host::block_index();
    const uint3 n = ::torchext::cuda_on_host::grid_size();
    return i.x + static_cast<unsigned long long>(n.x) * (i.y + n.y * i.z);
  }
  static unsigned long long thread_rank() {
    return block_rank() * thread_block::size() + thread_block::thread_rank();
  }
};

inline grid_group this_grid() {
  return {};
}

// Lanes of one warp, and what they tell each other: `mask` holds them, in the order of their ranks.
class lane_group {
 public:
  explicit lane_group(unsigned mask) : mask_(mask) {}

  void sync(TORCHEXT_HERE) const {
    __syncwarp(mask_, file, line);
  }
  unsigned size() const {
    return static_cast<unsigned>(__popc(mask_));
  }
  unsigned num_threads() const {
    return size();
  }
  unsigned thread_rank() const {
    return static_cast<unsigned>(__popc(mask_ & ::torchext::cuda_on_host::lanes_below()));
  }
  template <typename T>
  T shfl(T value, unsigned rank, TORCHEXT_HERE) const {
    return of_lane("shfl", value, lane_of(rank % size()), file, line);
  }
  template <typename T>
  T shfl_down(T value, unsigned delta, TORCHEXT_HERE) const {
    const unsigned rank = thread_rank() + delta;
    return of_lane("shfl_down", value, lane_of(rank < size() ? rank : thread_rank()), file, line);
  }
  template <typename T>
  T shfl_up(T value, unsigned delta, TORCHEXT_HERE) const {
    const unsigned rank = thread_rank();
    return of_lane("shfl_up", value, lane_of(rank >= delta ? rank - delta : rank), file, line);
  }
  template <typename T>
  T shfl_xor(T value, unsigned lanes, TORCHEXT_HERE) const {
    const unsigned rank = thread_rank() ^ lanes;
    return of_lane("shfl_xor", value, lane_of(rank < size() ? rank : thread_rank()), file, line);
  }
  bool any(int condition, TORCHEXT_HERE) const {
    return __any_sync(mask_, condition, file, line) != 0;
  }
  bool all(int condition, TORCHEXT_HERE) const {
    return __all_sync(mask_, condition, file, line) != 0;
  }
  unsigned ballot(int condition, TORCHEXT_HERE) const {
    return ranks_of(__ballot_sync(mask_, condition, file, line));
  }
  template <typename T>
  unsigned match_any(T value, TORCHEXT_HERE) const {
    return ranks_of(__match_any_sync(mask_, value, file, line));
  }

 protected:
  unsigned lane_of(unsigned rank) const {
    unsigned left = mask_;
    while (rank-- > 0) {
      left &= left - 1;
    }
    return static_cast<unsigned>(__builtin_ctz(left));
  }
  unsigned ranks_of(unsigned lanes) const {
    unsigned result = 0;
    unsigned rank = 0;
    for (unsigned left = mask_; left != 0; left &= left - 1, ++rank) {
      result |= (lanes >> __builtin_ctz(left) & 1) << rank;
    }
    return result;
  }
  template <typename T>
  T of_lane(const char* name, T value, unsigned lane, const char* file, int line) const {
    return ::torchext::cuda_on_host::shuffle(name, mask_, value, lane, file, line);
  }

  unsigned mask_;
};

class coalesced_group : public lane_group {
 public:
  using lane_group::lane_group;
};

inline coalesced_group coalesced_threads(TORCHEXT_HERE) {
  return coalesced_group(__activemask(file, line));
}

template <unsigned kSize, typename Parent = void>
class thread_block_tile : public lane_group {
 public:
  static_assert(
      kSize <= 32 && (kSize & (kSize - 1)) == 0, "tiles have 1, 2, 4, 8, 16 or 32 threads");

  thread_block_tile() : lane_group(mask_of(thread_block::thread_rank())) {}

  static constexpr unsigned size() {
    return kSize;
  }
  static constexpr unsigned num_threads() {
    return kSize;
  }
  static unsigned meta_group_rank() {
    return thread_block::thread_rank() / kSize;
  }
  static unsigned meta_group_size() {
    return (thread_block::size() + kSize - 1) / kSize;
  }

 private:
  static unsigned mask_of(unsigned rank) {
    const unsigned own = kSize == 32 ? 0xffffffffu : (1u << kSize % 32) - 1;
    return own << rank % 32 / kSize * kSize;
  }
};

template <unsigned kSize, typename Group>
thread_block_tile<kSize, Group> tiled_partition(const Group& /*group*/) {
  return {};
}

template <typename Group>
void sync(const Group& group, TORCHEXT_HERE) {
  group.sync(file, line);
}

template <typename T>
struct plus {
  T operator()(const T& a, const T& b) const {
    return a + b;
  }
};
template <typename T>
struct less {
  T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};
template <typename T>
struct greater {
  T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
template <typename T>
struct bit_and {
  T operator()(const T& a, const T& b) const {
    return a & b;
  }
};
template <typename T>
struct bit_or {
  T operator()(const T& a, const T& b) const {
    return a | b;
  }
};
template <typename T>
struct bit_xor {
  T operator()(const T& a, const T& b) const {
    return a ^ b;
  }
};

/// Of the values of all threads of a group of lanes, in each of them.
template <typename Group, typename T, typename Op>
T reduce(const Group& group, T value, Op op, TORCHEXT_HERE) {
  T result = group.shfl(value, 0, file, line);
  for (unsigned rank = 1; rank < group.num_threads(); ++rank) {
    result = op(result, group.shfl(value, rank, file, line));
  }
  return result;
}

template <typename Group, typename T, typename Op>
T inclusive_scan(const Group& group, T value, Op op, TORCHEXT_HERE) {
  T result = value;
  const unsigned own = group.thread_rank();
  for (unsigned rank = group.num_threads(); rank-- > 0;) {
    const T other = group.shfl(value, rank, file, line);
    result = rank < own ? op(other, result) : result;
  }
  return result;
}

template <typename Group, typename T>
T inclusive_scan(const Group& group, T value, TORCHEXT_HERE) {
  return inclusive_scan(group, value, plus<T>(), file, line);
}

} // namespace cooperative_groups
