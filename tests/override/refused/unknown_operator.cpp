// SPDX-License-Identifier: BSD-3-Clause
#define LIBRARY unknown_operator
#define TWO_ARGUMENTS
#include "kernels.h"
