// SPDX-License-Identifier: BSD-3-Clause
// Of torch what most of generated code includes, compiled once: torchext/toolchain/precompiled.py.
#pragma once

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/function.h>
#include <torch/library.h>

// For GCC a file that needs none of these takes longer with them than one that does gains.
#if defined(__clang__)
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/dynamo/compiled_autograd.h>
#endif
