# SPDX-License-Identifier: BSD-3-Clause
"""What follows from an expression, whole: entries, formulas, and the code of its kernels.

To accept a change after reading it: EXPECTTEST_ACCEPT=1 python -m pytest tests/codegen/test_derived_entries.py
"""

import contextlib
import io
import re
import tempfile
import unittest
from pathlib import Path

from expecttest import TestCase
from spec_runs import run

from codegen.__main__ import main

SPEC = """\
- func: gated(Tensor x, Tensor? gate, *, float slope=0.5, Scalar shift=0) -> Tensor
  forms: [gated.out]
  let:
    opened: 1 if gate is None else sigmoid(gate)
  pointwise: (x if x > 0 else (1 - slope) * x) * opened + shift
"""

ROWS = """\
- func: rms_norm(Tensor input, Tensor? weight=None, float eps=1e-6) -> Tensor
  rows: input * rsqrt(mean(input ** 2) + eps) * (1 if weight is None else weight)

- func: cross_entropy(Tensor input, Tensor target, int ignore_index=-100) -> Tensor
  rows: 0 if target == ignore_index else logsumexp(input) - input[target]

- func: silu_and_mul(Tensor input) -> Tensor
  rows: to(silu(input[:n // 2]) * input[n // 2:], bfloat16)
"""


def printed(*arguments: str) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        assert main([*arguments]) == 0
    return text.getvalue()


