// SPDX-License-Identifier: BSD-3-Clause
//
// The device that the host stands for: compute capability 9.0 (CUDA C++ Programming Guide, "Compute
// Capabilities").
#pragma once

#include <torchext/cuda_on_host/types.h>

#include <cstddef>
#include <cstdint>

namespace torchext::cuda_on_host {

struct Architecture {
  const char* name = "the host, as a device of compute capability 9.0";
  int major = 9;
  int minor = 0;
  unsigned threads_per_block = 1024;
  dim3 block{1024, 1024, 64};
  dim3 grid{2147483647, 65535, 65535};
  size_t shared_per_block = 48 << 10;
  size_t shared_per_block_optin = 227 << 10;
  size_t shared_per_multiprocessor = 228 << 10;
  int registers = 65536; // of a block, and of a multiprocessor
  int threads_per_multiprocessor = 2048;
  int blocks_per_multiprocessor = 32;
  int multiprocessors = 132;
  size_t constant_bytes = 64 << 10;
};

inline const Architecture& architecture() {
  static const Architecture only;
  return only;
}

} // namespace torchext::cuda_on_host
