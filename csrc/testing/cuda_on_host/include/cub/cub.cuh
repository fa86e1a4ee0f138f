// SPDX-License-Identifier: BSD-3-Clause
//
// Of CUB what one block and one warp do, with its names: reductions, scans, loads and stores. Its own
// headers have inline PTX, and what it does over a whole device is not here.
#pragma once

#include <cub/operators.cuh>
#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED,
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED,
};

namespace detail {

// The values of all threads, as they stand in shared memory. No barrier follows the last reading of
// them, as none does in CUB: who uses the memory again must have one.
template <typename T, int kCount>
struct Values {
  static_assert(std::is_trivially_copyable_v<T>, "of plain values");
  // as much as CUB's: what a kernel puts behind it may rely on that
  alignas(T) alignas(16) unsigned char bytes[kCount * sizeof(T)];

  T& at(int i) {
    return reinterpret_cast<T*>(bytes)[i];
  }
  /// Of so many of them, in their order.
  template <typename Op>
  T folded(int count, Op op) {
    T result = at(0);
    for (int i = 1; i < count; ++i) {
      result = op(result, at(i));
    }
    return result;
  }
};

// Storage that a primitive has of its own, for each place in the code and each block.
template <typename Storage, typename Primitive>
Storage& own_storage() {
  return ::torchext::cuda_on_host::shared<Storage>([] { return alignof(Primitive*); });
}

inline int block_rank() {
  const uint3 i = ::torchext::cuda_on_host::thread_index();
  const uint3 n = ::torchext::cuda_on_host::block_size();
  return static_cast<int>(i.x + n.x * (i.y + n.y * i.z));
}

template <typename T, int N, typename Op>
T folded_items(const T (&items)[N], Op op) {
  T result = items[0];
  for (int i = 1; i < N; ++i) {
    result = op(result, items[i]);
  }
  return result;
}

} // namespace detail

template <
    typename T,
    int kX,
    BlockReduceAlgorithm kAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS,
    int kY = 1,
    int kZ = 1,
    int kArchitecture = 0>
class BlockReduce {
  static constexpr int kThreads = kX * kY * kZ;

 public:
  using TempStorage = detail::Values<T, kThreads>;

  BlockReduce() : storage_(detail::own_storage<TempStorage, BlockReduce>()) {}
  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  /// In the first thread the result; in the others what means nothing.
  template <typename Op>
  T Reduce(T value, Op op, int valid = kThreads, TORCHEXT_HERE) {
    const int rank = detail::block_rank();
    storage_.at(rank) = value;
    ::torchext::cuda_on_host::barrier("BlockReduce", true, file, line);
    return rank == 0 ? storage_.folded(valid, op) : value;
  }
  template <int N, typename Op>
  T Reduce(const T (&values)[N], Op op, TORCHEXT_HERE) {
    return Reduce(detail::folded_items(values, op), op, kThreads, file, line);
  }
  T Sum(T value, int valid = kThreads, TORCHEXT_HERE) {
    return Reduce(value, cub::Sum(), valid, file, line);
  }
  template <int N>
  T Sum(const T (&values)[N], TORCHEXT_HERE) {
    return Reduce(values, cub::Sum(), file, line);
  }

 private:
  TempStorage& storage_;
};

/// Items of a thread follow one another, and those of the next thread follow them.
template <
    typename T,
    int kX,
    BlockScanAlgorithm kAlgorithm = BLOCK_SCAN_RAKING,
    int kY = 1,
    int kZ = 1,
    int kArchitecture = 0>
class BlockScan {
  static constexpr int kThreads = kX * kY * kZ;

 public:
  // the threads' values, and what a prefix says of all before the block
  using TempStorage = detail::Values<T, kThreads + 1>;

  BlockScan() : storage_(detail::own_storage<TempStorage, BlockScan>()) {}
  explicit BlockScan(TempStorage& storage) : storage_(storage) {}

