// SPDX-License-Identifier: BSD-3-Clause
//
// The tensors of one call, copied from their device to the CPU, and what is written there copied
// back.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/impl/COW.h>
#include <c10/util/Exception.h>
#include <torchext/generated/boxed.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace detail {

/// Whether two elements of a tensor may be one: a stride is within what smaller strides cover.
inline bool may_overlap_itself(const at::Tensor& tensor) {
  std::vector<std::pair<int64_t, int64_t>> steps; // stride and size
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.size(dim) == 0) {
      return false;
    }
    if (tensor.size(dim) > 1) {
      steps.emplace_back(tensor.stride(dim), tensor.size(dim));
    }
  }
  std::sort(steps.begin(), steps.end());
  int64_t covered = 0;
  for (const auto& [stride, size] : steps) {
    if (stride <= covered) {
      return true;
    }
    covered += stride * (size - 1);
  }
  return false;
}

/// The elements from the first to the last of a tensor that is not empty, in bytes of its storage.
inline std::pair<int64_t, int64_t> byte_range(const at::Tensor& tensor) {
  int64_t elements = 1;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    elements += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  const auto size = static_cast<int64_t>(tensor.element_size());
  return {tensor.storage_offset() * size, (tensor.storage_offset() + elements) * size};
}

/// What a call does to a tensor that it takes; later ones include earlier ones.
enum class Access {
  kRead,
  kWrittenSilently, // without raising its version counter
  kWritten,
};

/// Tensors on the CPU for those of a device. Tensors whose bytes lie among those of one that is
/// written to, in a storage that begins where theirs does, share memory there too, and overlap alike;
/// all others are copied each for itself, and once.
class HostCopies {
 public:
  /// Names a tensor that the call takes; call it for all before `copy`.
  void add(const at::Tensor& tensor, Access access) {
    const auto [found, is_new] = index_.try_emplace(tensor.unsafeGetTensorImpl(), entries_.size());
    if (is_new) {
      entries_.push_back({tensor, {}, access});
    }
    entries_[found->second].access = std::max(entries_[found->second].access, access);
  }

