// SPDX-License-Identifier: BSD-3-Clause
//
// What the build of a CUDA torch writes: which libraries it has. None is here.
#pragma once

#define AT_CUDNN_ENABLED() 0
#define AT_CUSPARSELT_ENABLED() 0
#define AT_MAGMA_ENABLED() 0
#define AT_ROCM_ENABLED() 0
#define NVCC_FLAGS_EXTRA ""