  template <int N, typename Op>
  void InclusiveScan(const T (&values)[N], T (&results)[N], Op op, TORCHEXT_HERE) {
    share(detail::folded_items(values, op), file, line);
    const int rank = detail::block_rank();
    T running = rank == 0 ? values[0] : op(storage_.folded(rank, op), values[0]);
    write(values, results, running, op);
  }
  template <int N, typename Op>
  void InclusiveScan(const T (&values)[N], T (&results)[N], Op op, T& total, TORCHEXT_HERE) {
    InclusiveScan(values, results, op, file, line);
    total = storage_.folded(kThreads, op);
  }
  /// `prefix(total)` is called by all threads of the first warp, and what it returns to the first
  /// comes before all values.
  template <int N, typename Op, typename Prefix, TORCHEXT_IF_CALLED(Prefix, T)>
  void InclusiveScan(const T (&values)[N], T (&results)[N], Op op, Prefix& prefix, TORCHEXT_HERE) {
    share(detail::folded_items(values, op), file, line);
    const T before = before_block(storage_.folded(kThreads, op), prefix, file, line);
    const int rank = detail::block_rank();
    const T running = rank == 0 ? before : op(before, storage_.folded(rank, op));
    write(values, results, op(running, values[0]), op);
  }
  template <int N, typename Op>
  void ExclusiveScan(const T (&values)[N], T (&results)[N], T first, Op op, TORCHEXT_HERE) {
    share(detail::folded_items(values, op), file, line);
    const int rank = detail::block_rank();
    write_before(values, results, rank == 0 ? first : op(first, storage_.folded(rank, op)), op);
  }
  template <int N, typename Op>
  void ExclusiveScan(
      const T (&values)[N], T (&results)[N], T first, Op op, T& total, TORCHEXT_HERE) {
    ExclusiveScan(values, results, first, op, file, line);
    total = storage_.folded(kThreads, op);
  }
  template <int N, typename Op, typename Prefix, TORCHEXT_IF_CALLED(Prefix, T)>
  void ExclusiveScan(const T (&values)[N], T (&results)[N], Op op, Prefix& prefix, TORCHEXT_HERE) {
    share(detail::folded_items(values, op), file, line);
    const T before = before_block(storage_.folded(kThreads, op), prefix, file, line);
    const int rank = detail::block_rank();
    write_before(values, results, rank == 0 ? before : op(before, storage_.folded(rank, op)), op);
  }

  template <typename Op>
  void InclusiveScan(T value, T& result, Op op, TORCHEXT_HERE) {
    InclusiveScan(as_items(value), as_items(result), op, file, line);
  }
  template <typename Op>
  void InclusiveScan(T value, T& result, Op op, T& total, TORCHEXT_HERE) {
    InclusiveScan(as_items(value), as_items(result), op, total, file, line);
  }
  template <typename Op, typename Prefix, TORCHEXT_IF_CALLED(Prefix, T)>
  void InclusiveScan(T value, T& result, Op op, Prefix& prefix, TORCHEXT_HERE) {
    InclusiveScan(as_items(value), as_items(result), op, prefix, file, line);
  }
  template <typename Op>
  void ExclusiveScan(T value, T& result, T first, Op op, TORCHEXT_HERE) {
    ExclusiveScan(as_items(value), as_items(result), first, op, file, line);
  }
  template <typename Op>
  void ExclusiveScan(T value, T& result, T first, Op op, T& total, TORCHEXT_HERE) {
    ExclusiveScan(as_items(value), as_items(result), first, op, total, file, line);
  }
  template <typename Op, typename Prefix, TORCHEXT_IF_CALLED(Prefix, T)>
  void ExclusiveScan(T value, T& result, Op op, Prefix& prefix, TORCHEXT_HERE) {
    ExclusiveScan(as_items(value), as_items(result), op, prefix, file, line);
  }

