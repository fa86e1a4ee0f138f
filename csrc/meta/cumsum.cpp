// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/precompiled.h>

#include <c10/core/WrapDimMinimal.h>
#include <myns/kernels/cumsum.h>

myns::meta::structured_cumsum::meta_return_ty myns::meta::structured_cumsum::meta(
    const at::Tensor& self, int64_t dim, std::optional<at::ScalarType> dtype) {
  const at::Tensor& given = maybe_get_output(0);
  const bool integral = c10::isIntegralType(self.scalar_type(), /*includeBool=*/true);
  const at::ScalarType own = integral ? at::kLong : self.scalar_type();
  const at::ScalarType result = dtype.value_or(given.defined() ? given.scalar_type() : own);
  TORCH_CHECK(
      result != at::kBool && result != at::kComplexHalf,
      "myns::cumsum: the result cannot have dtype ",
      result);
  set_output_contiguous_symint(0, self.sym_sizes(), self.options().dtype(result));
  return precompute_out<>().set_dim(c10::maybe_wrap_dim(dim, self.dim()));
}
