// SPDX-License-Identifier: BSD-3-Clause
//
// Cooperative groups of a block, of tiles of a warp, of the lanes that are active, and of a grid that was
// launched as one (CUDA C++ Programming Guide, "Cooperative Groups").
#pragma once

#include <cuda_runtime.h>

#include <utility>

namespace cooperative_groups {

namespace details {

// Of threads that wait in two steps: the first says that it came, and cannot go on by itself here.
struct arrival_token {};

} // namespace details

class thread_block {
 public:
  using arrival_token = details::arrival_token;

  arrival_token barrier_arrive() const {
    return {};
  }
  void barrier_wait(arrival_token&& /*token*/, TORCHEXT_HERE) const {
    sync(file, line);
  }
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

/// One thread.
class thread_group_of_one {
 public:
  void sync() const {}
  static unsigned size() {
    return 1;
  }
  static unsigned num_threads() {
    return 1;
  }
  static unsigned thread_rank() {
    return 0;
  }
};

inline thread_group_of_one this_thread() {
  return {};
}

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
  static dim3 dim_blocks() {
    return ::torchext::cuda_on_host::grid_size();
  }
  static dim3 group_dim() {
    return dim_blocks();
  }
  static dim3 block_index() {
    return ::torchext::cuda_on_host::block_index();
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
  template <typename T>
  unsigned match_all(T value, int& is_same, TORCHEXT_HERE) const {
    return ranks_of(__match_all_sync(mask_, value, &is_same, file, line));
  }
  unsigned lanes() const {
    return mask_;
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
  explicit coalesced_group(unsigned mask, unsigned rank = 0, unsigned count = 1)
      : lane_group(mask), meta_rank_(rank), meta_count_(count) {}

  unsigned meta_group_rank() const {
    return meta_rank_;
  }
  unsigned meta_group_size() const {
    return meta_count_;
  }

 private:
  unsigned meta_rank_;
  unsigned meta_count_;
};

inline coalesced_group coalesced_threads(TORCHEXT_HERE) {
  return coalesced_group(__activemask(file, line));
}

// A tile of a block has the parent's type, or none where the size alone is said; each is the other.
template <unsigned kSize, typename Parent = void>
class thread_block_tile : public lane_group {
 public:
  static_assert(
      kSize <= 32 && (kSize & (kSize - 1)) == 0,
      "tiles have 1, 2, 4, 8, 16 or 32 threads: those of several warps are not covered");

  thread_block_tile() : lane_group(mask_of(thread_block::thread_rank())) {}
  template <typename Other>
  thread_block_tile(const thread_block_tile<kSize, Other>& other) : lane_group(other.lanes()) {}

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

/// A group of some kind.
class thread_group : public lane_group {
 public:
  thread_group(const lane_group& other) : lane_group(other) {}
};

template <unsigned kSize, typename Group>
thread_block_tile<kSize, Group> tiled_partition(const Group& /*group*/) {
  return {};
}

/// Parts of a group of lanes, each of `size` ranks that follow one another.
inline coalesced_group tiled_partition(const lane_group& group, unsigned size) {
  const unsigned first = group.thread_rank() / size * size;
  unsigned mask = 0;
  unsigned rank = 0;
  for (unsigned left = group.lanes(); left != 0; left &= left - 1, ++rank) {
    mask |= rank >= first && rank < first + size ? left & (~left + 1) : 0;
  }
  return coalesced_group(mask, first / size, (group.size() + size - 1) / size);
}
inline coalesced_group tiled_partition(const thread_block& /*group*/, unsigned size) {
  return tiled_partition(thread_block_tile<32>(), size);
}

/// The lanes that give the same.
inline coalesced_group binary_partition(const lane_group& group, bool given, TORCHEXT_HERE) {
  const unsigned yes = __ballot_sync(group.lanes(), given, file, line);
  return coalesced_group(given ? yes : group.lanes() & ~yes, given, 2);
}
template <typename T>
coalesced_group labeled_partition(const lane_group& group, T label, TORCHEXT_HERE) {
  return coalesced_group(__match_any_sync(group.lanes(), label, file, line));
}

/// Calls f in one thread of a group.
template <typename Group, typename F, typename... A>
void invoke_one(const Group& group, F&& f, A&&... arguments) {
  if (group.thread_rank() == 0) {
    std::forward<F>(f)(std::forward<A>(arguments)...);
  }
}
template <typename Group, typename F, typename... A>
auto invoke_one_broadcast(const Group& group, F&& f, A&&... arguments) {
  decltype(f(arguments...)) result{};
  if (group.thread_rank() == 0) {
    result = std::forward<F>(f)(std::forward<A>(arguments)...);
  }
  return group.shfl(result, 0);
}

template <typename Group>
void sync(const Group& group, TORCHEXT_HERE) {
  group.sync(file, line);
}

template <typename Group>
unsigned long long thread_rank(const Group& group) {
  return group.thread_rank();
}
template <typename Group>
unsigned long long group_size(const Group& group) {
  return group.num_threads();
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

/// Of the threads before this one; in the first a value of nothing.
template <typename Group, typename T, typename Op>
T exclusive_scan(const Group& group, T value, Op op, TORCHEXT_HERE) {
  const T inclusive = inclusive_scan(group, value, op, file, line);
  const T before = group.shfl_up(inclusive, 1, file, line);
  return group.thread_rank() == 0 ? T{} : before;
}

template <typename Group, typename T>
T exclusive_scan(const Group& group, T value, TORCHEXT_HERE) {
  return exclusive_scan(group, value, plus<T>(), file, line);
}

} // namespace cooperative_groups
