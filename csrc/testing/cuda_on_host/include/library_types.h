// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// cudaDataType is in cublas_v2.h.
#include <cublas_v2.h>
