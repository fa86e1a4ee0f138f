// SPDX-License-Identifier: BSD-3-Clause
//
// What a CUDA build of torch has in libraries of its own (libc10_cuda, libtorch_cuda), on the test
// device. Its headers are torch's, with the test device in CUDA's place.
#include "architecture.h"
#include "streams.h"
#include "test_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <array>
#include <utility>

using torchext::cuda_on_host::test_device;

namespace c10::cuda {
namespace {

c10::impl::VirtualGuardImpl guard() {
  return c10::impl::VirtualGuardImpl(kPrivateUse1);
}

Device device_of(DeviceIndex index) {
  return Device(kPrivateUse1, index < 0 ? current_device() : index);
}

CUDAStream unchecked(Stream stream) {
  return CUDAStream(CUDAStream::UNCHECKED, stream);
}

} // namespace

DeviceIndex device_count() noexcept {
  return static_cast<DeviceIndex>(test_device().count());
}

DeviceIndex device_count_ensure_non_zero() {
  return device_count();
}

DeviceIndex current_device() {
  return static_cast<DeviceIndex>(test_device().current());
}

cudaError_t GetDeviceCount(int* count) {
  return cudaGetDeviceCount(count);
}

cudaError_t GetDevice(DeviceIndex* device) {
  *device = current_device();
  return cudaSuccess;
}

cudaError_t SetDevice(DeviceIndex device, const bool /*force*/) {
  return cudaSetDevice(device);
}

cudaError_t MaybeSetDevice(DeviceIndex device) {
  return cudaSetDevice(device);
}

void set_device(DeviceIndex device, const bool /*force*/) {
  C10_CUDA_CHECK(cudaSetDevice(device));
}

DeviceIndex ExchangeDevice(DeviceIndex device) {
  const DeviceIndex previous = current_device();
  set_device(device);
  return previous;
}

DeviceIndex MaybeExchangeDevice(DeviceIndex device) {
  return ExchangeDevice(device);
}

void SetTargetDevice() {}

void device_synchronize() {
  C10_CUDA_CHECK(cudaDeviceSynchronize());
}

void warn_or_error_on_sync() {}

bool hasPrimaryContext(DeviceIndex /*device*/) {
  return true;
}

void c10_cuda_check_implementation(
    const int32_t error,
    const char* file,
    const char* function,
    const uint32_t line,
    const bool /*include_device_assertions*/) {
  const auto found = static_cast<cudaError_t>(error);
  if (found != cudaSuccess) {
    cudaGetLastError();
    throw c10::Error(
        c10::SourceLocation{function, file, line},
        std::string("CUDA error: ") + cudaGetErrorString(found));
  }
}

bool CUDAStream::query() const {
  return guard().queryStream(unwrap());
}

void CUDAStream::synchronize() const {
  guard().synchronizeStream(unwrap());
}

cudaStream_t CUDAStream::stream() const {
  return torchext::cuda_on_host::cuda_stream(id(), device_index());
}

CUDAStream getStreamFromPool(const bool /*is_high_priority*/, DeviceIndex device) {
  return unchecked(guard().getNewStream(device_of(device)));
}

CUDAStream getStreamFromPool(const int /*priority*/, DeviceIndex device) {
  return unchecked(guard().getNewStream(device_of(device)));
}

CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex /*device*/) {
  return unchecked(torchext::cuda_on_host::torch_stream(stream));
}

CUDAStream getDefaultCUDAStream(DeviceIndex device) {
  return unchecked(guard().getDefaultStream(device_of(device)));
}

CUDAStream getCurrentCUDAStream(DeviceIndex device) {
  return unchecked(guard().getStream(device_of(device)));
}

void setCurrentCUDAStream(CUDAStream stream) {
  guard().exchangeStream(stream.unwrap());
}

std::ostream& operator<<(std::ostream& out, const CUDAStream& stream) {
  return out << stream.unwrap();
}

namespace CUDACachingAllocator {

c10::Allocator* get() {
  return c10::GetAllocator(kPrivateUse1);
}

void* raw_alloc(size_t nbytes) {
  return get()->raw_allocate(nbytes);
}

void raw_delete(void* data) {
  get()->raw_deallocate(data);
}

} // namespace CUDACachingAllocator
} // namespace c10::cuda

namespace at::cuda {

cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device) {
  static auto all = [] {
    std::array<cudaDeviceProp, 16> found{};
    for (int i = 0; i < test_device().count(); ++i) {
      cudaGetDeviceProperties(&found[static_cast<size_t>(i)], i);
    }
    return found;
  }();
  TORCH_CHECK(
      0 <= device && device < test_device().count(), "no device has the index ", int(device));
  return &all[static_cast<size_t>(device)];
}

cudaDeviceProp* getCurrentDeviceProperties() {
  return getDeviceProperties(c10::cuda::current_device());
}

int warp_size() {
  return torchext::cuda_on_host::kWarpSize;
}

bool canDeviceAccessPeer(c10::DeviceIndex /*device*/, c10::DeviceIndex /*peer*/) {
  return false;
}

c10::Allocator* getCUDADeviceAllocator() {
  return c10::cuda::CUDACachingAllocator::get();
}

namespace detail {

const Generator& getDefaultCUDAGenerator(c10::DeviceIndex index) {
  const c10::DeviceIndex known = index < 0 ? c10::cuda::current_device() : index;
  return at::globalContext().defaultGenerator(c10::Device(c10::kPrivateUse1, known));
}

} // namespace detail
} // namespace at::cuda

namespace at {

// The test device's generators are the CPU's.
std::pair<uint64_t, uint64_t> CUDAGeneratorImpl::philox_engine_inputs(uint64_t /*increment*/) {
  return {static_cast<CPUGeneratorImpl*>(static_cast<c10::GeneratorImpl*>(this))->random64(), 0};
}

PhiloxCudaState CUDAGeneratorImpl::philox_cuda_state(uint64_t increment) {
  const auto [seed, offset] = philox_engine_inputs(increment);
  return {seed, offset};
}

} // namespace at
