// SPDX-License-Identifier: BSD-3-Clause
//
// The Functionalize kernel of an operator that writes to arguments: it calls the operator's functional
// form, and what that returns becomes the value of the tensors that would have been written to, as
// for ATen's own operators. Boxed: it runs while a graph is traced, never in eager mode.
#pragma once

#include <torch/library.h>

namespace torchext {
inline namespace v1 {

/// Of the form that it is registered for, by its functional form.
torch::CppFunction functionalized_by(const char* name, const char* overload);

/// The same where the functional form runs this one on copies; and of that form itself.
torch::CppFunction functionalized_on_copies_by(const char* name, const char* overload);

/// The ADInplaceOrView kernel of an operator whose schema the tracing of torch.compile refuses or
/// reads otherwise, or whose node saves what was written to, whose memory Inductor uses again: it is
/// traced as its functional form, which runs it on copies, and copies back. Below all transforms of
/// torch.func only: those around this one differentiate the operator itself.
torch::CppFunction traced_on_copies(const char* name, const char* overload);

} // namespace v1
} // namespace torchext
