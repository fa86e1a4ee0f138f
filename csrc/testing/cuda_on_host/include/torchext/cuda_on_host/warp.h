// SPDX-License-Identifier: BSD-3-Clause
//
// What lanes of a warp tell each other.
#pragma once

#include <torchext/cuda_on_host/threads.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace torchext::cuda_on_host {

template <typename T>
uint64_t bits_of(const T& value) {
  static_assert(sizeof(T) <= sizeof(uint64_t), "lanes exchange values of at most 8 bytes");
  static_assert(std::is_trivially_copyable_v<T>, "lanes exchange plain values");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <typename T>
T from_bits(uint64_t bits) {
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

// The first lane of the part of a warp, `width` lanes wide, that a lane belongs to.
inline unsigned part_of(unsigned of_lane, int width) {
  return of_lane & ~static_cast<unsigned>(width - 1);
}

template <typename T>
T shuffle(
    const char* name, unsigned mask, const T& value, unsigned source, const char* file, int line) {
  return from_bits<T>(exchange(name, mask, bits_of(value), source, file, line));
}

// What registers of PTX say of a lane.
inline unsigned own_lane() {
  return 1u << lane();
}
inline unsigned lanes_below() {
  return own_lane() - 1;
}
inline unsigned lanes_up_to_own() {
  return lanes_below() | own_lane();
}
inline unsigned lanes_above() {
  return ~lanes_up_to_own();
}
inline unsigned lanes_from_own() {
  return ~lanes_below();
}

// bfe and bfi of PTX.
template <typename T>
T extracted_bits(T value, unsigned first, unsigned count) {
  constexpr unsigned kBits = sizeof(T) * 8;
  const T mask = count >= kBits ? ~T{0} : (T{1} << count) - 1;
  return first >= kBits ? 0 : value >> first & mask;
}
template <typename T>
T inserted_bits(T bits, T into, unsigned first, unsigned count) {
  constexpr unsigned kBits = sizeof(T) * 8;
  const T mask = first >= kBits ? 0 : (count >= kBits ? ~T{0} : (T{1} << count) - 1) << first;
  return (into & ~mask) | (first >= kBits ? 0 : bits << first & mask);
}

template <typename F>
unsigned reduced_over_lanes(
    const char* name, unsigned mask, unsigned value, F f, const char* file, int line) {
  uint64_t given[kWarpSize];
  const unsigned lanes = gather(name, mask, value, given, file, line);
  bool is_first = true;
  unsigned result = 0;
  for (unsigned i = 0; i < kWarpSize; ++i) {
    if ((lanes >> i & 1) != 0) {
      const auto other = static_cast<unsigned>(given[i]);
      result = is_first ? other : f(result, other);
      is_first = false;
    }
  }
  return result;
}

} // namespace torchext::cuda_on_host

inline void __syncwarp(unsigned mask = ::torchext::cuda_on_host::kAllLanes, TORCHEXT_HERE) {
  ::torchext::cuda_on_host::warp_barrier(mask, file, line);
}

inline unsigned __activemask(TORCHEXT_HERE) {
  return ::torchext::cuda_on_host::active_lanes(file, line);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, TORCHEXT_HERE) {
  using namespace ::torchext::cuda_on_host;
  const unsigned part = part_of(lane(), width);
  const unsigned from = part + (static_cast<unsigned>(source) & static_cast<unsigned>(width - 1));
  return shuffle("__shfl_sync", mask, value, from, file, line);
}

template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, TORCHEXT_HERE) {
  using namespace ::torchext::cuda_on_host;
  const unsigned own = lane();
  const bool is_inside = own - part_of(own, width) >= delta;
  return shuffle("__shfl_up_sync", mask, value, is_inside ? own - delta : own, file, line);
}

