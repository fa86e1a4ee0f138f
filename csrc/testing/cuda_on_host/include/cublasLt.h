// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cublas_v2.h>

struct cublasLtContext;
using cublasLtHandle_t = cublasLtContext*;
