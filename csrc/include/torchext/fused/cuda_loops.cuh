// SPDX-License-Identifier: BSD-3-Clause
//
// The loops of expressions on CUDA. Dense operands are read and written 16 bytes at a time; others
// by offsets of 32 bits, of pieces of the tensors where these are larger. Nothing waits for the
// device: a number that is a tensor of the CPU goes with the launch.
#pragma once

#include <torchext/fused/operands.h>
#include <torchext/fused/values.h>

#include <ATen/OpMathType.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/detail/OffsetCalculator.cuh>
#include <c10/core/DynamicCast.h>
#include <c10/cuda/CUDAException.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace torchext {
inline namespace v1 {
namespace fused {

constexpr int kThreads = 256;
constexpr int64_t kAccess = 16; // bytes

/// One call of an expression over elements of type T, as a kernel is given it.
template <typename Op, typename T>
struct OnDevice {
  using V = at::opmath_type<T>;
  static constexpr int most = Op::inputs + Op::results;

  char* data[most]; // results, then inputs
  c10::ScalarType dtypes[most];
  V numbers[Op::numbers + 1];
  V constants[Op::inputs + 1];
  bool has[Op::inputs + Op::conditions + reals_of<Op>() + 1];
  bool is_constant[Op::inputs + 1];
  bool wanted[Op::results];

  /// Computes one element: `load(i)` is that of an input, and `store(i, value)` takes a result.
  template <typename Load, typename Store>
  C10_DEVICE TORCHEXT_ALWAYS_INLINE void element(const Load& load, const Store& store) const {
    V inputs[Op::inputs + 1];
    V results[Op::results];
#pragma unroll
    for (int i = 0; i < static_cast<int>(Op::inputs); ++i) {
      inputs[i] = is_constant[i] ? constants[i] : load(i);
    }
    Op::template compute<V>(Given<V>{inputs, numbers, has, wanted}, results);
#pragma unroll
    for (int i = 0; i < static_cast<int>(Op::results); ++i) {
      if (wanted[i]) {
        store(i, results[i]);
      }
    }
  }
};

template <typename T, int width>
struct alignas(sizeof(T) * width) Pack {
  T values[width];
};

template <typename Op, typename T, int width>
__global__ void __launch_bounds__(kThreads, 1) dense_kernel(OnDevice<Op, T> call, int64_t n) {
  using V = typename OnDevice<Op, T>::V;
  using P = Pack<T, width>;
  constexpr int results = Op::results, inputs = Op::inputs;
  const int64_t begin = (int64_t(blockIdx.x) * kThreads + threadIdx.x) * width;
  if (begin + width <= n) {
    P loaded[inputs + 1], stored[results];
#pragma unroll
    for (int i = 0; i < inputs; ++i) {
      if (!call.is_constant[i]) {
        loaded[i] = *reinterpret_cast<const P*>(call.data[results + i] + begin * sizeof(T));
      }
    }
#pragma unroll
    for (int j = 0; j < width; ++j) {
      call.element(
          [&](int i) { return static_cast<V>(loaded[i].values[j]); },
          [&](int i, V value) { stored[i].values[j] = static_cast<T>(value); });
    }
#pragma unroll
    for (int i = 0; i < results; ++i) {
      if (call.wanted[i]) {
        *reinterpret_cast<P*>(call.data[i] + begin * sizeof(T)) = stored[i];
      }
    }
    return;
  }
  for (int64_t at = begin; at < n; ++at) {
    call.element(
        [&](int i) {
          return static_cast<V>(reinterpret_cast<const T*>(call.data[results + i])[at]);
        },
        [&](int i, V value) { reinterpret_cast<T*>(call.data[i])[at] = static_cast<T>(value); });
  }
}

template <typename Op, typename T, bool casts>
__global__ void __launch_bounds__(kThreads, 1) strided_kernel(
    OnDevice<Op, T> call, OffsetCalculator<OnDevice<Op, T>::most> offsets, uint32_t n) {
  using V = typename OnDevice<Op, T>::V;
  constexpr int results = Op::results;
  const uint64_t at = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= n) {
    return;
  }
  const auto offset = offsets.get(static_cast<uint32_t>(at));
  call.element(
      [&](int i) {
        const char* from = call.data[results + i] + offset[results + i];
        if constexpr (casts) {
          return c10::fetch_and_cast<V>(call.dtypes[results + i], from);
        } else {
          return static_cast<V>(*reinterpret_cast<const T*>(from));
        }
      },
      [&](int i, V value) {
        char* to = call.data[i] + offset[i];
        if constexpr (casts) {
          c10::cast_and_store<T>(call.dtypes[i], to, static_cast<T>(value));
        } else {
          *reinterpret_cast<T*>(to) = static_cast<T>(value);
        }
      });
}

template <typename Op, typename T>
OnDevice<Op, T> on_device(at::TensorIteratorBase& iter, const Call& told) {
  using V = typename OnDevice<Op, T>::V;
  OnDevice<Op, T> call{};
  for (size_t i = 0; i < Op::numbers; ++i) {
    call.numbers[i] = value_of<V>(told.numbers[i]);
  }
  std::copy(told.conditions, told.conditions + Op::conditions, call.has + Op::inputs);
  std::copy_n(told.reals, reals_of<Op>(), call.has + Op::inputs + Op::conditions);
  for (size_t i = 0; i < Op::results; ++i) {
    const int operand = told.results[i];
    call.wanted[i] = operand >= 0;
    if (operand >= 0) {
      call.data[i] = static_cast<char*>(iter.data_ptr(operand));
      call.dtypes[i] = iter.dtype(operand);
    }
  }
  for (size_t i = 0; i < Op::inputs; ++i) {
    const int operand = told.inputs[i];
    call.has[i] = operand >= 0;
    call.is_constant[i] = operand < 0 || iter.is_cpu_scalar(operand);
    if (operand < 0) {
      call.constants[i] = Primitives<V>::number(Op::defaults[i]);
    } else if (call.is_constant[i]) {
      call.constants[i] = iter.scalar_value<V>(operand);
    } else if (operand >= 0) {
      call.data[Op::results + i] = static_cast<char*>(iter.data_ptr(operand));
      call.dtypes[Op::results + i] = iter.dtype(operand);
    }
  }
  return call;
}

/// Whether the operands that are read and written on the device have all this dtype.
template <typename Op, typename T>
bool casts(const OnDevice<Op, T>& call) {
  const c10::ScalarType own = c10::CppTypeToScalarType<T>::value;
  bool found = false;
  for (int i = 0; i < OnDevice<Op, T>::most; ++i) {
    found = found || (call.data[i] != nullptr && call.dtypes[i] != own);
  }
  return found;
}

inline unsigned blocks_for(int64_t n, int64_t each) {
  return static_cast<unsigned>((n + each - 1) / each);
}

template <typename Op, typename T>
void launch_dense(const OnDevice<Op, T>& call, int64_t n) {
  constexpr int width = kAccess / sizeof(T);
  const bool is_aligned = std::all_of(call.data, call.data + call.most, [](const char* data) {
    return reinterpret_cast<uintptr_t>(data) % kAccess == 0;
  });
  const auto stream = at::cuda::getCurrentCUDAStream();
  if (is_aligned) {
    dense_kernel<Op, T, width><<<blocks_for(n, kThreads * width), kThreads, 0, stream>>>(call, n);
  } else {
    dense_kernel<Op, T, 1><<<blocks_for(n, kThreads), kThreads, 0, stream>>>(call, n);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

template <typename Op, typename T>
void launch_strided(
    at::TensorIteratorBase& iter, const Call& told, const OnDevice<Op, T>& call, bool with_casts) {
  constexpr int most = OnDevice<Op, T>::most;
  const std::array<int64_t, at::kDimVectorStaticSize * 8> nowhere{}; // of what is not there
  std::array<const int64_t*, most> strides;
  for (int i = 0; i < most; ++i) {
    const int results = static_cast<int>(Op::results);
    const int operand = i < results ? told.results[i] : told.inputs[i - results];
    strides[i] = operand >= 0 ? iter.strides(operand).data() : nowhere.data();
  }
  const OffsetCalculator<most> offsets(
      iter.ndim(), iter.shape().data(), const_cast<const int64_t**>(strides.data()));
  const auto n = static_cast<uint32_t>(iter.numel());
  const auto stream = at::cuda::getCurrentCUDAStream();
  if (with_casts) {
    strided_kernel<Op, T, true><<<blocks_for(n, kThreads), kThreads, 0, stream>>>(call, offsets, n);
  } else {
    strided_kernel<Op, T, false>
        <<<blocks_for(n, kThreads), kThreads, 0, stream>>>(call, offsets, n);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

template <typename Op, typename T>
void launch(at::TensorIteratorBase& iter, const Call& told) {
  const OnDevice<Op, T> call = on_device<Op, T>(iter, told);
  const bool with_casts = casts(call);
  bool is_dense = !with_casts && iter.ndim() <= 1;
  for (int i = 0; is_dense && iter.ndim() == 1 && i < told.operands; ++i) {
    is_dense = iter.is_cpu_scalar(i) || iter.strides(i)[0] == sizeof(T);
  }
  if (is_dense) {
    launch_dense(call, iter.numel());
  } else {
    launch_strided(iter, told, call, with_casts);
  }
}

template <typename Op, c10::ScalarType... dtypes>
void launch(at::TensorIteratorBase& iter, const Call& told, Types<dtypes...> /*of*/) {
  const c10::ScalarType dtype = iter.common_dtype();
  const bool is_found =
      ((dtype == dtypes ? (launch<Op, c10::impl::ScalarTypeToCPPTypeT<dtypes>>(iter, told), true)
                        : false) ||
       ...);
  if (!is_found) {
    refuse(Op::name, dtype);
  }
}

template <typename Op>
void run_on_cuda(
    at::TensorIteratorBase& iter, const Arguments& arguments, at::ArrayRef<bool> wanted) {
  if (iter.numel() == 0) {
    return;
  }
  if (!iter.can_use_32bit_indexing()) {
    for (auto& piece : iter.with_32bit_indexing()) {
      run_on_cuda<Op>(piece, arguments, wanted);
    }
    return;
  }
  const c10::DeviceGuard guard(iter.device(0)); // the first tensor may be a number of the CPU
  const Told told(expression<Op>(), arguments, wanted, iter.ntensors());
  launch<Op>(iter, told.call, typename Op::Types());
}

template <typename Op>
Results new_on_cuda(
    const ElementExpression& op, const Arguments& arguments, at::ArrayRef<bool> wanted) {
  return new_results(
      op, arguments, wanted, [&](at::TensorIteratorBase& iter, const Arguments& own) {
        run_on_cuda<Op>(iter, own, wanted);
      });
}

/// Fills the result of an iterator, from a new tensor where it would be rounded in between.
template <typename Op>
void write_on_cuda(
    const ElementExpression& op, at::TensorIteratorBase& iter, const Arguments& arguments) {
  const bool wanted[] = {true};
  if (computed_in(op, arguments) == dtype_of(op.common, arguments)) {
    run_on_cuda<Op>(iter, arguments, wanted);
  } else {
    iter.output(0).copy_(new_on_cuda<Op>(op, arguments, wanted)[0]);
  }
}

} // namespace fused
} // namespace v1
} // namespace torchext
