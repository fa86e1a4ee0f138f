// SPDX-License-Identifier: BSD-3-Clause
//
// The loops of expressions of rows on the CPU, for the instruction set that the file is compiled for.
// A row is gone over as often as its reductions need; what takes long to compute is kept meanwhile,
// in the precision that is computed in. Sums are made of parts, about as many as each has blocks, so
// that their error grows slowly.
#pragma once

#include <c10/util/TypeCast.h>
#include <torchext/fused/cpu_loops.h>
#include <torchext/fused/reduce.h>

#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace fused {
inline namespace CPU_CAPABILITY {

/// The parts of a vector.
template <typename V>
struct Lanes {
  using S = V;
  static constexpr int64_t count = 1;

  static TORCHEXT_ALWAYS_INLINE V load(const S* from) {
    return *from;
  }
  static TORCHEXT_ALWAYS_INLINE void store(V value, S* to) {
    *to = value;
  }
  /// The first n lanes of a value, and another one in the others.
  static TORCHEXT_ALWAYS_INLINE V first(V value, V other, int64_t n) {
    return n > 0 ? value : other;
  }
  static TORCHEXT_ALWAYS_INLINE V positions(int64_t from) {
    return static_cast<V>(from);
  }
  template <Reduce how>
  static TORCHEXT_ALWAYS_INLINE V across(V value) {
    return value;
  }
};

template <typename T>
struct Lanes<at::vec::Vectorized<T>> {
  using V = at::vec::Vectorized<T>;
  using S = T;
  static constexpr int64_t count = V::size();

  static TORCHEXT_ALWAYS_INLINE V load(const S* from) {
    return V::loadu(from);
  }
  static TORCHEXT_ALWAYS_INLINE void store(V value, S* to) {
    value.store(to);
  }
  static TORCHEXT_ALWAYS_INLINE V first(V value, V other, int64_t n) {
    return n >= count ? value : n <= 0 ? other : V::set(other, value, n);
  }
  static TORCHEXT_ALWAYS_INLINE V positions(int64_t from) {
    return V::arange(static_cast<T>(from), static_cast<T>(1));
  }
  template <Reduce how>
  static TORCHEXT_ALWAYS_INLINE T across(V value) {
    if constexpr (std::is_same_v<T, float>) {
      return at::vec::vec_reduce_all<T>([](V& a, V& b) { return reduced<how>(a, b); }, value);
    }
    T found[count];
    value.store(found);
    for (int64_t size = count / 2; size > 0; size /= 2) {
      for (int64_t i = 0; i < size; ++i) {
        found[i] = reduced<how>(found[i], found[i + size]);
      }
    }
    return found[0];
  }
};

/// One call of an expression over rows of elements of type T.
template <typename Op, typename T>
class Rows {
 public:
  using B = Blocks<T>;
  using V = typename B::V;
  using L = Lanes<V>;
  using S = typename L::S; // which numbers of rows are computed in

  explicit Rows(const RowCall& call) : call_(call) {
    for (size_t i = 0; i < Op::inputs; ++i) {
      has_[i] = call.inputs[i] != kMissing;
    }
    std::copy(call.conditions, call.conditions + Op::conditions, has_ + Op::inputs);
    for (size_t i = 0; i < Op::results; ++i) {
      wanted_[i] = call.results[i] != kMissing;
    }
    for (size_t i = 0; i < Op::numbers; ++i) {
      numbers_[i] = value_of<S>(call.numbers[i]);
      vectors_[i] = Primitives<V>::number(numbers_[i]);
    }
    const int64_t blocks = (call.length + B::size - 1) / B::size;
    kept_.resize(Op::kept * blocks * B::size);
  }

  void row(char* const* data) {
    data_ = data;
    if constexpr (Op::length_slot >= 0) {
      of_row_[Op::length_slot] = static_cast<S>(call_.length);
    }
    for (size_t i = 0; i < Op::inputs; ++i) {
      if (Op::slots[i] >= 0) {
        of_row_[Op::slots[i]] = !has_[i]               ? static_cast<S>(Op::defaults[i])
                                : call_.is_integral[i] ? integer(i)
                                                       : static_cast<S>(number(i));
      }
    }
    all_passes(std::make_index_sequence<Op::passes>());
    Op::template of_row<S>(Pass<Op::passes>(), *this, of_row_, holds_);
    store_numbers();
  }

  // What the numbers of a row are computed of.
  const S* numbers = numbers_;
  const S* numbers_of_row = of_row_;
  const bool* holds = holds_;
  const bool* has = has_;

  /// The element of an input that an index chooses; any number where one of them is missing.
  S element(size_t input, size_t of_index) const {
    if (!has_[input] || !has_[of_index]) {
      return 0;
    }
    const int64_t chosen = index(of_index);
    TORCH_CHECK_INDEX(
        chosen >= 0 && chosen < call_.length,
        call_.name,
        ": ",
        call_.input_names[of_index],
        " has ",
        chosen,
        ", and rows have ",
        call_.length,
        " elements");
    const char* from = data_[call_.inputs[input]];
    return static_cast<S>(
        *reinterpret_cast<const T*>(from + chosen * call_.strides[call_.inputs[input]]));
  }

 private:
  int64_t index(size_t i) const {
    return *reinterpret_cast<const int64_t*>(data_[call_.inputs[i]]);
  }

  /// An integer as a number that is computed with, and compared.
  S integer(size_t i) const {
    const int64_t found = index(i);
    TORCH_CHECK_NOT_IMPLEMENTED(
        is_exact<S>(found),
        call_.name,
        ": ",
        call_.input_names[i],
        " has ",
        found,
        ", which is no ",
        c10::CppTypeToScalarType<S>::value,
        ", in which it is computed");
    return static_cast<S>(found);
  }

  T number(size_t i) const {
    return *reinterpret_cast<const T*>(data_[call_.inputs[i]]);
  }

  template <size_t... index>
  TORCHEXT_ALWAYS_INLINE void all_passes(std::index_sequence<index...> /*of*/) {
    (pass<index>(std::make_index_sequence<Op::reductions[index]>()), ...);
  }

  /// Where the operands of a pass lie, which compilers would look up again for each block: what is
  /// stored might change it.
  struct Places {
    const char* from[Op::inputs + 1]; // null: all elements are `same`
    V same[Op::inputs + 1];
    char* to[Op::results]; // null: it is not wanted, or summed
  };

  /// The values of one block, in registers.
  template <size_t count>
  struct Block {
    V inputs[B::count][Op::inputs + 1];
    V kept[B::count][Op::kept + 1];
    V terms[B::count][count + 1];
    V results[B::count][Op::results];
  };

  template <size_t index, size_t... term>
  TORCHEXT_ALWAYS_INLINE void pass(std::index_sequence<term...> terms) {
    Op::template of_row<S>(Pass<index>(), *this, of_row_, holds_);
    for (size_t i = 0; i < Op::numbers_used[index]; ++i) {
      const size_t used = Op::used_numbers[index][i];
      row_vectors_[used] = Primitives<V>::number(of_row_[used]);
    }
    whole<index>(places<index>(), terms);
  }

  /// All blocks of a row, in parts whose sums are summed.
  template <size_t index, size_t... term>
  TORCHEXT_ALWAYS_INLINE void whole(const Places& places, std::index_sequence<term...> /*of*/) {
    constexpr size_t count = sizeof...(term);
    [[maybe_unused]] V part[B::count][count + 1], total[B::count][count + 1];
    for (int k = 0; k < B::count; ++k) {
      ((total[k][term] = part[k][term] = neutral_of<index, term>()), ...);
    }
    const int64_t blocks = call_.length / B::size;
    int64_t in_part = 64;
    while (in_part * in_part < blocks) {
      in_part *= 2;
    }
    for (int64_t done = 0; done < blocks;) {
      const int64_t end = count > 0 ? std::min(done + in_part, blocks) : blocks;
      for (; done < end; ++done) {
        Block<count> block;
        elements<index>(places, block, done * B::size, B::size);
        for (int k = 0; k < B::count; ++k) {
          ((part[k][term] =
                reduced<Op::reduction[index][term].how>(part[k][term], block.terms[k][term])),
           ...);
        }
      }
      for (int k = 0; k < B::count; ++k) {
        ((total[k][term] = reduced<Op::reduction[index][term].how>(total[k][term], part[k][term]),
          part[k][term] = neutral_of<index, term>()),
         ...);
      }
    }
    if (const int64_t left = call_.length - blocks * B::size; left > 0) {
      Block<count> block;
      elements<index>(places, block, blocks * B::size, left);
      for (int k = 0; k < B::count; ++k) {
        ((total[k][term] = reduced<Op::reduction[index][term].how>(
              total[k][term],
              L::first(block.terms[k][term], neutral_of<index, term>(), left - k * L::count))),
         ...);
      }
    }
    ((of_row_[Op::reduction[index][term].slot] =
          across<Op::reduction[index][term].how>(total, term)),
     ...);
  }

  template <size_t index, size_t term>
  static V neutral_of() {
    return Primitives<V>::number(neutral<Op::reduction[index][term].how, S>());
  }

  template <Reduce how, size_t count>
  static TORCHEXT_ALWAYS_INLINE S across(const V (&totals)[B::count][count], size_t term) {
    V found = totals[0][term];
    for (int k = 1; k < B::count; ++k) {
      found = reduced<how>(found, totals[k][term]);
    }
    return L::template across<how>(found);
  }

  template <size_t index>
  TORCHEXT_ALWAYS_INLINE Places places() const {
    Places found;
    for (size_t i = 0; i < Op::results; ++i) {
      found.to[i] = call_.results[i] >= 0 ? data_[call_.results[i]] : nullptr;
    }
    for (size_t i = 0; i < Op::inputs; ++i) {
      found.from[i] = nullptr;
      if (Op::reads[index][i] && has_[i] && stride(i) != 0) {
        found.from[i] = data_[call_.inputs[i]];
      } else if (Op::reads[index][i]) {
        const S same = has_[i] ? static_cast<S>(number(i)) : static_cast<S>(Op::defaults[i]);
        found.same[i] = Primitives<V>::number(same);
      }
    }
    return found;
  }

  int64_t stride(size_t input) const {
    return call_.strides[call_.inputs[input]];
  }

  /// What a pass computes of the elements from `done` on.
  template <size_t index, typename Block>
  TORCHEXT_ALWAYS_INLINE void elements(
      const Places& places, Block& block, int64_t done, int64_t n) {
    for (size_t i = 0; i < Op::inputs; ++i) {
      if (Op::reads[index][i]) {
        V values[B::count];
        if (places.from[i] != nullptr) {
          B::load(reinterpret_cast<const T*>(places.from[i]) + done, n, values);
        } else {
          std::fill(values, values + B::count, places.same[i]);
        }
        for (int k = 0; k < B::count; ++k) {
          block.inputs[k][i] = values[k];
        }
      }
    }
    for (int k = 0; k < B::count; ++k) {
      for (size_t i = 0; i < Op::kept; ++i) {
        if (Op::uses_kept[index][i]) {
          block.kept[k][i] = L::load(kept_at(i, done) + k * L::count);
        }
      }
      const V position = L::positions(done + k * L::count);
      const GivenElements<V> given{
          {block.inputs[k], vectors_, has_, wanted_},
          row_vectors_,
          holds_,
          block.kept[k],
          position};
      Op::template elements<V>(
          Pass<index>(), given, block.kept[k], block.terms[k], block.results[k]);
      for (size_t i = 0; i < Op::kept; ++i) {
        if (Op::keeps[index][i]) {
          L::store(block.kept[k][i], kept_at(i, done) + k * L::count);
        }
      }
    }
    store<index>(places, block, done, n, std::make_index_sequence<Op::results>());
  }

  template <size_t index, typename Block, size_t... result>
  TORCHEXT_ALWAYS_INLINE void store(
      const Places& places,
      const Block& block,
      int64_t done,
      int64_t n,
      std::index_sequence<result...> /*of*/) {
    (store_one<index, result>(places, block, done, n), ...);
  }

  template <size_t index, size_t i, typename Block>
  TORCHEXT_ALWAYS_INLINE void store_one(
      const Places& places, const Block& block, int64_t done, int64_t n) {
    if constexpr (Op::makes[index][i]) {
      V values[B::count];
      for (int k = 0; k < B::count; ++k) {
        values[k] = block.results[k][i];
      }
      if constexpr (Op::sizes[i] >= 0) {
        if (call_.results[i] == kSummed) {
          add(i, done, n, values);
          return;
        }
      }
      if (places.to[i] == nullptr) {
        return;
      }
      using R = Stored<Op, T, i>;
      R* const to = reinterpret_cast<R*>(places.to[i]) + done;
      if constexpr (std::is_same_v<R, T>) {
        B::store(to, n, values);
      } else {
        S lanes[B::size];
        for (int k = 0; k < B::count; ++k) {
          L::store(values[k], lanes + k * L::count);
        }
        for (int64_t j = 0; j < n; ++j) {
          to[j] = c10::convert<R>(lanes[j]);
        }
      }
    }
  }

  /// Adds elements to those of the rows before.
  TORCHEXT_ALWAYS_INLINE void add(size_t i, int64_t done, int64_t n, const V* values) {
    S* const to = reinterpret_cast<S*>(call_.sums[i]) + call_.part * call_.length + done;
    if (n == B::size) {
      for (int k = 0; k < B::count; ++k) {
        S* const own = to + k * L::count;
        L::store(Primitives<V>::add(L::load(own), values[k]), own);
      }
      return;
    }
    S lanes[B::size];
    for (int k = 0; k < B::count; ++k) {
      L::store(values[k], lanes + k * L::count);
    }
    for (int64_t j = 0; j < n; ++j) {
      to[j] += lanes[j];
    }
  }

  S* kept_at(size_t i, int64_t done) {
    return kept_.data() + i * (kept_.size() / std::max<size_t>(Op::kept, 1)) + done;
  }

  /// Rows have one number of these results, in the precision that is computed in.
  void store_numbers() {
    S found[Op::results];
    Op::template of_results<S>(*this, found);
    for (size_t i = 0; i < Op::results; ++i) {
      if (Op::row_results[i] && wanted_[i]) {
        *reinterpret_cast<S*>(data_[call_.results[i]]) = found[i];
      }
    }
  }

  const RowCall& call_;
  char* const* data_ = nullptr;
  S numbers_[Op::numbers + 1];
  V vectors_[Op::numbers + 1];
  S of_row_[Op::numbers_of_row + 1];
  V row_vectors_[Op::numbers_of_row + 1];
  bool holds_[Op::conditions_of_row + 1] = {};
  bool has_[Op::inputs + Op::conditions + 1];
  bool wanted_[Op::results];
  std::vector<S> kept_;
};

template <typename Op, typename T>
void row_loop(
    const RowCall& call, char** data, const int64_t* strides, int64_t size, int64_t rows) {
  Rows<Op, T> all(call);
  constexpr size_t most = Op::inputs + Op::results;
  char* at[most];
  for (int64_t j = 0; j < rows; ++j) {
    for (int i = 0; i < call.operands; ++i) {
      at[i] = data[i] + j * strides[call.operands + i];
    }
    for (int64_t k = 0; k < size; ++k) {
      all.row(at);
      for (int i = 0; i < call.operands; ++i) {
        at[i] += strides[i];
      }
    }
  }
}

template <typename Op, c10::ScalarType... dtypes>
constexpr RowLoops row_loops(Types<dtypes...> /*of*/) {
  RowLoops found;
  ((found.of[static_cast<size_t>(dtypes)] = &row_loop<Op, c10::impl::ScalarTypeToCPPTypeT<dtypes>>),
   ...);
  return found;
}

/// The loops of an expression of rows, of the dtypes that it is computed in.
template <typename Op>
constexpr RowLoops row_loops() {
  return row_loops<Op>(typename Op::Types());
}

} // namespace CPU_CAPABILITY
} // namespace fused
} // namespace v1
} // namespace torchext
