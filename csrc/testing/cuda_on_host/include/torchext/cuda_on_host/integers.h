// SPDX-License-Identifier: BSD-3-Clause
//
// Functions of integers that a device has, and of two or four of them in a word (CUDA Math API,
// "Integer Intrinsics" and "SIMD Intrinsics").
#pragma once

#include <torchext/cuda_on_host/types.h>

#include <cstdint>
#include <limits>
#include <type_traits>

inline int __popc(unsigned a) {
  return __builtin_popcount(a);
}
inline int __popcll(unsigned long long a) {
  return __builtin_popcountll(a);
}
inline int __clz(int a) {
  return a == 0 ? 32 : __builtin_clz(static_cast<unsigned>(a));
}
inline int __clzll(long long a) {
  return a == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(a));
}
inline int __ffs(int a) {
  return __builtin_ffs(a);
}
inline int __ffsll(long long a) {
  return __builtin_ffsll(a);
}
inline unsigned __brev(unsigned a) {
  unsigned result = 0;
  for (int i = 0; i < 32; ++i) {
    result |= (a >> i & 1) << (31 - i);
  }
  return result;
}
inline unsigned long long __brevll(unsigned long long a) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(a))) << 32 |
         __brev(static_cast<unsigned>(a >> 32));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned which = selector >> 4 * i & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> 8 * (which & 7)) & 0xff;
    if ((which & 8) != 0) {
      byte = (byte & 0x80) != 0 ? 0xff : 0;
    }
    result |= byte << 8 * i;
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(
      (static_cast<uint64_t>(high) << 32 | low) << (shift < 32 ? shift : 32) >> 32);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(
      (static_cast<uint64_t>(high) << 32 | low) >> (shift < 32 ? shift : 32));
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline int __mulhi(int a, int b) {
  return static_cast<int>(static_cast<long long>(a) * b >> 32);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __mul24(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a << 8 >> 8) * static_cast<unsigned>(b << 8 >> 8));
}
inline unsigned __umul24(unsigned a, unsigned b) {
  return (a & 0xffffff) * (b & 0xffffff);
}
inline unsigned __sad(int a, int b, unsigned c) {
  return c + static_cast<unsigned>(a > b ? a - b : b - a);
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) {
  return c + (a > b ? a - b : b - a);
}

// Averages: h_ rounded down, rh_ rounded up.
inline int __hadd(int a, int b) {
  return static_cast<int>((static_cast<long long>(a) + b) >> 1);
}
inline int __rhadd(int a, int b) {
  return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1);
}
inline unsigned __uhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) + b) >> 1);
}
inline unsigned __urhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) + b + 1) >> 1);
}
/// Where the n-th set bit from `base` on stands, downward where n is less than zero; else all ones.
inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  const int step = offset < 0 ? -1 : 1;
  int left = offset == 0 ? 1 : offset * step;
  for (int i = static_cast<int>(base); i >= 0 && i < 32; i += step) {
    left -= static_cast<int>(mask >> i & 1);
    if (left == 0) {
      return static_cast<unsigned>(i);
    }
    if (offset == 0) {
      break;
    }
  }
  return 0xffffffffu;
}

namespace torchext::cuda_on_host {

/// c and the products of parts of a with parts of b; a lane of b begins at `first`.
template <typename A, typename B, typename Word, typename Sum>
Sum dot(Word a, Word b, Sum c, unsigned first, int count) {
  for (int i = 0; i < count; ++i) {
    const auto x = static_cast<A>(a >> 8 * sizeof(A) * i);
    const auto y = static_cast<B>(b >> 8 * sizeof(B) * (first + i));
    c += static_cast<Sum>(x) * static_cast<Sum>(y);
  }
  return c;
}

/// The words' lanes of type `Lane`, each pair as a function has it, which is given whole numbers.
template <typename Lane, typename F>
unsigned by_lane(unsigned a, unsigned b, F f) {
  unsigned result = 0;
  for (unsigned at = 0; at < 32; at += 8 * sizeof(Lane)) {
    const int x = static_cast<Lane>(a >> at);
    const int y = static_cast<Lane>(b >> at);
    using Bits = std::make_unsigned_t<Lane>;
    result |= static_cast<unsigned>(static_cast<Bits>(f(x, y))) << at;
  }
  return result;
}

template <typename Lane>
int saturated(int value) {
  const int least = std::numeric_limits<Lane>::min();
  const int greatest = std::numeric_limits<Lane>::max();
  return value < least ? least : value > greatest ? greatest : value;
}

template <typename Lane>
unsigned summed_differences(unsigned a, unsigned b) {
  unsigned result = 0;
  by_lane<Lane>(a, b, [&](int x, int y) { return result += x > y ? x - y : y - x; });
  return result;
}

} // namespace torchext::cuda_on_host

#define TORCHEXT_DOT(name, A, B, Word, first, count)              \
  inline Word name(Word a, Word b, Word c) {                      \
    return static_cast<Word>(::torchext::cuda_on_host::dot<A, B>( \
        static_cast<unsigned>(a),                                 \
        static_cast<unsigned>(b),                                 \
        static_cast<unsigned>(c),                                 \
        first,                                                    \
        count));                                                  \
  }
TORCHEXT_DOT(__dp4a, signed char, signed char, int, 0, 4)
TORCHEXT_DOT(__dp4a, unsigned char, unsigned char, unsigned, 0, 4)
TORCHEXT_DOT(__dp2a_lo, short, signed char, int, 0, 2)
TORCHEXT_DOT(__dp2a_lo, unsigned short, unsigned char, unsigned, 0, 2)
TORCHEXT_DOT(__dp2a_hi, short, signed char, int, 2, 2)
TORCHEXT_DOT(__dp2a_hi, unsigned short, unsigned char, unsigned, 2, 2)
#undef TORCHEXT_DOT

