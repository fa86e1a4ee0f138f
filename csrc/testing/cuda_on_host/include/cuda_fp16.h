// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torchext/cuda_on_host/half_functions.h>
