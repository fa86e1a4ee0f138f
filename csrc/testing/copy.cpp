// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels that touch the contents of device memory, all through host_view.
#include "device.h"
#include "memory.h"
#include "streams.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/from_blob.h>
#include <torch/library.h>

#include <memory>

namespace torchext::testing {

at::Tensor host_view(const at::Tensor& tensor) {
  at::Tensor view = tensor;
  if (tensor.device().type() == c10::kPrivateUse1) {
    const auto options = at::TensorOptions().dtype(tensor.dtype());
    void* data = tensor.data_ptr();
    // What is open keeps the tensor, and is closed before it is let go: captures end from the last.
    const auto opened = std::make_shared<OpenPages>(data);
    view = at::from_blob(
        data, tensor.sizes(), tensor.strides(), [tensor, opened](void*) {}, options);
    view._set_conj(tensor.is_conj());
    view._set_neg(tensor.is_neg());
  }
  TORCH_CHECK(view.is_cpu(), "torchext: no copy between the test device and ", tensor.device());
  return view;
}

namespace {

// Broadcasts and converts as Tensor.copy_ does, between the CPU and any of the two devices. Between the
// CPU and a device it comes after what the stream has still to do; what arrives on the CPU, if nobody
// waits for it, arrives when somebody does.
at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  // The views have storages of their own, which hide it from copy_.
  at::assert_no_internal_overlap(dst);
  at::assert_no_partial_overlap(dst, self);
  const at::Tensor& on_device = dst.is_cpu() ? self : dst;
  const bool is_put_off = non_blocking && dst.is_cpu();
  if ((self.is_cpu() || dst.is_cpu()) && !is_put_off) {
    finish(current_stream(on_device.device().index()));
  }
  host_view(dst).copy_(host_view(self));
  if (is_put_off) {
    put_off(dst, current_stream(on_device.device().index()));
  }
  return dst;
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  finish(current_stream(self.device().index()));
  return host_view(self).item();
}

at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value) {
  host_view(self).fill_(value);
  return self;
}

at::Tensor& zero(at::Tensor& self) {
  host_view(self).zero_();
  return self;
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", &copy_from);
  m.impl("_local_scalar_dense", &local_scalar_dense);
  m.impl("fill_.Scalar", &fill_scalar);
  m.impl("zero_", &zero);
}

// host_view carries the conj and neg bits. PyTorch's own kernels of these two keys would resolve them
// by a copy first, which is _copy_from again, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

} // namespace torchext::testing
