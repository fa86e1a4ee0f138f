// SPDX-License-Identifier: BSD-3-Clause
//
// The test device in one unit: most of what is compiled is torch's headers. Last what uses names of
// `at` as they are.
#include "allocator.cpp"
#include "aten.cpp"
#include "copy.cpp"
#include "guard.cpp"
#include "memory.cpp"
#include "random.cpp"
#include "streams.cpp"

#include "autocast.cpp"
