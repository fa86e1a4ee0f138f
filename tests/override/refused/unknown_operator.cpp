// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/precompiled.h>

#define LIBRARY unknown_operator
#define TWO_ARGUMENTS
#include "kernels.h"
