// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels that make tensors and views of the test device; none reads or writes their contents.
#include "device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <optional>
#include <utility>

namespace torchext::testing {
namespace {

const c10::DispatchKeySet kTensorKeys(c10::DispatchKey::PrivateUse1);

void check_options(
    std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pin) {
  TORCH_CHECK(
      device.has_value() && device->type() == c10::kPrivateUse1,
      "torchext: the test device was asked for a tensor of another device");
  TORCH_CHECK(
      layout.value_or(at::kStrided) == at::kStrided,
      "torchext: the test device has strided tensors only");
  TORCH_CHECK(!pin.value_or(false), "torchext: only CPU tensors can be pinned");
}

at::Tensor empty(
    at::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout,
    std::optional<at::Device> device,
    std::optional<bool> pin_memory,
    std::optional<at::MemoryFormat> memory_format) {
  check_options(layout, device, pin_memory);
  const c10::DeviceGuard guard(*device);
  return at::detail::empty_generic(
      size, device_allocator(), kTensorKeys, c10::dtype_or_default(dtype), memory_format);
}

at::Tensor empty_strided(
    at::IntArrayRef size,
    at::IntArrayRef stride,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout,
    std::optional<at::Device> device,
    std::optional<bool> pin_memory) {
  check_options(layout, device, pin_memory);
  const c10::DeviceGuard guard(*device);
  return at::detail::empty_strided_generic(
      size, stride, device_allocator(), kTensorKeys, c10::dtype_or_default(dtype));
}

// Zeros without memory, which autograd makes and which operators know by their key.
at::Tensor efficient_zero_tensor(
    at::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout,
    std::optional<at::Device> device,
    std::optional<bool> pin_memory) {
  check_options(layout, device, pin_memory);
  const c10::DeviceGuard guard(*device);
  static at::native::ZeroTensorAllocator allocators[kDeviceCount] = {
      c10::Device(c10::kPrivateUse1, 0), c10::Device(c10::kPrivateUse1, 1)};
  return at::detail::empty_generic(
      size,
      &allocators[current_device()],
      kTensorKeys.add(c10::DispatchKey::ZeroTensor),
      c10::dtype_or_default(dtype),
      std::nullopt);
}

// A storage only ever grows to what the tensor needs, as on the other devices.
void grow_storage(const at::Tensor& self) {
  const size_t needed = at::detail::computeStorageNbytes(
      self.sizes(), self.strides(), self.element_size(), self.storage_offset());
  if (self.numel() != 0 && needed > self.storage().nbytes()) {
    resize_storage(self.storage(), needed);
  }
}

const at::Tensor& resize(
    const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> memory_format) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  if (self.sizes() != size) {
    impl->set_sizes_contiguous(size);
  }
  if (memory_format.has_value() && *memory_format != at::MemoryFormat::Preserve) {
    impl->empty_tensor_restride(*memory_format);
  }
  grow_storage(self);
  return self;
}

at::Tensor& set_storage(
    at::Tensor& self,
    at::Storage source,
    int64_t storage_offset,
    at::IntArrayRef size,
    at::IntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(source), storage_offset, size, stride);
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  if (stride.data() != nullptr) {
    impl->set_sizes_and_strides(size, stride, storage_offset);
  } else {
    impl->set_storage_offset(storage_offset);
    impl->set_sizes_contiguous(size);
  }
  grow_storage(self);
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage source) {
  return at::native::set_(self, std::move(source));
}

at::Tensor& set_nothing(at::Tensor& self) {
  const c10::DeviceGuard guard(self.device());
  constexpr bool kResizable = true;
  at::Storage none(c10::Storage::use_byte_size_t(), 0, device_allocator(), kResizable);
  return set_storage(self, std::move(none), 0, {0}, {});
}

// Work is done when a call returns, so memory is free for every stream when its tensor is gone.
void record_stream(at::Tensor& self, at::Stream stream) {
  TORCH_CHECK(
      stream.device_type() == c10::kPrivateUse1,
      "torchext: record_stream of a tensor on ",
      self.device(),
      " was given a stream of ",
      stream.device());
}

// Whether a tensor can become the other in place, as Module.to makes its parameters. ATen knows its
// own dense backends only, of which PrivateUse1 is none.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  const c10::DispatchKeySet dense(c10::DispatchKey::Dense);
  return self.key_set().has_any(dense) && from.key_set().has_any(dense);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_efficientzerotensor", &efficient_zero_tensor);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage", &set_whole_storage);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Tensor", &at::native::set_tensor_);
  m.impl("set_", &set_nothing);
  m.impl("is_set_to", &at::native::is_set_to);
  m.impl("record_stream", &record_stream);
  m.impl("_has_compatible_shallow_copy_type", &has_compatible_shallow_copy_type);

  // ATen's own view kernels: they make a tensor on the same storage, whatever its device.
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
}

} // namespace torchext::testing
