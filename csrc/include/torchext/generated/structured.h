// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a structured operator: what a generated function makes of its meta class and of the class
// of a kernel. Each form makes, checks or resizes the results that the meta function sets; on Meta,
// where there is a meta class alone, it does nothing else.
//
//   structured::Out<myns::native::structured_mul_cpu, Home::kCPU, 1> op("myns::mul", out);
//   op.meta(self, other);
//   op.impl(self, other, op.maybe_get_output(0));
//   op.copy_back();
#pragma once

#include <torchext/generated/structured_meta.h>
#include <torchext/generated/structured_results.h>

#include <type_traits>

namespace torchext {
inline namespace v1 {
namespace structured {

template <Home home, typename Class, typename WithKernel, typename OfIterator, typename Symbolic>
using ResultsOf = std::conditional_t<
    home != Home::kMeta,
    WithKernel,
    std::conditional_t<kIsIterator<Class>, OfIterator, Symbolic>>;

/// New results, of a functional form.
template <typename Class, Home home, size_t N>
using Functional = ResultsOf<
    home,
    Class,
    NewResults<Class, home, N>,
    IteratorNewResults<Class, N>,
    SymbolicNewResults<Class, N>>;

/// The results that a form is given.
template <Written written, typename Class, Home home, size_t N>
using Given = ResultsOf<
    home,
    Class,
    GivenResults<written, Class, home, N>,
    IteratorGivenResults<written, Class, N>,
    SymbolicGivenResults<written, Class, N>>;

template <typename Class, Home home, size_t N>
using InPlace = Given<Written::kInPlace, Class, home, N>;

template <typename Class, Home home, size_t N>
using Out = Given<Written::kOut, Class, home, N>;

} // namespace structured
} // namespace v1
} // namespace torchext
