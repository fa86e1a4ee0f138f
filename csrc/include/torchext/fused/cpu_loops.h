// SPDX-License-Identifier: BSD-3-Clause
//
// The loops of expressions on the CPU, for the instruction set that the file is compiled for. All
// elements go through the same vectors, those of strided operands and the last few too: what is
// computed of an element does not depend on where it lies. Numbers that are no floats are computed
// one by one.
#pragma once

#include <torchext/fused/call.h>
#include <torchext/fused/vectors.h>

#include <ATen/OpMathType.h>
#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

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

  static C10_ALWAYS_INLINE void load(const T* from, int64_t /*n*/, V* values) {
    values[0] = static_cast<V>(*from);
  }

  static C10_ALWAYS_INLINE void store(T* to, int64_t /*n*/, const V* values) {
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

  static C10_ALWAYS_INLINE void load(const T* from, int64_t n, V* values) {
    values[0] = n >= lanes ? V::loadu(from) : V::loadu(from, n);
    values[1] = n == size ? V::loadu(from + lanes)
                          : V::loadu(from + lanes, std::max<int64_t>(n - lanes, 0));
  }

  static C10_ALWAYS_INLINE void store(T* to, int64_t n, const V* values) {
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

  static C10_ALWAYS_INLINE void load(const T* from, int64_t n, V* values) {
    const Stored stored =
        n == size ? Stored::loadu(from) : Stored::loadu(from, static_cast<int>(n));
    const auto [first, second] = at::vec::convert_to_float<T>(stored);
    values[0] = first;
    values[1] = second;
  }

  static C10_ALWAYS_INLINE void store(T* to, int64_t n, const V* values) {
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

/// One call of an expression over elements of type T.
template <typename Op, typename T>
struct Elements {
  using B = Blocks<T>;
  using V = typename B::V;
  static constexpr int64_t width = sizeof(T);

  /// The values of one block; arrays of nothing are none in C++.
  struct Block {
    V inputs[B::count][Op::inputs + 1];
    V results[B::count][Op::results];
  };

  explicit Elements(const Call& call) {
    for (size_t i = 0; i < Op::inputs; ++i) {
      input_of[i] = call.inputs[i];
      has[i] = call.inputs[i] >= 0;
    }
    std::copy(call.conditions, call.conditions + Op::conditions, has + Op::inputs);
    for (size_t i = 0; i < Op::results; ++i) {
      result_of[i] = call.results[i];
      wanted[i] = call.results[i] >= 0;
    }
    for (size_t i = 0; i < Op::numbers; ++i) {
      const Number& given = call.numbers[i];
      numbers[i] = given.is_integral ? Primitives<V>::number(given.integer)
                                     : Primitives<V>::number(given.real);
    }
  }

  C10_ALWAYS_INLINE void load(Block& block, size_t i, const char* from, int64_t n) const {
    V values[B::count];
    B::load(reinterpret_cast<const T*>(from), n, values);
    for (int k = 0; k < B::count; ++k) {
      block.inputs[k][i] = values[k];
    }
  }

  C10_ALWAYS_INLINE void store(const Block& block, size_t i, char* to, int64_t n) const {
    V values[B::count];
    for (int k = 0; k < B::count; ++k) {
      values[k] = block.results[k][i];
    }
    B::store(reinterpret_cast<T*>(to), n, values);
  }

  C10_ALWAYS_INLINE void compute(Block& block) const {
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
  C10_ALWAYS_INLINE void fill_missing(Block& block) const {
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

  bool are_dense(const int64_t* strides) const {
    bool found = true;
    for (size_t i = 0; i < Op::inputs; ++i) {
      found = found && (!has[i] || strides[input_of[i]] == width);
    }
    for (size_t i = 0; i < Op::results; ++i) {
      found = found && (!wanted[i] || strides[result_of[i]] == width);
    }
    return found;
  }

  V numbers[Op::numbers + 1];
  bool has[Op::inputs + Op::conditions + 1];
  bool wanted[Op::results];
  int8_t input_of[Op::inputs + 1];
  int8_t result_of[Op::results];
};

template <typename Op, typename T>
void loop(const Call& call, char** data, const int64_t* strides, int64_t size, int64_t rows) {
  const Elements<Op, T> elements(call);
  constexpr size_t most = Op::inputs + Op::results + 1; // and a number that decides on the dtype
  char* at[most];
  std::copy(data, data + call.operands, at);
  const bool are_dense = elements.are_dense(strides);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t done = are_dense ? elements.dense_row(at, size) : 0;
    if (done < size) {
      elements.any_row(at, strides, done, size);
    }
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
