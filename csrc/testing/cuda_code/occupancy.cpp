// SPDX-License-Identifier: BSD-3-Clause
//
// The toolkit's own calculator as a program: a line in for a line out. In: the capability's two
// numbers, threads and shared memory of a multiprocessor, the shared memory that a block may ask for
// at most; registers of a thread, static shared memory and most threads of a kernel; threads and
// dynamic shared memory of a block. Out: the blocks of which a multiprocessor has room.

#include <cuda_occupancy.h>

#include <iostream>

int main() {
  cudaOccDeviceProp device;
  device.maxThreadsPerBlock = 1024;
  device.regsPerBlock = device.regsPerMultiprocessor = 65536;
  device.warpSize = 32;
  device.sharedMemPerBlock = 48 << 10;
  device.numSms = 1;
  device.reservedSharedMemPerBlock = 1 << 10;
  cudaOccFuncAttributes kernel = {};
  kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  cudaOccDeviceState state = {};
  state.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;
  int threads = 0;
  size_t dynamic = 0;
  while (std::cin >> device.computeMajor >> device.computeMinor >>
         device.maxThreadsPerMultiprocessor >> device.sharedMemPerMultiprocessor >>
         device.sharedMemPerBlockOptin >> kernel.numRegs >> kernel.sharedSizeBytes >>
         kernel.maxThreadsPerBlock >> threads >> dynamic) {
    kernel.maxDynamicSharedSizeBytes = dynamic; // as cudaFuncSetAttribute would say
    cudaOccResult result;
    const auto error = cudaOccMaxActiveBlocksPerMultiprocessor(
        &result, &device, &kernel, &state, threads, dynamic);
    if (error != CUDA_OCC_SUCCESS) {
      std::cerr << "cuda_occupancy.h refuses this, with error " << error << "\n";
      return 1;
    }
    std::cout << result.activeBlocksPerMultiprocessor << "\n";
  }
}
