// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <curand_kernel.h>
