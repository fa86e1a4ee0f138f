// SPDX-License-Identifier: BSD-3-Clause
#define LIBRARY other_schema
#include "kernels.h"
