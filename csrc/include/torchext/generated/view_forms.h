// SPDX-License-Identifier: BSD-3-Clause
//
// The two operators that stand beside one that returns a view, for graphs in which nothing shares
// memory: the scatter form gives the base with other values where the view is, the copy form a copy
// of the view. Boxed: they serve every schema.
#pragma once

#include <torch/library.h>

namespace torchext {
inline namespace v1 {

torch::CppFunction scatter_form_of(const char* name, const char* overload);

torch::CppFunction view_copy_of(const char* name, const char* overload);

// The Autograd kernels of both: as the operators that they call where a gradient or a tangent is
// asked for, and as one operator otherwise, so that a graph has it in one piece.

torch::CppFunction scatter_by_parts(const char* name, const char* overload);

torch::CppFunction view_copy_by_parts(const char* name, const char* overload);

} // namespace v1
} // namespace torchext
