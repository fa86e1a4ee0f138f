// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime.h>
