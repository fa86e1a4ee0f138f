// SPDX-License-Identifier: BSD-3-Clause
//
// libcu++'s namespace, which is the standard library here.
#pragma once

#include <cstddef>

namespace cuda::std {

using namespace ::std;

} // namespace cuda::std
