// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/precompiled.h>

#define LIBRARY late_failure
#define FAILS_LATE
#include "kernels.h"
