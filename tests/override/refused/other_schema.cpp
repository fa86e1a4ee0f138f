// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/precompiled.h>

#define LIBRARY other_schema
#include "kernels.h"