  /// Makes the copies.
  void copy() {
    std::unordered_map<const void*, std::vector<size_t>> by_memory;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const at::Tensor& tensor = entries_[i].device;
      if (has_elements(tensor)) {
        by_memory[memory_of(tensor)].push_back(i);
      } else {
        copy_alone(entries_[i]);
      }
    }
    for (const auto& [memory, members] : by_memory) {
      for (const std::vector<size_t>& entangled : entangled_parts(members)) {
        if (must_share(entangled)) {
          copy_together(entangled);
        } else {
          for (const size_t i : entangled) {
            copy_alone(entries_[i]);
          }
        }
      }
    }
  }

  /// The copy of a tensor that was added.
  const at::Tensor& operator[](const at::Tensor& tensor) const {
    return entries_[index_.at(tensor.unsafeGetTensorImpl())].host;
  }

  /// Copies what may have been written back to the device, and gives tensors that were resized on
  /// the CPU their size. Whether a version counter is to be raised: not where autograd has done so.
  void write_back(bool raise_versions) {
    for (Entry& entry : entries_) {
      if (entry.access == Access::kRead) {
        continue;
      }
      if (entry.host.sizes() != entry.sizes) {
        resize(entry.device, entry.host);
      }
      if (entry.host.sizes() == entry.sizes && entry.span.defined() &&
          may_overlap_itself(entry.device)) {
        // No device copies into a tensor that overlaps itself.
        entry.span.copy_(entry.host_span);
        bytes_to_device_ += static_cast<int64_t>(entry.span.nbytes());
      } else {
        entry.device.copy_(entry.host);
        bytes_to_device_ += static_cast<int64_t>(entry.host.nbytes());
      }
      if (raise_versions && entry.access == Access::kWritten && !entry.device.is_inference()) {
        entry.device.unsafeGetTensorImpl()->bump_version();
      }
    }
  }

  int64_t bytes_to_cpu() const {
    return bytes_to_cpu_;
  }
  int64_t bytes_to_device() const {
    return bytes_to_device_;
  }

 private:
  struct Entry {
    at::Tensor device;
    at::Tensor host;
    Access access;
    std::vector<int64_t> sizes = device.sizes().vec(); // before the call
    at::Tensor span = {}; // where memory is shared: one dimension, from the first to the last byte
    at::Tensor host_span = {};
  };

  static bool has_elements(const at::Tensor& tensor) {
    return tensor.layout() == at::kStrided && !tensor.is_quantized() && tensor.has_storage() &&
           tensor.numel() != 0;
  }

  // What tensors share that share memory: where it begins, which is one for several storages as
  // from_dlpack makes them, or the storage, of which copies are made before they are written.
  static const void* memory_of(const at::Tensor& tensor) {
    const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
    const bool is_own =
        storage->data() == nullptr || c10::impl::cow::is_cow_data_ptr(storage->data_ptr());
    return is_own ? static_cast<const void*>(storage) : storage->data();
  }

  // Members of one memory, apart where the bytes from the first to the last of the ones lie before
  // those of the others.
  std::vector<std::vector<size_t>> entangled_parts(const std::vector<size_t>& members) const {
    std::vector<std::pair<std::pair<int64_t, int64_t>, size_t>> ranges;
    for (const size_t i : members) {
      ranges.emplace_back(byte_range(entries_[i].device), i);
    }
    std::sort(ranges.begin(), ranges.end());
    std::vector<std::vector<size_t>> parts;
    int64_t last = -1;
    for (const auto& [range, i] : ranges) {
      if (range.first >= last) {
        parts.emplace_back();
      }
      parts.back().push_back(i);
      last = std::max(last, range.second);
    }
    return parts;
  }

  bool must_share(const std::vector<size_t>& members) const {
    const auto is_written = [this](size_t i) { return entries_[i].access != Access::kRead; };
    return std::any_of(members.begin(), members.end(), is_written) &&
           (members.size() > 1 || may_overlap_itself(entries_[members.front()].device));
  }

  void copy_alone(Entry& entry) {
    entry.host = entry.device.to(at::kCPU);
    finish(entry);
    bytes_to_cpu_ += has_elements(entry.host) ? static_cast<int64_t>(entry.host.nbytes()) : 0;
  }

  // Offsets and ranges are multiples of the smallest element's size, sizes being powers of two.
  void copy_together(const std::vector<size_t>& members) {
    int64_t largest = 1;
    auto [first, last] = byte_range(entries_[members.front()].device);
    for (const size_t i : members) {
      const at::Tensor& tensor = entries_[i].device;
      const auto [begin, end] = byte_range(tensor);
      first = std::min(first, begin);
      last = std::max(last, end);
      largest = std::max(largest, static_cast<int64_t>(tensor.element_size()));
    }
    first -= first % largest;
    // Two storages of one memory may end at different places.
    const at::Tensor* unit = nullptr;
    for (const size_t i : members) {
      const at::Tensor& tensor = entries_[i].device;
      const bool has_all = static_cast<int64_t>(tensor.storage().nbytes()) >= last &&
                           (last - first) % static_cast<int64_t>(tensor.element_size()) == 0;
      if (has_all && (unit == nullptr || tensor.element_size() < unit->element_size())) {
        unit = &tensor;
      }
    }
    TORCH_CHECK_NOT_IMPLEMENTED(
        unit != nullptr,
        "tensors of two storages that share memory cannot be copied to the CPU as one: none of the "
        "storages has all of it");
    const auto size = static_cast<int64_t>(unit->element_size());
    at::Tensor span = unit->as_strided({(last - first) / size}, {1}, first / size);
    if (span.scalar_type() == at::kBool) {
      span = span.view(at::kByte); // copied as bool, other tensors' bytes would become 0 or 1
    }
    span._set_conj(false); // the elements as they lie there
    span._set_neg(false);
    const at::Tensor host_span = span.to(at::kCPU);
    bytes_to_cpu_ += static_cast<int64_t>(host_span.nbytes());
    for (const size_t i : members) {
      Entry& entry = entries_[i];
      const auto offset =
          entry.device.storage_offset() - first / static_cast<int64_t>(entry.device.element_size());
      entry.host = at::empty({0}, entry.device.options().device(at::kCPU));
      entry.host.set_(host_span.storage(), offset, entry.device.sizes(), entry.device.strides());
      entry.host._set_conj(entry.device.is_conj());
      entry.host._set_neg(entry.device.is_neg());
      entry.span = span;
      entry.host_span = host_span;
      finish(entry);
    }
  }

  // A number that Python wrapped in a tensor takes part in type promotion as a number.
  static void finish(Entry& entry) {
    if (entry.device.unsafeGetTensorImpl()->is_wrapped_number()) {
      entry.host.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
  }

  static void resize(const at::Tensor& device, const at::Tensor& host) {
    device.resize_(host.sizes());
    if (device.strides() != host.strides() && host.is_non_overlapping_and_dense()) {
      device.as_strided_(host.sizes(), host.strides());
    }
  }

  std::vector<Entry> entries_;
  std::unordered_map<const at::TensorImpl*, size_t> index_;
  int64_t bytes_to_cpu_ = 0;
  int64_t bytes_to_device_ = 0;
};

} // namespace detail
} // namespace v1
} // namespace torchext