  // Of one value or of several.
  template <typename Value, typename Result>
  void InclusiveSum(Value&& value, Result& result, TORCHEXT_HERE) {
    InclusiveScan(value, result, Sum(), file, line);
  }
  template <typename Value, typename Result>
  void InclusiveSum(Value&& value, Result& result, T& total, TORCHEXT_HERE) {
    InclusiveScan(value, result, Sum(), total, file, line);
  }
  template <typename Value, typename Result, typename Prefix, TORCHEXT_IF_CALLED(Prefix, T)>
  void InclusiveSum(Value&& value, Result& result, Prefix& prefix, TORCHEXT_HERE) {
    InclusiveScan(value, result, Sum(), prefix, file, line);
  }
  template <typename Value, typename Result>
  void ExclusiveSum(Value&& value, Result& result, TORCHEXT_HERE) {
    ExclusiveScan(value, result, T(0), Sum(), file, line);
  }
  template <typename Value, typename Result>
  void ExclusiveSum(Value&& value, Result& result, T& total, TORCHEXT_HERE) {
    ExclusiveScan(value, result, T(0), Sum(), total, file, line);
  }
  template <typename Value, typename Result, typename Prefix, TORCHEXT_IF_CALLED(Prefix, T)>
  void ExclusiveSum(Value&& value, Result& result, Prefix& prefix, TORCHEXT_HERE) {
    ExclusiveScan(value, result, Sum(), prefix, file, line);
  }

 private:
  static T (&as_items(T& value))[1] {
    return reinterpret_cast<T(&)[1]>(value);
  }
  void share(T value, const char* file, int line) {
    storage_.at(detail::block_rank()) = value;
    ::torchext::cuda_on_host::barrier("BlockScan", true, file, line);
  }
  template <typename Prefix>
  T before_block(T total, Prefix& prefix, const char* file, int line) {
    const int rank = detail::block_rank();
    if (rank < static_cast<int>(::torchext::cuda_on_host::kWarpSize)) {
      const T before = prefix(total);
      if (rank == 0) {
        storage_.at(kThreads) = before;
      }
    }
    ::torchext::cuda_on_host::barrier("BlockScan", true, file, line);
    return storage_.at(kThreads);
  }
  template <int N, typename Op>
  static void write(const T (&values)[N], T (&results)[N], T running, Op op) {
    for (int i = 0; i < N; ++i) {
      running = i == 0 ? running : op(running, values[i]);
      results[i] = running;
    }
  }
  template <int N, typename Op>
  static void write_before(const T (&values)[N], T (&results)[N], T running, Op op) {
    for (int i = 0; i < N; ++i) {
      const T value = values[i]; // which may stand where the result does
      results[i] = running;
      running = op(running, value);
    }
  }

  TempStorage& storage_;
};

namespace detail {

template <int kLanes>
unsigned part_mask() {
  const unsigned part = static_cast<unsigned>(block_rank()) % 32 / kLanes * kLanes;
  return (kLanes == 32 ? 0xffffffffu : (1u << kLanes % 32) - 1) << part;
}

} // namespace detail

template <typename T, int kLanes = 32, int kArchitecture = 0>
class WarpReduce {
 public:
  using TempStorage = detail::Values<T, kLanes>;

  explicit WarpReduce(TempStorage& storage) : storage_(storage) {}

  /// In the first lane the result.
  template <typename Op>
  T Reduce(T value, Op op, int valid = kLanes, TORCHEXT_HERE) {
    const int rank = detail::block_rank() % kLanes;
    storage_.at(rank) = value;
    __syncwarp(detail::part_mask<kLanes>(), file, line);
    return rank == 0 ? storage_.folded(valid, op) : value;
  }
  T Sum(T value, int valid = kLanes, TORCHEXT_HERE) {
    return Reduce(value, cub::Sum(), valid, file, line);
  }

 private:
  TempStorage& storage_;
};

template <typename T, int kLanes = 32, int kArchitecture = 0>
class WarpScan {
 public:
  using TempStorage = detail::Values<T, kLanes>;

  explicit WarpScan(TempStorage& storage) : storage_(storage) {}

