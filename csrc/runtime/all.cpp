// SPDX-License-Identifier: BSD-3-Clause
//
// The Python module torchext._runtime, as one unit.
#include <torchext/precompiled.h>

#include "bindings.cpp"
#include "contract.cpp"
#include "expectation.cpp"
#include "fallback.cpp"
#include "layers.cpp"
#include "override.cpp"
#include "python_kernel.cpp"
#include "recurrent_cells.cpp"
