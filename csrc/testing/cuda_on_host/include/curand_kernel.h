// SPDX-License-Identifier: BSD-3-Clause
//
// cuRAND's device functions. Philox4_32_10 is the generator of that name (Salmon et al., "Parallel
// Random Numbers: As Easy as 1, 2, 3"), with cuRAND's order of words; the other states are Philox too,
// whose numbers are as random and not the same.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

struct curandStatePhilox4_32_10 {
  uint4 counter;
  uint2 key;
  uint4 output;
  unsigned used; // words of the output
  bool has_normal;
  float normal;
};
using curandStatePhilox4_32_10_t = curandStatePhilox4_32_10;
using curandState = curandStatePhilox4_32_10;
using curandState_t = curandStatePhilox4_32_10;
using curandStateXORWOW = curandStatePhilox4_32_10;
using curandStateXORWOW_t = curandStatePhilox4_32_10;
using curandStateMRG32k3a = curandStatePhilox4_32_10;
using curandStateMRG32k3a_t = curandStatePhilox4_32_10;

namespace torchext::cuda_on_host {

inline uint4 philox(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter.x;
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter.z;
    counter = {
        static_cast<unsigned>(b >> 32) ^ counter.y ^ key.x,
        static_cast<unsigned>(b),
        static_cast<unsigned>(a >> 32) ^ counter.w ^ key.y,
        static_cast<unsigned>(a)};
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return counter;
}

inline void add(uint4& counter, uint64_t count) {
  const uint64_t low = (static_cast<uint64_t>(counter.y) << 32 | counter.x) + count;
  if (low < count && ++counter.z == 0) {
    ++counter.w;
  }
  counter.x = static_cast<unsigned>(low);
  counter.y = static_cast<unsigned>(low >> 32);
}

} // namespace torchext::cuda_on_host

inline void curand_init(
    unsigned long long seed,
    unsigned long long subsequence,
    unsigned long long offset,
    curandStatePhilox4_32_10* state) {
  state->key = {static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)};
  state->counter = {
      0, 0, static_cast<unsigned>(subsequence), static_cast<unsigned>(subsequence >> 32)};
  ::torchext::cuda_on_host::add(state->counter, offset / 4);
  state->output = ::torchext::cuda_on_host::philox(state->counter, state->key);
  state->used = static_cast<unsigned>(offset % 4);
  state->has_normal = false;
}

inline unsigned curand(curandStatePhilox4_32_10* state) {
  const unsigned words[4] = {state->output.x, state->output.y, state->output.z, state->output.w};
  const unsigned result = words[state->used];
  if (++state->used == 4) {
    ::torchext::cuda_on_host::add(state->counter, 1);
    state->output = ::torchext::cuda_on_host::philox(state->counter, state->key);
    state->used = 0;
  }
  return result;
}

inline uint4 curand4(curandStatePhilox4_32_10* state) {
  const unsigned x = curand(state);
  const unsigned y = curand(state);
  const unsigned z = curand(state);
  return {x, y, z, curand(state)};
}

namespace torchext::cuda_on_host {

// In (0, 1], as cuRAND has them.
inline float uniform(unsigned bits) {
  constexpr float kStep = 2.3283064e-10f;
  return static_cast<float>(bits) * kStep + kStep / 2;
}

inline float2 normals(unsigned a, unsigned b) {
  const float radius = std::sqrt(-2.0f * std::log(uniform(a)));
  const float angle = 6.2831855f * uniform(b);
  return {radius * std::sin(angle), radius * std::cos(angle)};
}

} // namespace torchext::cuda_on_host

inline float curand_uniform(curandStatePhilox4_32_10* state) {
  return ::torchext::cuda_on_host::uniform(curand(state));
}

inline float4 curand_uniform4(curandStatePhilox4_32_10* state) {
  const uint4 bits = curand4(state);
  using ::torchext::cuda_on_host::uniform;
  return {uniform(bits.x), uniform(bits.y), uniform(bits.z), uniform(bits.w)};
}

inline double curand_uniform_double(curandStatePhilox4_32_10* state) {
  const uint64_t low = curand(state);
  const uint64_t bits = low ^ static_cast<uint64_t>(curand(state)) << 21;
  constexpr double kStep = 1.1102230246251565e-16;
  return static_cast<double>(bits & ((uint64_t{1} << 53) - 1)) * kStep + kStep / 2;
}

inline double2 curand_uniform2_double(curandStatePhilox4_32_10* state) {
  const double x = curand_uniform_double(state);
  return {x, curand_uniform_double(state)};
}

inline float2 curand_normal2(curandStatePhilox4_32_10* state) {
  const unsigned a = curand(state);
  return ::torchext::cuda_on_host::normals(a, curand(state));
}

inline float4 curand_normal4(curandStatePhilox4_32_10* state) {
  const float2 a = curand_normal2(state);
  const float2 b = curand_normal2(state);
  return {a.x, a.y, b.x, b.y};
}

inline float curand_normal(curandStatePhilox4_32_10* state) {
  if (state->has_normal) {
    state->has_normal = false;
    return state->normal;
  }
  const float2 both = curand_normal2(state);
  state->has_normal = true;
  state->normal = both.y;
  return both.x;
}

inline double2 curand_normal2_double(curandStatePhilox4_32_10* state) {
  const double radius = std::sqrt(-2.0 * std::log(curand_uniform_double(state)));
  const double angle = 6.283185307179586 * curand_uniform_double(state);
  return {radius * std::sin(angle), radius * std::cos(angle)};
}

inline double curand_normal_double(curandStatePhilox4_32_10* state) {
  return curand_normal2_double(state).x;
}

inline float curand_log_normal(curandStatePhilox4_32_10* state, float mean, float deviation) {
  return std::exp(mean + deviation * curand_normal(state));
}

inline double curand_log_normal_double(
    curandStatePhilox4_32_10* state, double mean, double deviation) {
  return std::exp(mean + deviation * curand_normal_double(state));
}

/// By Knuth's product of uniform numbers; for large means the normal distribution, rounded.
inline unsigned curand_poisson(curandStatePhilox4_32_10* state, double mean) {
  if (mean > 600) {
    const double drawn = mean + std::sqrt(mean) * curand_normal_double(state);
    return drawn < 0 ? 0 : static_cast<unsigned>(drawn + 0.5);
  }
  const double least = std::exp(-mean);
  double product = curand_uniform_double(state);
  unsigned count = 0;
  while (product > least) {
    product *= curand_uniform_double(state);
    ++count;
  }
  return count;
}

inline void skipahead(unsigned long long count, curandStatePhilox4_32_10* state) {
  const unsigned long long used = state->used + count;
  ::torchext::cuda_on_host::add(state->counter, used / 4);
  state->output = ::torchext::cuda_on_host::philox(state->counter, state->key);
  state->used = static_cast<unsigned>(used % 4);
}
