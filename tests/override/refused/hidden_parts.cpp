// SPDX-License-Identifier: BSD-3-Clause
#define LIBRARY hidden_parts
#define TWO_ARGUMENTS
#include "kernels.h"
