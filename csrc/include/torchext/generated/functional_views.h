// SPDX-License-Identifier: BSD-3-Clause
//
// Views while a graph is traced: the Functionalize kernels of operators that return a view, or make
// one of their argument. What is written to a view reaches its base by the scatter form. Boxed: they
// serve every schema.
#pragma once

#include <torch/library.h>

#include <string>

namespace torchext {
inline namespace v1 {

/// The operators of one view. The base is an argument of type Tensor, and there is one result.
struct ViewForms {
  std::string name; // of the operator that returns the view
  std::string overload;
  std::string scatter; // of the operator that writes to it
  std::string scatter_overload;
  std::string copy; // of the operator that copies it
  std::string copy_overload;
};

/// Of an operator that returns a view, or a list of them.
torch::CppFunction functionalized_view(ViewForms forms);

/// Of an operator that makes its argument a view of what it was.
torch::CppFunction functionalized_inplace_view(ViewForms forms);

} // namespace v1
} // namespace torchext
