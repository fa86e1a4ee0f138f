// SPDX-License-Identifier: BSD-3-Clause
//
// The boxed kernels: they serve every schema, so that all libraries have the same. One unit, since most
// of what is compiled is templates of torch's that they have in common.
#include <torchext/precompiled.h>

#include "autocast.cpp"
#include "autograd_not_implemented.cpp"
#include "batching.cpp"
#include "declared_forms.cpp"
#include "functional_views.cpp"
#include "functionalization.cpp"
#include "math_bits.cpp"
#include "view_forms.cpp"
#include "views.cpp"
