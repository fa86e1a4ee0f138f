// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels of each library here, whose own file includes this one: LIBRARY is its namespace.
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#define STRING(text) #text
// clang-format off: a space would be part of the file's name
#define HEADER(folder, name) STRING(folder/name)
// clang-format on
#include HEADER(LIBRARY, kernels.h)
#include HEADER(LIBRARY, library.h)

#include <stdexcept>

at::Tensor LIBRARY::native::k(const at::Tensor& self, const at::Tensor&, const at::Scalar&) {
  return self;
}

#ifdef TWO_ARGUMENTS
at::Tensor LIBRARY::native::k(const at::Tensor& self, const at::Tensor&) {
  return self;
}
#endif

#ifdef FAILS_LATE
// This file is linked after the generated ones, so that add has its new kernel already.
const bool registered = torchext::generated::LIBRARY::library().add(
    torch::Library::IMPL, c10::DispatchKey::CPU, [](torch::Library&) {
      throw std::runtime_error("something else failed");
    });
#endif
