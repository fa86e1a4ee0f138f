// SPDX-License-Identifier: BSD-3-Clause
//
// The machine that runs kernels on the host, as one unit: most of the time it takes to compile is
// that of reading torch's headers.
#include "accesses.cpp"
#include "cuda_memory.cpp"
#include "cuda_runtime.cpp"
#include "fiber.cpp"
#include "host_memory.cpp"
#include "machine.cpp"
#include "meetings.cpp"
#include "rounding.cpp"
#include "scheduler.cpp"
#include "shared_memory.cpp"
#include "sources.cpp"
#include "test_device.cpp"
#include "threads.cpp"
#include "torch_cuda.cpp"