class DerivedEntries(TestCase):
    maxDiff = None

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "n.yaml"
        self.path.write_text(SPEC, encoding="utf-8")

    def generated(self, path: str, *more: str) -> str:
        out = str(self.folder / "out")
        arguments = ["--namespace", "golden", "--native-functions", str(self.path)]
        printed("gen", *arguments, *more, "--out", out)
        return Path(out, path).read_text(encoding="utf-8")

    def test_operators(self) -> None:
        self.assertExpectedInline(
            printed("expand", str(self.path)),
            """\
- func: gated(Tensor x, Tensor? gate, *, float slope=0.5, Scalar shift=0) -> Tensor
  structured_delegate: gated.out
  let:
    opened: 1 if gate is None else sigmoid(gate)
  pointwise: (x if x > 0 else (1 - slope) * x) * opened + shift

- func: gated.out(Tensor x, Tensor? gate, *, float slope=0.5, Scalar shift=0, Tensor(a!) out) -> Tensor(a!)
  structured: True

# What follows from expressions, of the lines that are named.

- func: gated_backward(Tensor grad_output, Tensor x, Tensor? gate, float slope, bool[2] output_mask) -> (Tensor, Tensor)  # n.yaml:1
  let:
    v0: grad_output * (1 if gate is None else sigmoid(gate))
  pointwise:
    - (v0 if x > 0 else 0) + (0 if x > 0 else v0) * (1 - slope)
    - 0 if gate is None else grad_output * (x if x > 0 else (1 - slope) * x) * (1 - sigmoid(gate)) * sigmoid(gate)
  doc: Gradients of ``gated`` for ``x``, ``gate``.

- func: gated_double_backward(Tensor? grad_x, Tensor? grad_gate, Tensor grad_output, Tensor x, Tensor? gate, float slope, bool[3] output_mask) -> (Tensor, Tensor, Tensor)  # n.yaml:1
  let:
    v0: grad_gate * sigmoid(gate)
    v1: 1 - sigmoid(gate)
    v2: x if x > 0 else (1 - slope) * x
    v3: (0 if x > 0 else grad_x * (1 - slope)) + (grad_x if x > 0 else 0)
    v4: v0 * v1 * grad_output
  pointwise:
    - (v0 * v1 * v2 if grad_gate is not None and gate is not None else 0) + (0 if grad_x is None else v3 * (1 if gate is None else sigmoid(gate)))
    - (v4 if x > 0 else 0) + (0 if x > 0 else v4) * (1 - slope) if grad_gate is not None and gate is not None else 0
    - ((grad_gate * (grad_output * v2 * v1) + -(v0 * (grad_output * v2)) if grad_gate is not None and gate is not None else 0) + (v3 * grad_output if grad_x is not None and gate is not None else 0)) * v1 * sigmoid(gate) if grad_gate is not None and gate is not None or grad_x is not None and gate is not None else 0
  doc: Gradients of ``gated_backward`` for ``grad_output``, ``x``, ``gate``.

- func: gated_jvp(Tensor? x_tangent, Tensor? gate_tangent, Tensor x, Tensor? gate, float slope) -> Tensor  # n.yaml:1
  pointwise: (0 if x_tangent is None else (x_tangent if x > 0 else x_tangent * (1 - slope)) * (1 if gate is None else sigmoid(gate))) + (gate_tangent * (1 - sigmoid(gate)) * sigmoid(gate) * (x if x > 0 else (1 - slope) * x) if gate_tangent is not None and gate is not None else 0) if x_tangent is not None or gate_tangent is not None and gate is not None else 0
  doc: Tangent of ``gated`` in the direction ``x_tangent``, ``gate_tangent``.
""",
        )

    def test_formulas(self) -> None:
        text = printed("expand", str(self.path), "--derivatives", "golden")
        self.assertExpectedInline(
            text,
            """\
# What follows from expressions, of the lines that are named.

- name: gated(Tensor x, Tensor? gate, *, float slope=0.5, Scalar shift=0) -> Tensor  # n.yaml:5
  x, gate: "grad.defined() ? golden::gated_backward(grad, x, gate, slope, grad_input_mask) : std::tuple<Tensor, Tensor>()"
  result: golden::gated_jvp(x_t_raw, gate_t_raw, x_p, gate_p, slope)

- name: gated_backward(Tensor grad_output, Tensor x, Tensor? gate, float slope, bool[2] output_mask) -> (Tensor, Tensor)  # n.yaml:5
  output_differentiability: [True, True]
  grad_output, x, gate: "grads[0].defined() || grads[1].defined() ? golden::gated_double_backward(grads[0], grads[1], grad_output, x, gate, slope, grad_input_mask) : std::tuple<Tensor, Tensor, Tensor>()"
  result0: "sum_of_defined(grad_output_t_raw.defined() ? std::get<0>(golden::gated_backward(grad_output_t_raw, x_p, gate_p, slope, {true, false})) : Tensor(), x_t_raw.defined() || gate_t_raw.defined() ? std::get<1>(golden::gated_double_backward(x_t_raw, gate_t_raw, grad_output_p, x_p, gate_p, slope, {false, true, false})) : Tensor())"
  result1: "sum_of_defined(grad_output_t_raw.defined() ? std::get<1>(golden::gated_backward(grad_output_t_raw, x_p, gate_p, slope, {false, true})) : Tensor(), x_t_raw.defined() || gate_t_raw.defined() ? std::get<2>(golden::gated_double_backward(x_t_raw, gate_t_raw, grad_output_p, x_p, gate_p, slope, {false, false, true})) : Tensor())"
""",
        )

    def test_expressions(self) -> None:
        self.assertExpectedInline(
            self.generated("include/golden/fused_0.h"),
            """\
// Generated by codegen.emit.fused from n.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#pragma once

#include <torchext/fused/rows.h>
#include <torchext/fused/values.h>

namespace torchext::generated::golden {
namespace expressions {

// n.yaml:1: gated_backward(Tensor grad_output, Tensor x, Tensor? gate, float slope, bool[2]
//     output_mask) -> (Tensor, Tensor)
//   (grad_output * (1 if gate is None else sigmoid(gate)) if x > 0 else 0) + (0 if x > 0 else
//     grad_output * (1 if gate is None else sigmoid(gate))) * (1 - slope)
//   0 if gate is None else grad_output * (x if x > 0 else (1 - slope) * x) * (1 - sigmoid(gate)) *
//     sigmoid(gate)
struct gated_backward {
  static constexpr auto name = "golden::gated_backward";
  static constexpr size_t inputs = 3, scalars = 1, numbers = 1;
  static constexpr size_t conditions = 0, results = 2, returns = 2;
  static constexpr const char* input_names[] = {"grad_output", "x", "gate"};
  static constexpr double defaults[] = {1, 1, 1};
  static constexpr ::torchext::fused::Rule common = {
      7, 0, ::torchext::fused::Category::kFloat, false};
  static constexpr ::torchext::fused::Rule rules[] = {
      {7, 0, ::torchext::fused::Category::kFloat, false},
      {7, 0, ::torchext::fused::Category::kFloat, false}};
  static constexpr std::array<::torchext::fused::Rule, 0> compared = {};
  static constexpr int64_t least_number = 0, largest_number = 1;
  static constexpr std::array<size_t, 0> exponents = {};
  static constexpr bool has_negative_power = false, has_rows = false;
  static constexpr bool computes_numbers = false;
  static constexpr bool takes_complex = false;
  using Types = ::torchext::fused::Types<
    c10::kHalf, c10::kBFloat16, c10::kFloat, c10::kDouble>;

  template <typename V>
  C10_HOST_DEVICE static void compute(const ::torchext::fused::Given<V>& given, V* results) {
    using F [[maybe_unused]] = ::torchext::fused::Functions<V>;
    const auto v0 = F::greater(given.inputs[1], F::number(int64_t(0)));
    const V v1 = F::sigmoid(given.inputs[2]);
    if (given.wanted[0]) {
      const V v2 = !given.has[2] ? F::number(int64_t(1)) : v1;
      const V v3 = F::multiply(given.inputs[0], v2);
      const V v4 = F::choose(v0, v3, F::number(int64_t(0)));
      const V v5 = F::choose(v0, F::number(int64_t(0)), v3);
      const V v6 = F::multiply(v5, given.numbers[0]);
      const V v7 = F::add(v4, v6);
      results[0] = v7;
    }
    if (given.wanted[1]) {
      const V v8 = F::multiply(given.numbers[0], given.inputs[1]);
      const V v9 = F::choose(v0, given.inputs[1], v8);
      const V v10 = F::multiply(given.inputs[0], v9);
      const V v11 = F::subtract(F::number(int64_t(1)), v1);
      const V v12 = F::multiply(v10, v11);
      const V v13 = F::multiply(v12, v1);
      const V v14 = !given.has[2] ? F::number(int64_t(0)) : v13;
      results[1] = v14;
    }
  }
};

// n.yaml:1: gated_double_backward(Tensor? grad_x, Tensor? grad_gate, Tensor grad_output, Tensor x,
//     Tensor? gate, float slope, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
//   (grad_gate * sigmoid(gate) * (1 - sigmoid(gate)) * (x if x > 0 else (1 - slope) * x) if
//     grad_gate is not None and gate is not None else 0) + (0 if grad_x is None else ((0 if x > 0
//     else grad_x * (1 - slope)) + (grad_x if x > 0 else 0)) * (1 if gate is None else
//     sigmoid(gate)))
//   (grad_gate * sigmoid(gate) * (1 - sigmoid(gate)) * grad_output if x > 0 else 0) + (0 if x > 0
//     else grad_gate * sigmoid(gate) * (1 - sigmoid(gate)) * grad_output) * (1 - slope) if
//     grad_gate is not None and gate is not None else 0
//   ((grad_gate * (grad_output * (x if x > 0 else (1 - slope) * x) * (1 - sigmoid(gate))) +
//     -(grad_gate * sigmoid(gate) * (grad_output * (x if x > 0 else (1 - slope) * x))) if grad_gate
//     is not None and gate is not None else 0) + (((0 if x > 0 else grad_x * (1 - slope)) + (grad_x
//     if x > 0 else 0)) * grad_output if grad_x is not None and gate is not None else 0)) * (1 -
//     sigmoid(gate)) * sigmoid(gate) if grad_gate is not None and gate is not None or grad_x is not
//     None and gate is not None else 0
struct gated_double_backward {
  static constexpr auto name = "golden::gated_double_backward";
  static constexpr size_t inputs = 5, scalars = 1, numbers = 1;
  static constexpr size_t conditions = 0, results = 3, returns = 3;
  static constexpr const char* input_names[] = {"grad_x", "grad_gate", "grad_output", "x", "gate"};
  static constexpr double defaults[] = {1, 1, 1, 1, 1};
  static constexpr ::torchext::fused::Rule common = {
      31, 0, ::torchext::fused::Category::kFloat, false};
  static constexpr ::torchext::fused::Rule rules[] = {
      {31, 0, ::torchext::fused::Category::kFloat, false},
      {31, 0, ::torchext::fused::Category::kFloat, false},
      {31, 0, ::torchext::fused::Category::kFloat, false}};
  static constexpr std::array<::torchext::fused::Rule, 0> compared = {};
  static constexpr int64_t least_number = 0, largest_number = 1;
  static constexpr std::array<size_t, 0> exponents = {};
  static constexpr bool has_negative_power = false, has_rows = false;
  static constexpr bool computes_numbers = false;
  static constexpr bool takes_complex = false;
  using Types = ::torchext::fused::Types<
    c10::kHalf, c10::kBFloat16, c10::kFloat, c10::kDouble>;

  template <typename V>
  C10_HOST_DEVICE static void compute(const ::torchext::fused::Given<V>& given, V* results) {
    using F [[maybe_unused]] = ::torchext::fused::Functions<V>;
    const V v0 = F::sigmoid(given.inputs[4]);
    const V v1 = F::multiply(given.inputs[1], v0);
    const V v2 = F::subtract(F::number(int64_t(1)), v0);
    const V v3 = F::multiply(v1, v2);
    const auto v4 = F::greater(given.inputs[3], F::number(int64_t(0)));
    const V v5 = F::multiply(given.numbers[0], given.inputs[3]);
    const V v6 = F::choose(v4, given.inputs[3], v5);
    const V v7 = F::multiply(given.inputs[0], given.numbers[0]);
    const V v8 = F::choose(v4, F::number(int64_t(0)), v7);
    const V v9 = F::choose(v4, given.inputs[0], F::number(int64_t(0)));
    const V v10 = F::add(v8, v9);
    if (given.wanted[0]) {
      const V v11 = F::multiply(v3, v6);
      const V v12 = (!(!given.has[1]) && !(!given.has[4])) ? v11 : F::number(int64_t(0));
      const V v13 = !given.has[4] ? F::number(int64_t(1)) : v0;
      const V v14 = F::multiply(v10, v13);
      const V v15 = !given.has[0] ? F::number(int64_t(0)) : v14;
      const V v16 = F::add(v12, v15);
      results[0] = v16;
    }
    if (given.wanted[1]) {
      const V v17 = F::multiply(v3, given.inputs[2]);
      const V v18 = F::choose(v4, v17, F::number(int64_t(0)));
      const V v19 = F::choose(v4, F::number(int64_t(0)), v17);
      const V v20 = F::multiply(v19, given.numbers[0]);
      const V v21 = F::add(v18, v20);
      const V v22 = (!(!given.has[1]) && !(!given.has[4])) ? v21 : F::number(int64_t(0));
      results[1] = v22;
    }
    if (given.wanted[2]) {
      const V v23 = F::multiply(given.inputs[2], v6);
      const V v24 = F::multiply(v23, v2);
      const V v25 = F::multiply(given.inputs[1], v24);
      const V v26 = F::multiply(v1, v23);
      const V v27 = F::negative(v26);
      const V v28 = F::add(v25, v27);
      const V v29 = (!(!given.has[1]) && !(!given.has[4])) ? v28 : F::number(int64_t(0));
      const V v30 = F::multiply(v10, given.inputs[2]);
      const V v31 = (!(!given.has[0]) && !(!given.has[4])) ? v30 : F::number(int64_t(0));
      const V v32 = F::add(v29, v31);
      const V v33 = F::multiply(v32, v2);
      const V v34 = F::multiply(v33, v0);
      const V v35 = ((!(!given.has[1]) && !(!given.has[4])) || (!(!given.has[0]) &&
          !(!given.has[4]))) ? v34 : F::number(int64_t(0));
      results[2] = v35;
    }
  }
};

// n.yaml:1: gated_jvp(Tensor? x_tangent, Tensor? gate_tangent, Tensor x, Tensor? gate, float slope)
//     -> Tensor
//   (0 if x_tangent is None else (x_tangent if x > 0 else x_tangent * (1 - slope)) * (1 if gate is
//     None else sigmoid(gate))) + (gate_tangent * (1 - sigmoid(gate)) * sigmoid(gate) * (x if x > 0
//     else (1 - slope) * x) if gate_tangent is not None and gate is not None else 0) if x_tangent
//     is not None or gate_tangent is not None and gate is not None else 0
struct gated_jvp {
  static constexpr auto name = "golden::gated_jvp";
  static constexpr size_t inputs = 4, scalars = 1, numbers = 1;
  static constexpr size_t conditions = 0, results = 1, returns = 1;
  static constexpr const char* input_names[] = {"x_tangent", "gate_tangent", "x", "gate"};
  static constexpr double defaults[] = {1, 1, 1, 1};
  static constexpr ::torchext::fused::Rule common = {
      15, 0, ::torchext::fused::Category::kFloat, false};
  static constexpr ::torchext::fused::Rule rules[] = {
      {15, 0, ::torchext::fused::Category::kFloat, false}};
  static constexpr std::array<::torchext::fused::Rule, 0> compared = {};
  static constexpr int64_t least_number = 0, largest_number = 1;
  static constexpr std::array<size_t, 0> exponents = {};
  static constexpr bool has_negative_power = false, has_rows = false;
  static constexpr bool computes_numbers = false;
  static constexpr bool takes_complex = false;
  using Types = ::torchext::fused::Types<
    c10::kHalf, c10::kBFloat16, c10::kFloat, c10::kDouble>;

  template <typename V>
  C10_HOST_DEVICE static void compute(const ::torchext::fused::Given<V>& given, V* results) {
    using F [[maybe_unused]] = ::torchext::fused::Functions<V>;
    const auto v0 = F::greater(given.inputs[2], F::number(int64_t(0)));
    const V v1 = F::multiply(given.inputs[0], given.numbers[0]);
    const V v2 = F::choose(v0, given.inputs[0], v1);
    const V v3 = F::sigmoid(given.inputs[3]);
    const V v4 = !given.has[3] ? F::number(int64_t(1)) : v3;
    const V v5 = F::multiply(v2, v4);
    const V v6 = !given.has[0] ? F::number(int64_t(0)) : v5;
    const V v7 = F::subtract(F::number(int64_t(1)), v3);
    const V v8 = F::multiply(given.inputs[1], v7);
    const V v9 = F::multiply(v8, v3);
    const V v10 = F::multiply(given.numbers[0], given.inputs[2]);
    const V v11 = F::choose(v0, given.inputs[2], v10);
    const V v12 = F::multiply(v9, v11);
    const V v13 = (!(!given.has[1]) && !(!given.has[3])) ? v12 : F::number(int64_t(0));
    const V v14 = F::add(v6, v13);
    const V v15 = (!(!given.has[0]) || (!(!given.has[1]) && !(!given.has[3]))) ? v14 :
        F::number(int64_t(0));
    results[0] = v15;
  }
};

// n.yaml:1: gated(Tensor x, Tensor? gate, *, float slope=0.5, Scalar shift=0) -> Tensor
//   (x if x > 0 else (1 - slope) * x) * (1 if gate is None else sigmoid(gate)) + shift
struct gated {
  static constexpr auto name = "golden::gated";
  static constexpr size_t inputs = 2, scalars = 2, numbers = 2;
  static constexpr size_t conditions = 0, results = 1, returns = 1;
  static constexpr const char* input_names[] = {"x", "gate"};
  static constexpr double defaults[] = {1, 1};
  static constexpr ::torchext::fused::Rule common = {
      3, 2, ::torchext::fused::Category::kFloat, false};
  static constexpr ::torchext::fused::Rule rules[] = {
      {3, 2, ::torchext::fused::Category::kFloat, false}};
  static constexpr std::array<::torchext::fused::Rule, 1> compared = {
      {{1, 0, ::torchext::fused::Category::kInteger, false}}};
  static constexpr int64_t least_number = 0, largest_number = 1;
  static constexpr std::array<size_t, 0> exponents = {};
  static constexpr bool has_negative_power = false, has_rows = false;
  static constexpr bool computes_numbers = false;
  static constexpr bool takes_complex = false;
  using Types = ::torchext::fused::Types<
    c10::kHalf, c10::kBFloat16, c10::kFloat, c10::kDouble>;

  template <typename V>
  C10_HOST_DEVICE static void compute(const ::torchext::fused::Given<V>& given, V* results) {
    using F [[maybe_unused]] = ::torchext::fused::Functions<V>;
    const auto v0 = F::greater(given.inputs[0], F::number(int64_t(0)));
    const V v1 = F::multiply(given.numbers[0], given.inputs[0]);
    const V v2 = F::choose(v0, given.inputs[0], v1);
    const V v3 = F::sigmoid(given.inputs[1]);
    const V v4 = !given.has[1] ? F::number(int64_t(1)) : v3;
    const V v5 = F::multiply(v2, v4);
    const V v6 = F::add(v5, given.numbers[1]);
    results[0] = v6;
  }
};

} // namespace expressions

namespace loops {

using ::torchext::fused::Loops;
using ::torchext::fused::RowLoops;

namespace DEFAULT {
extern const Loops gated_backward;
extern const Loops gated_double_backward;
extern const Loops gated_jvp;
extern const Loops gated;
} // namespace DEFAULT

namespace AVX2 {
extern const Loops gated_backward;
extern const Loops gated_double_backward;
extern const Loops gated_jvp;
extern const Loops gated;
} // namespace AVX2

namespace AVX512 {
extern const Loops gated_backward;
extern const Loops gated_double_backward;
extern const Loops gated_jvp;
extern const Loops gated;
} // namespace AVX512

} // namespace loops
} // namespace torchext::generated::golden
""",
        )

    def test_kernels(self) -> None:
        text = self.generated("src/fused_0.cpp")
        self.assertExpectedInline(
            text[text.index("using namespace") : text.index("gated_double_backward_cpu")],
            """\
using namespace torchext::generated::golden::loops;
namespace expressions = torchext::generated::golden::expressions;
namespace fused = torchext::fused;

} // namespace

// n.yaml:1: gated_backward(Tensor grad_output, Tensor x, Tensor? gate, float slope, bool[2]
//     output_mask) -> (Tensor, Tensor)
::std::tuple<at::Tensor, at::Tensor> golden::native::gated_backward_cpu(
    const at::Tensor& grad_output,
    const at::Tensor& x,
    const ::std::optional<at::Tensor>& gate,
    double slope,
    ::std::array<bool, 2> output_mask) {
  using Op = expressions::gated_backward;
  const fused::Held<Op> held{
      {fused::ref(grad_output), fused::ref(x), fused::ref(gate)},
      {slope},
      {
          fused::shared(
              fused::Functions<double>::subtract(
                  fused::Functions<double>::number(int64_t(1)), fused::number<double>(slope)))},
      {}};
  return fused::returned<Op>(
      fused::new_on_cpu(
          fused::described<Op>,
          *TORCHEXT_VECTORIZED(gated_backward),
          held.arguments(),
          output_mask));
}

// n.yaml:1: gated_backward(Tensor grad_output, Tensor x, Tensor? gate, float slope, bool[2]
//     output_mask) -> (Tensor, Tensor)
::std::tuple<at::Tensor, at::Tensor> golden::native::gated_backward_meta(
    const at::Tensor& grad_output,
    const at::Tensor& x,
    const ::std::optional<at::Tensor>& gate,
    double slope,
    ::std::array<bool, 2> output_mask) {
  using Op = expressions::gated_backward;
  const fused::Held<Op> held{
      {fused::ref(grad_output), fused::ref(x), fused::ref(gate)},
      {slope},
      {
          fused::shared(
              fused::Functions<double>::subtract(
                  fused::Functions<double>::number(int64_t(1)), fused::number<double>(slope)))},
      {}};
  return fused::returned<Op>(
      fused::meta_results(fused::described<Op>, held.arguments(), output_mask));
}

// n.yaml:1: gated_backward(Tensor grad_output, Tensor x, Tensor? gate, float slope, bool[2]
//     output_mask) -> (Tensor, Tensor)
::std::tuple<at::Tensor, at::Tensor> golden::native::gated_backward_composite(
    const at::Tensor& grad_output,
    const at::Tensor& x,
    const ::std::optional<at::Tensor>& gate,
    double slope,
    ::std::array<bool, 2> output_mask) {
  using Op = expressions::gated_backward;
  const fused::Held<Op> held{
      {fused::ref(grad_output), fused::ref(x), fused::ref(gate)},
      {slope},
      {
          fused::shared(
              fused::Functions<double>::subtract(
                  fused::Functions<double>::number(int64_t(1)), fused::number<double>(slope)))},
      {}};
  return fused::returned<Op>(
      fused::composite_results(fused::described<Op>, held.arguments(), output_mask));
}

// n.yaml:1: gated_double_backward(Tensor? grad_x, Tensor? grad_gate, Tensor grad_output, Tensor x,
//     Tensor? gate, float slope, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
::std::tuple<at::Tensor, at::Tensor, at::Tensor> golden::native::""",
        )

    def test_cuda_kernels(self) -> None:
        text = self.generated("src/cuda/fused_0.cu")
        self.assertExpectedInline(
            text[: text.index("gated_double_backward_cuda")],
            """\
// Generated by codegen.emit.fused from n.yaml.
// Do not edit: change those. This file is free of conditions: use it under any licence.

#include <torchext/fused/cuda_rows.cuh>

#include <golden/fused_0.h>
#include <golden/kernels/gated.h>
#include <golden/kernels/gated_backward.h>
#include <golden/kernels/gated_double_backward.h>
#include <golden/kernels/gated_jvp.h>

namespace {

using namespace torchext::generated::golden::loops;
namespace expressions = torchext::generated::golden::expressions;
namespace fused = torchext::fused;

} // namespace

// n.yaml:1: gated_backward(Tensor grad_output, Tensor x, Tensor? gate, float slope, bool[2]
//     output_mask) -> (Tensor, Tensor)
::std::tuple<at::Tensor, at::Tensor> golden::native::gated_backward_cuda(
    const at::Tensor& grad_output,
    const at::Tensor& x,
    const ::std::optional<at::Tensor>& gate,
    double slope,
    ::std::array<bool, 2> output_mask) {
  using Op = expressions::gated_backward;
  const fused::Held<Op> held{
      {fused::ref(grad_output), fused::ref(x), fused::ref(gate)},
      {slope},
      {
          fused::shared(
              fused::Functions<double>::subtract(
                  fused::Functions<double>::number(int64_t(1)), fused::number<double>(slope)))},
      {}};
  return fused::returned<Op>(
      fused::new_on_cuda<Op>(fused::described<Op>, held.arguments(), output_mask));
}

// n.yaml:1: gated_double_backward(Tensor? grad_x, Tensor? grad_gate, Tensor grad_output, Tensor x,
//     Tensor? gate, float slope, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
::std::tuple<at::Tensor, at::Tensor, at::Tensor> golden::native::""",
        )

    def test_what_is_printed_is_a_spec_again(self) -> None:
        native = printed("expand", str(self.path))
        derivatives = printed("expand", str(self.path), "--derivatives", "lib")
        (self.folder / "again").mkdir()
        result = run(self.folder / "again", native, derivatives)
        self.assertEqual((result.status, result.report), (0, ""))

    def test_what_is_printed_of_rows_is_the_same_spec(self) -> None:
        self.path.write_text(ROWS, encoding="utf-8")
        native = printed("expand", str(self.path))
        derivatives = printed("expand", str(self.path), "--derivatives", "golden")
        self.assertExpectedInline(
            native,
            """\
- func: rms_norm(Tensor input, Tensor? weight=None, float eps=1e-6) -> Tensor
  rows: input * rsqrt(mean(input ** 2) + eps) * (1 if weight is None else weight)

- func: cross_entropy(Tensor input, Tensor target, int ignore_index=-100) -> Tensor
  rows: 0 if target == ignore_index else logsumexp(input) - input[target]

- func: silu_and_mul(Tensor input) -> Tensor
  rows: to(silu(input[:n // 2]) * input[n // 2:], bfloat16)

# What follows from expressions, of the lines that are named.

- func: rms_norm_backward(Tensor grad_output, Tensor input, Tensor? weight, float eps, bool[2] output_mask) -> (Tensor, Tensor)  # n.yaml:1
  let:
    v0: grad_output * (1 if weight is None else weight)
    v1: rsqrt(mean(input ** 2) + eps)
  rows:
    - sum_to_size(v0 * v1 + -0.5 * sum(v0 * input) * v1 ** 3 / n * (2 * input), input)
    - sum_to_size(0 if weight is None else grad_output * (input * v1), weight)
  doc: Gradients of ``rms_norm`` for ``input``, ``weight``.

- func: rms_norm_double_backward(Tensor? grad_input, Tensor? grad_weight, Tensor grad_output, Tensor input, Tensor? weight, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)  # n.yaml:1
  let:
    v0: rsqrt(mean(input ** 2) + eps)
    v1: 2 * sum(grad_input * input) / n
    v2: v1 * v0 ** 3 * -0.5
    v3: v2 * input + grad_input * v0
    v4: 1 if weight is None else weight
    v5: grad_weight * grad_output
    v6: "-0.5 * sum(grad_output * v4 * input)"
  rows:
    - sum_to_size((grad_weight * (input * v0) if grad_weight is not None and weight is not None else 0) + (0 if grad_input is None else v3 * v4), grad_output)
    - sum_to_size((v5 * v0 if grad_weight is not None and weight is not None else 0) + (0 if grad_input is None else grad_input * (v6 * v0 ** 3 / n) * 2) + (0 if grad_input is None else v2 * (grad_output * v4)) + (-0.5 * ((0 if grad_input is None else v1 * v6 * (3 * v0 ** 2)) + ((sum(v5 * input) if grad_weight is not None and weight is not None else 0) + (0 if grad_input is None else sum(grad_input * (grad_output * v4))) if grad_weight is not None and weight is not None or grad_input is not None else 0)) * v0 ** 3 / n * (2 * input) if grad_input is not None or grad_weight is not None and weight is not None else 0), input)
    - sum_to_size(v3 * grad_output if grad_input is not None and weight is not None else 0, weight)
  doc: Gradients of ``rms_norm_backward`` for ``grad_output``, ``input``, ``weight``.

- func: rms_norm_jvp(Tensor? input_tangent, Tensor? weight_tangent, Tensor input, Tensor? weight, float eps) -> Tensor  # n.yaml:1
  let:
    v0: rsqrt(mean(input ** 2) + eps)
  rows: (0 if input_tangent is None else (input_tangent * v0 + -0.5 * (2 * sum(input_tangent * input) / n) * v0 ** 3 * input) * (1 if weight is None else weight)) + (weight_tangent * (input * v0) if weight_tangent is not None and weight is not None else 0)
  doc: Tangent of ``rms_norm`` in the direction ``input_tangent``, ``weight_tangent``.

- func: cross_entropy_backward(Tensor grad_output, Tensor input, Tensor target, int ignore_index) -> Tensor  # n.yaml:4
  let:
    v0: 0 if target[..., None] == ignore_index else grad_output[..., None]
  rows: sum_to_size(((0 if target[..., None] == ignore_index else -v0) if arange(n) == target[..., None] else 0) + v0 * exp(input - logsumexp(input)), input)
  doc: Gradients of ``cross_entropy`` for ``input``.

- func: cross_entropy_double_backward(Tensor grad_input, Tensor grad_output, Tensor input, Tensor target, int ignore_index, bool[2] output_mask) -> (Tensor, Tensor)  # n.yaml:4
  let:
    v0: exp(input - logsumexp(input))
    v1: sum(grad_input * v0)
    v2: 0 if target[..., None] == ignore_index else grad_output[..., None]
  rows:
    - 0 if target[..., None] == ignore_index else -(0 if target[..., None] == ignore_index else sum(grad_input if arange(n) == target[..., None] else 0)) + v1
    - sum_to_size(grad_input * v2 * v0 + -(v2 * v1) * v0, input)
  doc: Gradients of ``cross_entropy_backward`` for ``grad_output``, ``input``.

- func: cross_entropy_jvp(Tensor input_tangent, Tensor input, Tensor target, int ignore_index) -> Tensor  # n.yaml:4
  rows: 0 if target[..., None] == ignore_index else sum(input_tangent * exp(input - logsumexp(input))) + -(0 if target[..., None] == ignore_index else sum(input_tangent if arange(n) == target[..., None] else 0))
  doc: Tangent of ``cross_entropy`` in the direction ``input_tangent``.

- func: silu_and_mul_backward(Tensor grad_output, Tensor input) -> Tensor  # n.yaml:7
  let:
    v0: sigmoid(input[:n // 2])
  rows: cat(grad_output * input[n // 2:] * v0 * (1 + input[:n // 2] * (1 - v0)), grad_output * silu(input[:n // 2]))
  doc: Gradients of ``silu_and_mul`` for ``input``.

- func: silu_and_mul_double_backward(Tensor grad_input, Tensor grad_output, Tensor input, bool[2] output_mask) -> (Tensor, Tensor)  # n.yaml:7
  let:
    v0: sigmoid(input[:n // 2])
    v1: 1 + input[:n // 2] * (1 - v0)
    v2: grad_input[:n // 2] * v1
    v3: grad_output * input[n // 2:]
    v4: grad_input[:n // 2] * (v3 * v0)
  rows:
    - grad_input[n // 2:] * silu(input[:n // 2]) + v2 * v0 * input[n // 2:]
    - cat(grad_input[n // 2:] * grad_output * v0 * v1 + v4 * (1 - v0) + (-(v4 * input[:n // 2]) + v2 * v3) * (1 - v0) * v0, v2 * v0 * grad_output)
  doc: Gradients of ``silu_and_mul_backward`` for ``grad_output``, ``input``.

- func: silu_and_mul_jvp(Tensor input_tangent, Tensor input) -> Tensor  # n.yaml:7
  let:
    v0: sigmoid(input[:n // 2])
  rows: to(input_tangent[:n // 2] * v0 * (1 + input[:n // 2] * (1 - v0)) * input[n // 2:] + input_tangent[n // 2:] * silu(input[:n // 2]), bfloat16)
  doc: Tangent of ``silu_and_mul`` in the direction ``input_tangent``.
""",
        )
        before = self.structs("include/golden/fused_0.h")
        self.path.write_text(native, encoding="utf-8")
        formulas = self.folder / "d.yaml"
        formulas.write_text(derivatives, encoding="utf-8")
        after = self.structs("include/golden/fused_0.h", "--derivatives", str(formulas))
        self.assertEqual([name for name in before if before[name] != after[name]], [])
        self.assertEqual(len(before), 12)

    def structs(self, path: str, *more: str) -> dict[str, str]:
        """What is generated for each operator, but for the dtypes of derivatives, which those that
        are derived do not check: they have that of all tensors."""
        text = re.sub(r"^//.*\n", "", self.generated(path, *more), flags=re.M)
        text = re.sub(r"Rule rules\[\] = .*?;", "", text, flags=re.S)
        text = re.sub(r"std::array<\S+Rule, \d+> compared = .*?;", "", text, flags=re.S)
        text = text.partition("namespace loops")[0].partition("} // namespace expressions")[0]
        return {struct.split()[0]: struct.strip() for struct in text.split("struct ")[1:]}


if __name__ == "__main__":
    unittest.main()