  template <typename Op>
  void InclusiveScan(T value, T& result, Op op, TORCHEXT_HERE) {
    share(value, file, line);
    result = storage_.folded(rank() + 1, op);
  }
  template <typename Op>
  void InclusiveScan(T value, T& result, Op op, T& total, TORCHEXT_HERE) {
    InclusiveScan(value, result, op, file, line);
    total = storage_.folded(kLanes, op);
  }
  template <typename Op>
  void ExclusiveScan(T value, T& result, T first, Op op, TORCHEXT_HERE) {
    share(value, file, line);
    result = rank() == 0 ? first : op(first, storage_.folded(rank(), op));
  }
  void InclusiveSum(T value, T& result, TORCHEXT_HERE) {
    InclusiveScan(value, result, Sum(), file, line);
  }
  void InclusiveSum(T value, T& result, T& total, TORCHEXT_HERE) {
    InclusiveScan(value, result, Sum(), total, file, line);
  }
  void ExclusiveSum(T value, T& result, TORCHEXT_HERE) {
    ExclusiveScan(value, result, T(0), Sum(), file, line);
  }
  T Broadcast(T value, unsigned source, TORCHEXT_HERE) {
    share(value, file, line);
    return storage_.at(static_cast<int>(source));
  }

 private:
  static int rank() {
    return detail::block_rank() % kLanes;
  }
  void share(T value, const char* file, int line) {
    storage_.at(rank()) = value;
    __syncwarp(detail::part_mask<kLanes>(), file, line);
  }

  TempStorage& storage_;
};

namespace detail {

/// What goes by way of shared memory in CUB, for speed alone, takes as much of it here.
template <typename T, int kCount, bool kIsTransposed>
using ItemStorage = std::conditional_t<kIsTransposed, Values<T, kCount>, Values<char, 1>>;

/// Where the i-th item of a thread stands.
template <int kThreads, int kItems, bool kIsStriped>
int place_of(int i) {
  return kIsStriped ? block_rank() + i * kThreads : block_rank() * kItems + i;
}

} // namespace detail

/// Every thread's items, of memory in which they follow one another, or in stripes.
template <
    typename T,
    int kX,
    int kItems,
    BlockLoadAlgorithm kAlgorithm = BLOCK_LOAD_DIRECT,
    int kY = 1,
    int kZ = 1,
    int kArchitecture = 0>
class BlockLoad {
  static constexpr int kThreads = kX * kY * kZ;

 public:
  using TempStorage =
      detail::ItemStorage<T, kThreads * kItems, (kAlgorithm >= BLOCK_LOAD_TRANSPOSE)>;

  BlockLoad() = default;
  explicit BlockLoad(TempStorage& /*storage*/) {}

  template <typename Iterator>
  void Load(Iterator from, T (&items)[kItems]) {
    Load(from, items, kThreads * kItems);
  }
  template <typename Iterator>
  void Load(Iterator from, T (&items)[kItems], int valid) {
    for (int i = 0; i < kItems; ++i) {
      const int place = detail::place_of<kThreads, kItems, kAlgorithm == BLOCK_LOAD_STRIPED>(i);
      if (place < valid) {
        items[i] = from[place];
      }
    }
  }
  template <typename Iterator, typename Default>
  void Load(Iterator from, T (&items)[kItems], int valid, Default otherwise) {
    for (T& item : items) {
      item = otherwise;
    }
    Load(from, items, valid);
  }
};

template <
    typename T,
    int kX,
    int kItems,
    BlockStoreAlgorithm kAlgorithm = BLOCK_STORE_DIRECT,
    int kY = 1,
    int kZ = 1,
    int kArchitecture = 0>
class BlockStore {
  static constexpr int kThreads = kX * kY * kZ;

 public:
  using TempStorage =
      detail::ItemStorage<T, kThreads * kItems, (kAlgorithm >= BLOCK_STORE_TRANSPOSE)>;

  BlockStore() = default;
  explicit BlockStore(TempStorage& /*storage*/) {}

  template <typename Iterator>
  void Store(Iterator to, T (&items)[kItems]) {
    Store(to, items, kThreads * kItems);
  }
  template <typename Iterator>
  void Store(Iterator to, T (&items)[kItems], int valid) {
    for (int i = 0; i < kItems; ++i) {
      const int place = detail::place_of<kThreads, kItems, kAlgorithm == BLOCK_STORE_STRIPED>(i);
      if (place < valid) {
        to[place] = items[i];
      }
    }
  }
};

} // namespace cub
