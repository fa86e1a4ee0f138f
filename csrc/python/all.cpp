// SPDX-License-Identifier: BSD-3-Clause
//
// What makes Python objects of the nodes of a library, as one unit.
#include <torchext/precompiled.h>

#include "python_nodes.cpp"
#include "python_values.cpp"