template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, TORCHEXT_HERE) {
  using namespace ::torchext::cuda_on_host;
  const unsigned own = lane();
  const bool is_inside = own - part_of(own, width) + delta < static_cast<unsigned>(width);
  return shuffle("__shfl_down_sync", mask, value, is_inside ? own + delta : own, file, line);
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, TORCHEXT_HERE) {
  using namespace ::torchext::cuda_on_host;
  const unsigned own = lane();
  const unsigned other = own ^ static_cast<unsigned>(lanes);
  const bool is_inside = other < part_of(own, width) + static_cast<unsigned>(width);
  return shuffle("__shfl_xor_sync", mask, value, is_inside ? other : own, file, line);
}

inline unsigned __ballot_sync(unsigned mask, int condition, TORCHEXT_HERE) {
  return ::torchext::cuda_on_host::ballot("__ballot_sync", mask, condition != 0, file, line);
}

inline int __any_sync(unsigned mask, int condition, TORCHEXT_HERE) {
  return ::torchext::cuda_on_host::ballot("__any_sync", mask, condition != 0, file, line) != 0;
}

inline int __all_sync(unsigned mask, int condition, TORCHEXT_HERE) {
  return ::torchext::cuda_on_host::ballot("__all_sync", mask, condition == 0, file, line) == 0;
}

inline int __uni_sync(unsigned mask, int condition, TORCHEXT_HERE) {
  uint64_t given[::torchext::cuda_on_host::kWarpSize];
  const uint64_t own = condition != 0;
  const unsigned lanes =
      ::torchext::cuda_on_host::gather("__uni_sync", mask, own, given, file, line);
  for (unsigned i = 0; i < 32; ++i) {
    if ((lanes >> i & 1) != 0 && given[i] != own) {
      return 0;
    }
  }
  return 1;
}

template <typename T>
unsigned __match_any_sync(unsigned mask, T value, TORCHEXT_HERE) {
  using namespace ::torchext::cuda_on_host;
  uint64_t given[kWarpSize];
  const unsigned lanes = gather("__match_any_sync", mask, bits_of(value), given, file, line);
  unsigned same = 0;
  for (unsigned i = 0; i < kWarpSize; ++i) {
    same |= static_cast<unsigned>((lanes >> i & 1) != 0 && given[i] == bits_of(value)) << i;
  }
  return same;
}

template <typename T>
unsigned __match_all_sync(unsigned mask, T value, int* is_same, TORCHEXT_HERE) {
  using namespace ::torchext::cuda_on_host;
  uint64_t given[kWarpSize];
  const unsigned lanes = gather("__match_all_sync", mask, bits_of(value), given, file, line);
  *is_same = 1;
  for (unsigned i = 0; i < kWarpSize; ++i) {
    *is_same &= static_cast<int>((lanes >> i & 1) == 0 || given[i] == bits_of(value));
  }
  return *is_same != 0 ? lanes : 0;
}

#define TORCHEXT_REDUCE(name, T, expression)                            \
  inline T name(unsigned mask, T value, TORCHEXT_HERE) {                \
    return static_cast<T>(::torchext::cuda_on_host::reduced_over_lanes( \
        #name,                                                          \
        mask,                                                           \
        static_cast<unsigned>(value),                                   \
        [](unsigned left, unsigned right) {                             \
          const T a = static_cast<T>(left);                             \
          const T b = static_cast<T>(right);                            \
          return static_cast<unsigned>(expression);                     \
        },                                                              \
        file,                                                           \
        line));                                                         \
  }
TORCHEXT_REDUCE(__reduce_add_sync, unsigned, a + b)
TORCHEXT_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
TORCHEXT_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
TORCHEXT_REDUCE(__reduce_and_sync, unsigned, a& b)
TORCHEXT_REDUCE(__reduce_or_sync, unsigned, a | b)
TORCHEXT_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
TORCHEXT_REDUCE(__reduce_min_sync, int, a < b ? a : b)
TORCHEXT_REDUCE(__reduce_max_sync, int, a > b ? a : b)
#undef TORCHEXT_REDUCE

inline int __reduce_add_sync(unsigned mask, int value, TORCHEXT_HERE) {
  return static_cast<int>(__reduce_add_sync(mask, static_cast<unsigned>(value), file, line));
}
