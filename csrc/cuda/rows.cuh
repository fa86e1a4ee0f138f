// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernels over rows share: wide loads, reductions over a block, launch shapes.
#pragma once

#include <c10/util/complex.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace myns::native {

constexpr int kWarp = 32;
constexpr int kMaxThreads = 512;
constexpr int64_t kMaxBlocks = 1 << 20; // kernels stride over what is beyond
constexpr int kPackBytes = 16;          // the widest load of one thread

/// `N` adjacent elements, loaded and stored at once.
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T values[N];
};

template <typename T>
constexpr int kPackSize = kPackBytes / sizeof(T);

template <int N, typename T>
__device__ __forceinline__ Pack<T, N> load(const T* data, int64_t index) {
  return reinterpret_cast<const Pack<T, N>*>(data)[index];
}

template <int N, typename T>
__device__ __forceinline__ void store(T* data, int64_t index, const Pack<T, N>& pack) {
  reinterpret_cast<Pack<T, N>*>(data)[index] = pack;
}

/// Whether `N` elements at `data` can be read at once.
template <int N, typename T>
bool is_aligned(const T* data) {
  return reinterpret_cast<uintptr_t>(data) % alignof(Pack<T, N>) == 0;
}

/// Whether rows of `columns` elements at `data` can be read in packs.
template <typename T>
bool can_pack(const T* data, int64_t columns) {
  return columns % kPackSize<T> == 0 && reinterpret_cast<uintptr_t>(data) % kPackBytes == 0;
}

template <typename T>
__device__ __forceinline__ T shuffle_xor(T value, int lanes) {
  return __shfl_xor_sync(0xffffffffu, value, lanes);
}

template <typename T>
__device__ __forceinline__ c10::complex<T> shuffle_xor(c10::complex<T> value, int lanes) {
  return {shuffle_xor(value.real(), lanes), shuffle_xor(value.imag(), lanes)};
}

struct Sum {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};

struct Max {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a > b ? a : b; // NaN need not be kept: its exponential makes the sum NaN
  }
};

template <typename Acc, typename Op>
__device__ __forceinline__ Acc warp_reduce(Acc value, Op op) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    value = op(value, shuffle_xor(value, lanes));
  }
  return value;
}

/// The reduction of `value` over the block, in every thread. All threads must call it, and the
/// block must be made of whole warps.
template <typename Acc, typename Op>
__device__ __forceinline__ Acc block_reduce(Acc value, Acc identity, Op op) {
  // Bytes, since complex numbers have a constructor, which shared memory does not run.
  __shared__ alignas(16) unsigned char storage[kMaxThreads / kWarp * sizeof(Acc)];
  Acc* shared = reinterpret_cast<Acc*>(storage);
  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp;
  const int warps = blockDim.x / kWarp;
  value = warp_reduce(value, op);
  if (warps == 1) {
    return value;
  }
  __syncthreads(); // an earlier reduction may still be reading
  if (lane == 0) {
    shared[warp] = value;
  }
  __syncthreads();
  return warp_reduce(lane < warps ? shared[lane] : identity, op);
}

/// Threads of a block that works on `items` items at a time.
inline unsigned block_threads(int64_t items) {
  const int64_t warps = (items + kWarp - 1) / kWarp;
  return static_cast<unsigned>(std::clamp<int64_t>(warps * kWarp, kWarp, kMaxThreads));
}

/// How many packs of a row a thread keeps in registers, so that the row is read once.
constexpr int kKeptPacks = 4;

/// Threads of a block that works on a row of `packs`: few, with several loads under way each.
inline unsigned row_threads(int64_t packs) {
  return block_threads((packs + kKeptPacks - 1) / kKeptPacks);
}

/// Calls `f(k, i)` for each pack `i` of a row that is this thread's, its `k`-th of at most `K`. With
/// a `K` of 0 there may be any number, and all have the `k` 0.
template <int K, typename F>
__device__ __forceinline__ void for_own_packs(int64_t packs, const F& f) {
  if constexpr (K > 0) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const int64_t i = threadIdx.x + static_cast<int64_t>(k) * blockDim.x;
      if (i < packs) {
        f(k, i);
      }
    }
  } else {
    for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
      f(0, i);
    }
  }
}

/// A row that is read once where its packs fit into registers, `K` of each thread.
template <int N, int K, typename T>
class Row {
 public:
  __device__ __forceinline__ Row(const T* data, int64_t packs) : data_(data) {
    if constexpr (K > 0) {
      for_own_packs<K>(packs, [&](int k, int64_t i) { kept_[k] = load<N>(data_, i); });
    }
  }

  __device__ __forceinline__ Pack<T, N> pack(int k, int64_t i) const {
    if constexpr (K > 0) {
      return kept_[k];
    } else {
      return load<N>(data_, i);
    }
  }

 private:
  const T* data_;
  Pack<T, N> kept_[K > 0 ? K : 1];
};

inline unsigned grid_blocks(int64_t blocks) {
  return static_cast<unsigned>(std::min(blocks, kMaxBlocks));
}

/// Calls `f(pack size, kept packs)`, constants, as rows of `columns` elements are read best.
template <typename T, typename F>
void with_row_shape(bool packed, int64_t columns, const F& f) {
  constexpr int N = kPackSize<T>;
  if (!packed) {
    f(std::integral_constant<int, 1>(), std::integral_constant<int, 0>());
  } else if (columns / N <= kMaxThreads * kKeptPacks) {
    f(std::integral_constant<int, N>(), std::integral_constant<int, kKeptPacks>());
  } else {
    f(std::integral_constant<int, N>(), std::integral_constant<int, 0>());
  }
}

} // namespace myns::native
