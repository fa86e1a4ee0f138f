// SPDX-License-Identifier: BSD-3-Clause
//
// The loops of expressions on the CPU, for the instruction set that the file is compiled for. All
// floats go through the same vectors, those of strided operands and the last few too: what is computed
// of an element does not depend on where it lies. Integers and complex numbers, and floats where there
// are no vectors in hardware, are computed one by one, dense ones in loops for the compiler's vectors.
#pragma once

#include <torchext/fused/values.h>
#include <torchext/fused/vectors.h>

#include <ATen/OpMathType.h>
#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/Load.h>

#include <algorithm>
#include <type_traits>

namespace torchext {
inline namespace v1 {
namespace fused {
// As ATen's vectors: of several files that are linked together each has its own.
inline namespace CPU_CAPABILITY {

/// How elements of type T are computed with: `count` values of type V of `size` elements together.
template <typename T>
struct Blocks {
  using V = at::opmath_type<T>;
  static constexpr int count = 1;
  static constexpr int64_t size = 1;

  static TORCHEXT_ALWAYS_INLINE void load(const T* from, int64_t /*n*/, V* values) {
    values[0] = static_cast<V>(*from);
  }

  static TORCHEXT_ALWAYS_INLINE void store(T* to, int64_t /*n*/, const V* values) {
    *to = static_cast<T>(values[0]);
  }
};

// Without vectors in hardware ATen's are arrays, which compile slowly and run no faster.
#if !defined(CPU_CAPABILITY_DEFAULT) || !(defined(__x86_64__) || defined(_M_X64))

template <typename T>
struct VectorBlocks {
  using V = at::vec::Vectorized<T>;
  static constexpr int count = 2;
  static constexpr int64_t lanes = V::size(), size = 2 * lanes;

  static TORCHEXT_ALWAYS_INLINE void load(const T* from, int64_t n, V* values) {
    values[0] = n >= lanes ? V::loadu(from) : V::loadu(from, n);
    values[1] = n == size ? V::loadu(from + lanes)
                          : V::loadu(from + lanes, std::max<int64_t>(n - lanes, 0));
  }

  static TORCHEXT_ALWAYS_INLINE void store(T* to, int64_t n, const V* values) {
    if (n == size) {
      values[0].store(to);
      values[1].store(to + lanes);
      return;
    }
    values[0].store(to, static_cast<int>(std::min(n, lanes)));
    if (n > lanes) {
      values[1].store(to + lanes, static_cast<int>(n - lanes));
    }
  }
};

template <>
struct Blocks<float> : VectorBlocks<float> {};

template <>
struct Blocks<double> : VectorBlocks<double> {};

/// Of 16-bit floats one vector is two of float, in which they are computed.
template <typename T>
struct HalfBlocks {
  using V = at::vec::Vectorized<float>;
  using Stored = at::vec::Vectorized<T>;
  static constexpr int count = 2;
  static constexpr int64_t size = Stored::size();

  static TORCHEXT_ALWAYS_INLINE void load(const T* from, int64_t n, V* values) {
    const Stored stored =
        n == size ? Stored::loadu(from) : Stored::loadu(from, static_cast<int>(n));
    const auto [first, second] = at::vec::convert_to_float<T>(stored);
    values[0] = first;
    values[1] = second;
  }

  static TORCHEXT_ALWAYS_INLINE void store(T* to, int64_t n, const V* values) {
    const Stored stored = at::vec::convert_from_float<T>(values[0], values[1]);
    if (n == size) {
      stored.store(to);
    } else {
      stored.store(to, static_cast<int>(n));
    }
  }
};

template <>
struct Blocks<c10::Half> : HalfBlocks<c10::Half> {};

template <>
struct Blocks<c10::BFloat16> : HalfBlocks<c10::BFloat16> {};

#endif

/// An expression as a function of its own, which loops that gain nothing by its code share.
template <typename Op, typename V>
C10_NOINLINE void compute_apart(const Given<V>& given, V* results) {
  Op::template compute<V>(given, results);
}

/// What a call of an expression is told, as values of type V.
template <typename Op, typename V>
struct Known {
  explicit Known(const Call& call) {
    for (size_t i = 0; i < Op::inputs; ++i) {
      input_of[i] = call.inputs[i];
      has[i] = call.inputs[i] >= 0;
    }
    std::copy(call.conditions, call.conditions + Op::conditions, has + Op::inputs);
    std::copy_n(call.reals, reals_of<Op>(), has + Op::inputs + Op::conditions);
    for (size_t i = 0; i < Op::results; ++i) {
      result_of[i] = call.results[i];
      wanted[i] = call.results[i] >= 0;
    }
    for (size_t i = 0; i < Op::numbers; ++i) {
      numbers[i] = value_of<V>(call.numbers[i]);
    }
  }

  /// Whether all operands that there are have elements of this width one behind another.
  bool are_dense(const int64_t* strides, int64_t width) const {
    bool found = true;
    for (size_t i = 0; i < Op::inputs; ++i) {
      found = found && (!has[i] || strides[input_of[i]] == width);
    }
    for (size_t i = 0; i < Op::results; ++i) {
      found = found && (!wanted[i] || strides[result_of[i]] == width);
    }
    return found;
  }

  V numbers[Op::numbers + 1] = {};
  bool has[Op::inputs + Op::conditions + reals_of<Op>() + 1] = {};
  bool wanted[Op::results];
  int8_t input_of[Op::inputs + 1];
  int8_t result_of[Op::results];
};

/// One call of an expression over elements of type T, which are computed in vectors.
template <typename Op, typename T>
struct Elements : Known<Op, typename Blocks<T>::V> {
  using B = Blocks<T>;
  using V = typename B::V;
  using Known<Op, V>::has, Known<Op, V>::wanted, Known<Op, V>::numbers;
  using Known<Op, V>::input_of, Known<Op, V>::result_of;
  static constexpr int64_t width = sizeof(T);

  /// The values of one block; arrays of nothing are none in C++.
  struct Block {
    V inputs[B::count][Op::inputs + 1];
    V results[B::count][Op::results];
  };

  explicit Elements(const Call& call) : Known<Op, V>(call) {}

  TORCHEXT_ALWAYS_INLINE void load(Block& block, size_t i, const char* from, int64_t n) const {
    V values[B::count];
    B::load(reinterpret_cast<const T*>(from), n, values);
    for (int k = 0; k < B::count; ++k) {
      block.inputs[k][i] = values[k];
    }
  }

  TORCHEXT_ALWAYS_INLINE void store(const Block& block, size_t i, char* to, int64_t n) const {
    V values[B::count];
    for (int k = 0; k < B::count; ++k) {
      values[k] = block.results[k][i];
    }
    B::store(reinterpret_cast<T*>(to), n, values);
  }

  TORCHEXT_ALWAYS_INLINE void compute(Block& block) const {
    for (int k = 0; k < B::count; ++k) {
      Op::template compute<V>(Given<V>{block.inputs[k], numbers, has, wanted}, block.results[k]);
    }
  }

  void compute_apart(Block& block) const {
    for (int k = 0; k < B::count; ++k) {
      fused::compute_apart<Op, V>({block.inputs[k], numbers, has, wanted}, block.results[k]);
    }
  }

  /// Of an operand that is missing: any value, which nothing reads.
  TORCHEXT_ALWAYS_INLINE void fill_missing(Block& block) const {
    for (size_t i = 0; i < Op::inputs; ++i) {
      for (int k = 0; k < B::count && !has[i]; ++k) {
        block.inputs[k][i] = Primitives<V>::number(Op::defaults[i]);
      }
    }
  }

  void load_strided(Block& block, size_t i, const char* from, int64_t stride, int64_t n) const {
    T buffer[B::size];
    for (int64_t j = 0; j < B::size; ++j) {
      buffer[j] = *reinterpret_cast<const T*>(from + (j < n ? j * stride : 0));
    }
    load(block, i, reinterpret_cast<const char*>(buffer), B::size);
  }

  void store_strided(const Block& block, size_t i, char* to, int64_t stride, int64_t n) const {
    T buffer[B::size];
    store(block, i, reinterpret_cast<char*>(buffer), B::size);
    for (int64_t j = 0; j < n; ++j) {
      *reinterpret_cast<T*>(to + j * stride) = buffer[j];
    }
  }

  /// A row in which all operands are dense, but for its last elements: how many are done.
  int64_t dense_row(char* const* data, int64_t size) const {
    const char* from[Op::inputs + 1];
    char* to[Op::results];
    for (size_t i = 0; i < Op::inputs; ++i) {
      from[i] = has[i] ? data[input_of[i]] : nullptr;
    }
    for (size_t i = 0; i < Op::results; ++i) {
      to[i] = wanted[i] ? data[result_of[i]] : nullptr;
    }
    int64_t done = 0;
    for (; done + B::size <= size; done += B::size) {
      Block block;
      fill_missing(block);
      for (size_t i = 0; i < Op::inputs; ++i) {
        if (has[i]) {
          load(block, i, from[i] + done * width, B::size);
        }
      }
      compute(block);
      for (size_t i = 0; i < Op::results; ++i) {
        if (wanted[i]) {
          store(block, i, to[i] + done * width, B::size);
        }
      }
    }
    return done;
  }

  /// A row whose operands have any strides: one that is the same everywhere is read once.
  void any_row(char* const* data, const int64_t* strides, int64_t begin, int64_t size) const {
    Block block;
    fill_missing(block);
    for (size_t i = 0; i < Op::inputs; ++i) {
      if (has[i] && strides[input_of[i]] == 0) {
        load_strided(block, i, data[input_of[i]], 0, B::size);
      }
    }
    for (int64_t done = begin; done < size; done += B::size) {
      const int64_t n = std::min<int64_t>(B::size, size - done);
      for (size_t i = 0; i < Op::inputs; ++i) {
        const int64_t stride = has[i] ? strides[input_of[i]] : 0;
        if (stride == width) {
          load(block, i, data[input_of[i]] + done * width, n);
        } else if (stride != 0) {
          load_strided(block, i, data[input_of[i]] + done * stride, stride, n);
        }
      }
      compute_apart(block);
      for (size_t i = 0; i < Op::results; ++i) {
        if (wanted[i]) {
          const int64_t stride = strides[result_of[i]];
          char* to = data[result_of[i]] + done * stride;
          stride == width ? store(block, i, to, n) : store_strided(block, i, to, stride, n);
        }
      }
    }
  }

  void row(char* const* data, const int64_t* strides, int64_t size, bool are_dense) const {
    const int64_t done = are_dense ? dense_row(data, size) : 0;
    if (done < size) {
      any_row(data, strides, done, size);
    }
  }
};

#if defined(__clang__) // which looks for overlaps itself
#define TORCHEXT_INDEPENDENT
#else
#define TORCHEXT_INDEPENDENT _Pragma("GCC ivdep")
#endif

/// One call over elements of a type that ATen has no vectors for, or none that help: the compiler
/// makes them of those that are dense.
template <typename Op, typename T>
struct SingleElements : Known<Op, at::opmath_type<T>> {
  using V = at::opmath_type<T>;

  explicit SingleElements(const Call& call) : Known<Op, V>(call) {
    is_complete = std::all_of(this->has, this->has + Op::inputs, [](bool has) { return has; }) &&
                  std::all_of(this->wanted, this->wanted + Op::results, [](bool is) { return is; });
  }

  void row(char* const* data, const int64_t* strides, int64_t size, bool are_dense) const {
    if (are_dense && is_complete) {
      run</*dense=*/true>(data, strides, size);
    } else {
      run</*dense=*/false>(data, strides, size);
    }
  }

  /// Every operand is that of its own place, so that elements do not depend on each other.
  template <bool dense>
  void run(char* const* data, const int64_t* strides, int64_t size) const {
    const Known<Op, V> known = *this; // which no store changes
    const char* from[Op::inputs + 1];
    char* to[Op::results];
    int64_t from_stride[Op::inputs + 1], to_stride[Op::results];
    bool has[sizeof(known.has)], wanted[Op::results];
    std::copy(known.has, known.has + sizeof(known.has), has);
    for (size_t i = 0; i < Op::inputs; ++i) {
      has[i] = dense || known.has[i];
      from[i] = has[i] ? data[known.input_of[i]] : nullptr;
      from_stride[i] = dense ? sizeof(T) : has[i] ? strides[known.input_of[i]] : 0;
    }
    for (size_t i = 0; i < Op::results; ++i) {
      wanted[i] = dense || known.wanted[i];
      to[i] = wanted[i] ? data[known.result_of[i]] : nullptr;
      to_stride[i] = dense ? sizeof(T) : wanted[i] ? strides[known.result_of[i]] : 0;
    }
    TORCHEXT_INDEPENDENT
    for (int64_t j = 0; j < size; ++j) {
      V inputs[Op::inputs + 1], results[Op::results];
      for (size_t i = 0; i < Op::inputs; ++i) {
        const char* const at = from[i] + j * from_stride[i];
        inputs[i] = has[i] ? loaded(reinterpret_cast<const T*>(at))
                           : Primitives<V>::number(Op::defaults[i]);
      }
      const Given<V> given{inputs, known.numbers, has, wanted};
      if constexpr (dense) {
        Op::template compute<V>(given, results);
      } else {
        fused::compute_apart<Op, V>(given, results);
      }
      for (size_t i = 0; i < Op::results; ++i) {
        if (wanted[i]) {
          store(reinterpret_cast<T*>(to[i] + j * to_stride[i]), results[i]);
        }
      }
    }
  }

  /// Of a complex number each part, so that the compiler sees two floats.
  static TORCHEXT_ALWAYS_INLINE V loaded(const T* from) {
    if constexpr (Primitives<V>::is_complex) {
      const auto* const parts =
          reinterpret_cast<const typename c10::scalar_value_type<T>::type*>(from);
      using Part = typename V::value_type;
      return V(static_cast<Part>(parts[0]), static_cast<Part>(parts[1]));
    } else {
      return static_cast<V>(c10::load(from)); // of a bool that is another byte than 0 and 1 too
    }
  }

  static TORCHEXT_ALWAYS_INLINE void store(T* to, const V& value) {
    if constexpr (Primitives<V>::is_complex) {
      using Part = typename c10::scalar_value_type<T>::type;
      auto* const parts = reinterpret_cast<Part*>(to);
      parts[0] = static_cast<Part>(value.real());
      parts[1] = static_cast<Part>(value.imag());
    } else {
      *to = static_cast<T>(value);
    }
  }

  bool is_complete;
};

#undef TORCHEXT_INDEPENDENT

template <typename Op, typename T>
void loop(const Call& call, char** data, const int64_t* strides, int64_t size, int64_t rows) {
  using Own = std::conditional_t<Blocks<T>::size == 1, SingleElements<Op, T>, Elements<Op, T>>;
  const Own elements(call);
  constexpr size_t most = Op::inputs + Op::results + 1; // and a number that decides on the dtype
  char* at[most];
  std::copy(data, data + call.operands, at);
  const bool are_dense = elements.are_dense(strides, sizeof(T));
  for (int64_t row = 0; row < rows; ++row) {
    elements.row(at, strides, size, are_dense);
    for (int i = 0; i < call.operands; ++i) {
      at[i] += strides[call.operands + i];
    }
  }
}

template <typename Op, c10::ScalarType... dtypes>
constexpr Loops loops(Types<dtypes...> /*of*/) {
  Loops found;
  ((found.of[static_cast<size_t>(dtypes)] = &loop<Op, c10::impl::ScalarTypeToCPPTypeT<dtypes>>),
   ...);
  return found;
}

/// The loops of an expression, of the dtypes that it is computed in.
template <typename Op>
constexpr Loops loops() {
  return loops<Op>(typename Op::Types());
}

} // namespace CPU_CAPABILITY
} // namespace fused
} // namespace v1
} // namespace torchext
