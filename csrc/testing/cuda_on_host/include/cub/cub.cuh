// SPDX-License-Identifier: BSD-3-Clause
//
// Of CUB what one block and one warp do: reductions and scans, with its names. Its own headers have
// inline PTX, and what it does over a whole device is not here.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace cub {

struct Sum {
  template <typename T>
  T operator()(const T& a, const T& b) const {
    return a + b;
  }
};
struct Max {
  template <typename T>
  T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <typename T>
  T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

namespace detail {

// The values of all threads, as they stand in shared memory. No barrier follows the last reading of
// them, as none does in CUB: who uses the memory again must have one.
template <typename T, int kThreads>
struct Values {
  static_assert(std::is_trivially_copyable_v<T>, "of plain values");
  alignas(T) unsigned char bytes[kThreads * sizeof(T)];

  T& at(int i) {
    return reinterpret_cast<T*>(bytes)[i];
  }
};

inline int block_rank() {
  const uint3 i = ::torchext::cuda_on_host::thread_index();
  const uint3 n = ::torchext::cuda_on_host::block_size();
  return static_cast<int>(i.x + n.x * (i.y + n.y * i.z));
}

} // namespace detail

template <
    typename T,
    int kX,
    BlockReduceAlgorithm kAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS,
    int kY = 1,
    int kZ = 1>
class BlockReduce {
  static constexpr int kThreads = kX * kY * kZ;

 public:
  using TempStorage = detail::Values<T, kThreads>;

  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  /// In the first thread the result; in the others what means nothing.
  template <typename Op>
  T Reduce(T value, Op op, int valid = kThreads, TORCHEXT_HERE) {
    const int rank = detail::block_rank();
    storage_.at(rank) = value;
    ::torchext::cuda_on_host::barrier("BlockReduce", true, file, line);
    T result = value;
    for (int i = 1; rank == 0 && i < valid; ++i) {
      result = op(result, storage_.at(i));
    }
    return result;
  }
  T Sum(T value, int valid = kThreads, TORCHEXT_HERE) {
    return Reduce(value, cub::Sum(), valid, file, line);
  }

 private:
  TempStorage& storage_;
};

template <
    typename T,
    int kX,
    BlockScanAlgorithm kAlgorithm = BLOCK_SCAN_RAKING,
    int kY = 1,
    int kZ = 1>
class BlockScan {
  static constexpr int kThreads = kX * kY * kZ;

 public:
  using TempStorage = detail::Values<T, kThreads>;

  explicit BlockScan(TempStorage& storage) : storage_(storage) {}

  template <typename Op>
  void InclusiveScan(T value, T& result, Op op, T& total, TORCHEXT_HERE) {
    share(value, file, line);
    result = folded(detail::block_rank() + 1, op);
    total = folded(kThreads, op);
  }
  template <typename Op>
  void InclusiveScan(T value, T& result, Op op, TORCHEXT_HERE) {
    share(value, file, line);
    result = folded(detail::block_rank() + 1, op);
  }
  void InclusiveSum(T value, T& result, TORCHEXT_HERE) {
    InclusiveScan(value, result, Sum(), file, line);
  }
  void InclusiveSum(T value, T& result, T& total, TORCHEXT_HERE) {
    InclusiveScan(value, result, Sum(), total, file, line);
  }
  template <typename Op>
  void ExclusiveScan(T value, T& result, T first, Op op, TORCHEXT_HERE) {
    share(value, file, line);
    result = first;
    for (int i = 0; i < detail::block_rank(); ++i) {
      result = op(result, storage_.at(i));
    }
  }
  void ExclusiveSum(T value, T& result, TORCHEXT_HERE) {
    ExclusiveScan(value, result, T(0), Sum(), file, line);
  }
  void ExclusiveSum(T value, T& result, T& total, TORCHEXT_HERE) {
    ExclusiveScan(value, result, T(0), Sum(), file, line);
    total = folded(kThreads, Sum());
  }

 private:
  void share(T value, const char* file, int line) {
    storage_.at(detail::block_rank()) = value;
    ::torchext::cuda_on_host::barrier("BlockScan", true, file, line);
  }
  template <typename Op>
  T folded(int count, Op op) {
    T result = storage_.at(0);
    for (int i = 1; i < count; ++i) {
      result = op(result, storage_.at(i));
    }
    return result;
  }

  TempStorage& storage_;
};

template <typename T, int kLanes = 32>
class WarpReduce {
 public:
  using TempStorage = detail::Values<T, kLanes>;

  explicit WarpReduce(TempStorage& storage) : storage_(storage) {}

  /// In the first lane the result.
  template <typename Op>
  T Reduce(T value, Op op, int valid = kLanes, TORCHEXT_HERE) {
    const int rank = detail::block_rank() % kLanes;
    const unsigned part = detail::block_rank() % 32 / kLanes * kLanes;
    const unsigned all = kLanes == 32 ? 0xffffffffu : (1u << kLanes % 32) - 1;
    storage_.at(rank) = value;
    __syncwarp(all << part, file, line);
    T result = value;
    for (int i = 1; rank == 0 && i < valid; ++i) {
      result = op(result, storage_.at(i));
    }
    return result;
  }
  T Sum(T value, TORCHEXT_HERE) {
    return Reduce(value, cub::Sum(), kLanes, file, line);
  }

 private:
  TempStorage& storage_;
};

} // namespace cub
