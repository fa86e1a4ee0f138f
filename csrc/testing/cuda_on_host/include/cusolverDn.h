// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

struct cusolverDnContext;
using cusolverDnHandle_t = cusolverDnContext*;
enum cusolverStatus_t { CUSOLVER_STATUS_SUCCESS = 0 };
