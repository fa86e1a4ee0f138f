// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/precompiled.h>

#define LIBRARY hidden_parts
#define TWO_ARGUMENTS
#include "kernels.h"