// Of two halfwords and of four bytes, without a sign and with one.
#define TORCHEXT_LANES(name, Lane, expression)                 \
  inline unsigned name(unsigned a, unsigned b) {               \
    using T = Lane;                                            \
    return ::torchext::cuda_on_host::by_lane<T>(               \
        a, b, [](int x, int y) -> int { return expression; }); \
  }
#define TORCHEXT_LANES_1(name, Lane, expression)                      \
  inline unsigned name(unsigned a) {                                  \
    using T = Lane;                                                   \
    return ::torchext::cuda_on_host::by_lane<T>(                      \
        a, 0, [](int x, int /*none*/) -> int { return expression; }); \
  }
#define TORCHEXT_COMPARED(name, n, Lane, compared)         \
  TORCHEXT_LANES(__vcmp##name##n, Lane, compared ? -1 : 0) \
  TORCHEXT_LANES(__vset##name##n, Lane, compared ? 1 : 0)
#define TORCHEXT_OF_LANES(n, Signed, Unsigned)                                                  \
  TORCHEXT_LANES_1(__vabs##n, Signed, x < 0 ? -x : x)                                           \
  TORCHEXT_LANES_1(__vabsss##n, Signed, ::torchext::cuda_on_host::saturated<T>(x < 0 ? -x : x)) \
  TORCHEXT_LANES_1(__vneg##n, Signed, -x)                                                       \
  TORCHEXT_LANES_1(__vnegss##n, Signed, ::torchext::cuda_on_host::saturated<T>(-x))             \
  TORCHEXT_LANES(__vabsdiffs##n, Signed, x > y ? x - y : y - x)                                 \
  TORCHEXT_LANES(__vabsdiffu##n, Unsigned, x > y ? x - y : y - x)                               \
  TORCHEXT_LANES(__vadd##n, Unsigned, x + y)                                                    \
  TORCHEXT_LANES(__vaddss##n, Signed, ::torchext::cuda_on_host::saturated<T>(x + y))            \
  TORCHEXT_LANES(__vaddus##n, Unsigned, ::torchext::cuda_on_host::saturated<T>(x + y))          \
  TORCHEXT_LANES(__vsub##n, Unsigned, x - y)                                                    \
  TORCHEXT_LANES(__vsubss##n, Signed, ::torchext::cuda_on_host::saturated<T>(x - y))            \
  TORCHEXT_LANES(__vsubus##n, Unsigned, ::torchext::cuda_on_host::saturated<T>(x - y))          \
  TORCHEXT_LANES(__vavgs##n, Signed, (x + y + (x + y >= 0 ? 1 : 0)) >> 1)                       \
  TORCHEXT_LANES(__vavgu##n, Unsigned, (x + y + 1) >> 1)                                        \
  TORCHEXT_LANES(__vhaddu##n, Unsigned, (x + y) >> 1)                                           \
  TORCHEXT_LANES(__vmaxs##n, Signed, x > y ? x : y)                                             \
  TORCHEXT_LANES(__vmaxu##n, Unsigned, x > y ? x : y)                                           \
  TORCHEXT_LANES(__vmins##n, Signed, x < y ? x : y)                                             \
  TORCHEXT_LANES(__vminu##n, Unsigned, x < y ? x : y)                                           \
  TORCHEXT_COMPARED(eq, n, Unsigned, x == y)                                                    \
  TORCHEXT_COMPARED(ne, n, Unsigned, x != y)                                                    \
  TORCHEXT_COMPARED(ges, n, Signed, x >= y)                                                     \
  TORCHEXT_COMPARED(geu, n, Unsigned, x >= y)                                                   \
  TORCHEXT_COMPARED(gts, n, Signed, x > y)                                                      \
  TORCHEXT_COMPARED(gtu, n, Unsigned, x > y)                                                    \
  TORCHEXT_COMPARED(les, n, Signed, x <= y)                                                     \
  TORCHEXT_COMPARED(leu, n, Unsigned, x <= y)                                                   \
  TORCHEXT_COMPARED(lts, n, Signed, x < y)                                                      \
  TORCHEXT_COMPARED(ltu, n, Unsigned, x < y)                                                    \
  inline unsigned __vsads##n(unsigned a, unsigned b) {                                          \
    return ::torchext::cuda_on_host::summed_differences<Signed>(a, b);                          \
  }                                                                                             \
  inline unsigned __vsadu##n(unsigned a, unsigned b) {                                          \
    return ::torchext::cuda_on_host::summed_differences<Unsigned>(a, b);                        \
  }
TORCHEXT_OF_LANES(2, short, unsigned short)
TORCHEXT_OF_LANES(4, signed char, unsigned char)
#undef TORCHEXT_OF_LANES
#undef TORCHEXT_COMPARED
#undef TORCHEXT_LANES_1
#undef TORCHEXT_LANES

#define TORCHEXT_LEAST_AND_GREATEST(letters, T) \
  inline T letters##min(T a, T b) {             \
    return a < b ? a : b;                       \
  }                                             \
  inline T letters##max(T a, T b) {             \
    return a > b ? a : b;                       \
  }
TORCHEXT_LEAST_AND_GREATEST(u, unsigned)
TORCHEXT_LEAST_AND_GREATEST(ll, long long)
TORCHEXT_LEAST_AND_GREATEST(ull, unsigned long long)
#undef TORCHEXT_LEAST_AND_GREATEST

inline int __dp4a(char4 a, char4 b, int c) {
  return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
