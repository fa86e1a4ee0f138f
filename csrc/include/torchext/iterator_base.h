// SPDX-License-Identifier: BSD-3-Clause
//
// The base of the classes of structured operators that a TensorIterator serves, and the types of
// what their functions are given.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/IListRef.h>
#include <c10/util/DimVector.h>
