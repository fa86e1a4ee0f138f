// SPDX-License-Identifier: BSD-3-Clause
//
// The names that ATen's headers mention; what calls cuBLAS itself has no declaration to compile with.
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>

struct cublasContext;
using cublasHandle_t = cublasContext*;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C };
