// SPDX-License-Identifier: BSD-3-Clause

#include <myns/kernels/muladd.h>
#include <torchext/elementwise.h>

at::Tensor myns::native::muladd_meta(
    const at::Tensor& a, const at::Tensor& b, const at::Scalar& c) {
  const at::Tensor product = torchext::pointwise_meta(torchext::Promote::kCommon, a, b);
  const at::ScalarType dtype = torchext::promote_with_scalar(product.scalar_type(), c);
  if (product.scalar_type() == dtype) {
    return product;
  }
  return at::empty_strided_symint(
      product.sym_sizes(), product.sym_strides(), product.options().dtype(dtype));
}
