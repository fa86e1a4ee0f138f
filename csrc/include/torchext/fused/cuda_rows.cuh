// SPDX-License-Identifier: BSD-3-Clause
//
// The loops of expressions of rows on CUDA. A warp serves a short row, a block a long one. Every
// thread of them computes what the row has one number of, from sums that all of them have; the order
// of these is always the same. What is kept between passes lies in shared memory where it fits, which
// each thread reads for the elements that it wrote.
#pragma once

#include <torchext/fused/cuda_loops.cuh>
#include <torchext/fused/reduce.h>
#include <torchext/fused/row_operands.h>

#include <limits>
#include <utility>

namespace torchext {
inline namespace v1 {
namespace fused {

constexpr int kWarp = 32;
constexpr int64_t kShortRow = 1024;          // elements
constexpr int64_t kSharedMemory = 32 * 1024; // bytes of a block, which every device has
constexpr int kWarps = kThreads / kWarp;

template <size_t... index, typename F>
C10_DEVICE TORCHEXT_ALWAYS_INLINE void each(
    std::index_sequence<index...> /*of*/, const F& function) {
  (function(std::integral_constant<size_t, index>()), ...);
}

/// One call of an expression over rows of elements of type T, as a kernel is given it.
template <typename Op, typename T>
struct RowsOnDevice {
  using S = at::opmath_type<T>;
  static constexpr int most = Op::inputs + Op::results;

  char* data[most]; // results, then inputs
  S numbers[Op::numbers + 1];
  bool has[Op::inputs + Op::conditions + 1];
  bool is_same[Op::inputs + 1]; // for all elements of a row
  bool is_integral[Op::inputs + 1];
  bool wanted[Op::results];
  int64_t length;
  int64_t rows;
  S* kept;              // of the rows of all blocks, where shared memory has no place
  S* sums[Op::results]; // of all rows, a row of sums for each part of them
};

/// One row, as a thread sees it.
template <typename Op, typename T, int width, bool is_block>
struct RowOnDevice {
  using S = at::opmath_type<T>;
  using P = Pack<T, width>;
  using EachInput = std::make_index_sequence<Op::inputs>;
  using EachResult = std::make_index_sequence<Op::results>;
  using EachKept = std::make_index_sequence<Op::kept>;

  const RowsOnDevice<Op, T>& call;
  const char* const* inputs;
  char* const* results;
  S* kept;
  S* shared;    // one number of each warp
  int64_t part; // of all rows, the one whose sums are this thread's

  // What the numbers of a row are computed of.
  const S* numbers;
  const bool* has;
  const S* numbers_of_row;
  const bool* holds;

  C10_DEVICE int64_t index(size_t input) const {
    return *reinterpret_cast<const int64_t*>(inputs[input]);
  }

  /// An integer as a number that is computed with, and compared.
  C10_DEVICE S integer(size_t input) const {
    const int64_t found = index(input);
    CUDA_KERNEL_ASSERT(is_exact<S>(found) && "no number of the dtype that is computed in");
    return static_cast<S>(found);
  }

  C10_DEVICE S number(size_t input) const {
    return static_cast<S>(*reinterpret_cast<const T*>(inputs[input]));
  }

  /// The element of an input that an index chooses; any number where one of them is missing.
  C10_DEVICE S element(size_t input, size_t of_index) const {
    if (!has[input] || !has[of_index]) {
      return 0;
    }
    const int64_t chosen = index(of_index);
    CUDA_KERNEL_ASSERT(chosen >= 0 && chosen < call.length && "no place of the row");
    const int64_t at = call.is_same[input] ? 0 : chosen;
    return static_cast<S>(reinterpret_cast<const T*>(inputs[input])[at]);
  }

  C10_DEVICE void run(S* of_row, bool* of_conditions) {
    if constexpr (Op::length_slot >= 0) {
      of_row[Op::length_slot] = static_cast<S>(call.length);
    }
    each(EachInput(), [&](auto i) {
      constexpr int slot = Op::slots[i];
      if constexpr (slot >= 0) {
        of_row[slot] = !has[i]               ? static_cast<S>(Op::defaults[i])
                       : call.is_integral[i] ? integer(i)
                                             : number(i);
      }
    });
    each(std::make_index_sequence<Op::passes>(), [&](auto pass) {
      Op::template of_row<S>(pass, *this, of_row, of_conditions);
      one<pass>(of_row, std::make_index_sequence<Op::reductions[pass]>());
    });
    Op::template of_row<S>(Pass<Op::passes>(), *this, of_row, of_conditions);
    if (threadIdx.x == 0) {
      S found[Op::results];
      Op::template of_results<S>(*this, found);
      each(EachResult(), [&](auto i) {
        if constexpr (Op::row_results[i]) {
          if (call.wanted[i]) {
            *reinterpret_cast<S*>(results[i]) = found[i];
          }
        }
      });
    }
  }

  /// One pass over the elements, `width` of them together.
  template <size_t index, size_t... term>
  C10_DEVICE TORCHEXT_ALWAYS_INLINE void one(S* of_row, std::index_sequence<term...> /*of*/) {
    S totals[sizeof...(term) + 1];
    ((totals[term] = neutral<Op::reduction[index][term].how, S>()), ...);
    const int64_t step = int64_t(blockDim.x) * width;
    for (int64_t at = int64_t(threadIdx.x) * width; at < call.length; at += step) {
      P loaded[Op::inputs + 1];
      S made[width][Op::results];
      each(EachInput(), [&](auto i) {
        if constexpr (Op::reads[index][i]) {
          if (has[i]) {
            if (call.is_same[i]) {
#pragma unroll
              for (int j = 0; j < width; ++j) {
                loaded[i].values[j] = *reinterpret_cast<const T*>(inputs[i]);
              }
            } else {
              loaded[i] = *reinterpret_cast<const P*>(inputs[i] + at * sizeof(T));
            }
          }
        }
      });
#pragma unroll
      for (int j = 0; j < width; ++j) {
        S values[Op::inputs + 1], of_element[Op::kept + 1], terms[sizeof...(term) + 1];
        each(EachInput(), [&](auto i) {
          if constexpr (Op::reads[index][i]) {
            values[i] =
                has[i] ? static_cast<S>(loaded[i].values[j]) : static_cast<S>(Op::defaults[i]);
          }
        });
        each(EachKept(), [&](auto i) {
          if constexpr (Op::uses_kept[index][i]) {
            of_element[i] = kept[int64_t(i) * call.length + at + j];
          }
        });
        const GivenElements<S> given{
            {values, numbers, has, call.wanted},
            numbers_of_row,
            holds,
            of_element,
            static_cast<S>(at + j)};
        Op::template elements<S>(Pass<index>(), given, of_element, terms, made[j]);
        each(EachKept(), [&](auto i) {
          if constexpr (Op::keeps[index][i]) {
            kept[int64_t(i) * call.length + at + j] = of_element[i];
          }
        });
        ((totals[term] = reduced<Op::reduction[index][term].how>(totals[term], terms[term])), ...);
      }
      each(EachResult(), [&](auto i) {
        if constexpr (Op::makes[index][i]) {
          if constexpr (Op::sizes[i] >= 0) {
            if (call.sums[i] != nullptr) {
              S* const to = call.sums[i] + part * call.length + at;
#pragma unroll
              for (int j = 0; j < width; ++j) {
                to[j] += made[j][i];
              }
              return;
            }
          }
          if (call.wanted[i]) {
            using R = Stored<Op, T, i>;
            Pack<R, width> stored;
#pragma unroll
            for (int j = 0; j < width; ++j) {
              stored.values[j] = c10::convert<R>(made[j][i]);
            }
            *reinterpret_cast<Pack<R, width>*>(results[i] + at * sizeof(R)) = stored;
          }
        }
      });
    }
    ((of_row[std::integral_constant<size_t, Op::reduction[index][term].slot>::value] =
          of_all<Op::reduction[index][term].how>(totals[term])),
     ...);
  }

  template <Reduce how>
  C10_DEVICE S of_warp(S value) const {
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      value = reduced<how>(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    return value;
  }

  /// What the threads of a row have together: the same in all of them.
  template <Reduce how>
  C10_DEVICE S of_all(S value) const {
    value = of_warp<how>(value);
    if constexpr (is_block) {
      __syncthreads(); // of the one before, all have read
      if (threadIdx.x % kWarp == 0) {
        shared[threadIdx.x / kWarp] = value;
      }
      __syncthreads();
      const int lane = threadIdx.x % kWarp;
      value = of_warp<how>(lane < kWarps ? shared[lane] : neutral<how, S>());
    }
    return value;
  }
};

/// The threads of x serve a row; a block of several rows has them in y.
template <typename Op, typename T, int width, bool is_block>
__global__ void __launch_bounds__(kThreads, 1) rows_kernel(
    RowsOnDevice<Op, T> call, OffsetCalculator<RowsOnDevice<Op, T>::most, uint64_t> offsets) {
  using S = at::opmath_type<T>;
  constexpr int results = Op::results;
  extern __shared__ char memory[];
  __shared__ S of_warps[kWarps];
  const int64_t part = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  for (int64_t row = part; row < call.rows; row += int64_t(gridDim.x) * blockDim.y) {
    const auto offset = offsets.get(static_cast<uint64_t>(row));
    char* to[results];
    const char* from[Op::inputs + 1];
#pragma unroll
    for (int i = 0; i < results; ++i) {
      to[i] = call.data[i] + offset[i];
    }
#pragma unroll
    for (int i = 0; i < static_cast<int>(Op::inputs); ++i) {
      from[i] = call.data[results + i] + offset[results + i];
    }
    const int64_t each_kept = call.length * int64_t(Op::kept);
    S* const kept = call.kept != nullptr
                        ? call.kept + part * each_kept
                        : reinterpret_cast<S*>(memory) + int64_t(threadIdx.y) * each_kept;
    S of_row[Op::numbers_of_row + 1];
    bool holds[Op::conditions_of_row + 1];
    RowOnDevice<Op, T, width, is_block> one{
        call, from, to, kept, of_warps, part, call.numbers, call.has, of_row, holds};
    one.run(of_row, holds);
  }
}

template <typename Op, typename T, int width, bool is_block>
void launch_rows(
    const RowsOnDevice<Op, T>& call,
    const OffsetCalculator<RowsOnDevice<Op, T>::most, uint64_t>& offsets,
    int64_t blocks) {
  const dim3 threads = is_block ? dim3(kThreads) : dim3(kWarp, kWarps);
  const int64_t kept = call.length * int64_t(Op::kept * sizeof(at::opmath_type<T>)) * threads.y;
  const int64_t shared = call.kept == nullptr ? kept : 0;
  rows_kernel<Op, T, width, is_block>
      <<<static_cast<unsigned>(blocks),
         threads,
         static_cast<size_t>(shared),
         at::cuda::getCurrentCUDAStream()>>>(call, offsets);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

/// Whether rows can be read 16 bytes at a time, and written as many elements.
template <typename Op, typename T>
bool has_wide_rows(at::TensorIteratorBase& iter, const RowCall& told) {
  constexpr int64_t width = kAccess / sizeof(T);
  bool found = told.length % width == 0;
  for (int operand = 0; operand < told.operands; ++operand) {
    if (const int64_t access = width * told.strides[operand]; access != 0) {
      found = found && reinterpret_cast<uintptr_t>(iter.data_ptr(operand)) % access == 0;
      for (const int64_t stride : iter.strides(operand)) {
        found = found && stride % access == 0;
      }
    }
  }
  return found;
}

/// Of blocks, about half of those that the device has at a time.
inline int64_t places() {
  return 4 * int64_t(at::cuda::getCurrentDeviceProperties()->multiProcessorCount);
}

template <typename Op, typename T>
void run_rows(at::TensorIteratorBase& iter, const RowCall& told) {
  using OnDevice = RowsOnDevice<Op, T>;
  OnDevice call{};
  call.length = told.length;
  call.rows = iter.numel();
  for (size_t i = 0; i < Op::numbers; ++i) {
    call.numbers[i] = value_of<typename OnDevice::S>(told.numbers[i]);
  }
  std::copy(told.conditions, told.conditions + Op::conditions, call.has + Op::inputs);
  const std::array<int64_t, at::kDimVectorStaticSize * 8> nowhere{}; // of what is not there
  std::array<const int64_t*, OnDevice::most> strides;
  strides.fill(nowhere.data());
  const auto take = [&](size_t place, int operand) {
    if (operand >= 0) {
      call.data[place] = static_cast<char*>(iter.data_ptr(operand));
      strides[place] = iter.strides(operand).data();
    }
  };
  for (size_t i = 0; i < Op::results; ++i) {
    call.wanted[i] = told.results[i] >= 0;
    call.sums[i] = reinterpret_cast<typename OnDevice::S*>(told.sums[i]);
    take(i, told.results[i]);
  }
  for (size_t i = 0; i < Op::inputs; ++i) {
    call.has[i] = told.inputs[i] != kMissing;
    call.is_integral[i] = told.is_integral[i];
    call.is_same[i] = told.inputs[i] >= 0 && told.strides[told.inputs[i]] == 0;
    take(Op::results + i, told.inputs[i]);
  }
  const bool is_block = call.length > kShortRow;
  const int64_t together = is_block ? 1 : kWarps;
  const int64_t all =
      told.parts > 0 ? told.parts / together : (call.rows + together - 1) / together;
  int64_t blocks = std::min<int64_t>(all, std::numeric_limits<int32_t>::max());
  const int64_t kept = call.length * int64_t(Op::kept * sizeof(typename OnDevice::S));
  at::Tensor memory;
  if (kept * together > kSharedMemory) {
    blocks = std::min(blocks, 2 * places());
    memory = at::empty({blocks * together * kept}, iter.tensor(0).options().dtype(at::kByte));
    call.kept = static_cast<typename OnDevice::S*>(memory.mutable_data_ptr());
  }
  const OffsetCalculator<OnDevice::most, uint64_t> offsets(
      iter.ndim(), iter.shape().data(), const_cast<const int64_t**>(strides.data()));
  constexpr int width = kAccess / sizeof(T);
  if (has_wide_rows<Op, T>(iter, told)) {
    is_block ? launch_rows<Op, T, width, true>(call, offsets, blocks)
             : launch_rows<Op, T, width, false>(call, offsets, blocks);
  } else {
    is_block ? launch_rows<Op, T, 1, true>(call, offsets, blocks)
             : launch_rows<Op, T, 1, false>(call, offsets, blocks);
  }
}

template <typename Op, c10::ScalarType... dtypes>
void run_rows(
    at::ScalarType common,
    at::TensorIteratorBase& iter,
    const RowCall& told,
    Types<dtypes...> /*of*/) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      Types<dtypes...>::has(common),
      Op::name,
      ": not implemented for ",
      common,
      ", which `dtypes` leaves out");
  ((common == dtypes ? run_rows<Op, c10::impl::ScalarTypeToCPPTypeT<dtypes>>(iter, told) : void()),
   ...);
}

/// The rows of a call on CUDA.
template <typename Op>
struct RowsOnCuda {
  /// Each row that blocks have at a time is of one part: as many as the device has places for.
  static int64_t parts(int64_t rows, int64_t length) {
    const int64_t together = length > kShortRow ? 1 : kWarps;
    return std::min((rows + together - 1) / together, places()) * together;
  }

  static void run(at::ScalarType common, at::TensorIteratorBase& iter, const RowCall& told) {
    if (iter.numel() > 0) {
      run_rows<Op>(common, iter, told, typename Op::Types());
    }
  }
};

template <typename Op>
Results new_on_cuda(
    const RowExpression& op, const Arguments& arguments, at::ArrayRef<bool> wanted) {
  const c10::DeviceGuard guard(options_of(op, arguments).device());
  return run_over_rows(op, arguments, wanted, RowsOnCuda<Op>());
}

} // namespace fused
} // namespace v1
} // namespace torchext
