// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels of the forms that `autogen:` declares and that no rule of `meta:` fills: an out= or
// in-place form calls the functional one and copies, a functional form clones what the other one
// writes to. Boxed: they serve every schema.
#pragma once

#include <torch/library.h>

namespace torchext {
inline namespace v1 {

/// Of an out= form, by the functional one; by the in-place one, on a copy, where there is no other.
torch::CppFunction out_form_of(const char* name, const char* overload);

/// Of an in-place form, by the functional one.
torch::CppFunction inplace_form_of(const char* name, const char* overload);

/// Of a functional form, by the one that writes.
torch::CppFunction functional_form_of(const char* name, const char* overload);

} // namespace v1
} // namespace torchext
