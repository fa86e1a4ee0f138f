// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cooperative_groups.h>
