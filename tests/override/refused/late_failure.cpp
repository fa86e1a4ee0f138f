// SPDX-License-Identifier: BSD-3-Clause
#define LIBRARY late_failure
#define FAILS_LATE
#include "kernels.h"
