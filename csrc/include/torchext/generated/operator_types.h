// SPDX-License-Identifier: BSD-3-Clause
//
// The types of arguments and results, for what is generated of an operator: its C++ API, the
// declarations of its kernels.
#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymBool.h>
#include <torchext/visibility.h>

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>
