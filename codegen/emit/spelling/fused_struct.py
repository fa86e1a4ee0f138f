# SPDX-License-Identifier: BSD-3-Clause
"""The struct of an expression in C++: what is known of its arguments, and how it is computed."""

from __future__ import annotations

from ...cpp.template import fill
from ...fused.dtypes import Category, Dtype
from ...fused.tree import Slice, text
from ...plan.fused import FusedPlan, Place
from ...plan.library import OperatorPlan
from .fused import Statements
from .fused_rows import members

_STRUCT = """
// $location: $schema
$expressions
struct $struct {
  static constexpr auto name = "$name";
  static constexpr size_t inputs = $inputs, scalars = $scalars, numbers = $numbers;
  static constexpr size_t conditions = $conditions, results = $results, returns = $returns;
  static constexpr const char* input_names[] = {$names};
  static constexpr double defaults[] = {$defaults};
  static constexpr ::torchext::fused::Rule common = $common;
  static constexpr ::torchext::fused::Rule rules[] = {$rules};
  static constexpr std::array<::torchext::fused::Rule, $comparisons> compared = {$compared};
  static constexpr int64_t least_number = $least, largest_number = $largest;
  static constexpr std::array<size_t, $powers> exponents = {$exponents};
  static constexpr bool has_negative_power = $negative, has_rows = $has_rows;
  static constexpr bool computes_numbers = $computes_numbers;
  static constexpr bool takes_complex = $takes_complex;
  using Types = ::torchext::fused::Types<
    $types>;

  template <typename V>
  $device void compute(const ::torchext::fused::$given<V>& given, V* results) {
    using F [[maybe_unused]] = ::torchext::fused::Functions<V>;
    $statements
  }
  $rows
};
"""

_MOST = 4_000  # characters of a comment
_CATEGORIES = {
    Category.BOOL: "kBool", Category.INTEGER: "kInteger", Category.FLOAT: "kFloat",
}  # fmt: skip


def struct(namespace: str, op: OperatorPlan, plan: FusedPlan) -> str:
    return fill(
        _STRUCT,
        location=op.spec_line,
        schema=op.schema,
        expressions=[
            f"//   {_name(op, place)}{text(tree, _MOST)}"
            for place, tree in zip(plan.places, plan.results)
        ],
        struct=plan.struct,
        name=f"{namespace}::{op.operator.name.base}",
        inputs=str(len(plan.inputs)),
        names=[f'"{item.name}"' for item in plan.inputs],
        defaults=", ".join(str(item.default) for item in plan.inputs),
        scalars=str(len(plan.scalars)),
        numbers=str(len(plan.numbers)),
        conditions=str(len(plan.conditions)),
        results=str(len(plan.results)),
        returns=str(len(op.operator.func.returns)),
        common=_rule(plan, plan.common),
        rules=[_rule(plan, dtype) for dtype in plan.dtypes],
        takes_complex="true" if plan.takes_complex else "false",
        comparisons=str(len(plan.compared)),
        compared=_rules(plan, plan.compared),
        least=str(plan.range[0]),
        largest=str(plan.range[1]),
        powers=str(len(plan.exponents)),
        exponents=", ".join(map(str, plan.exponents)),
        negative="true" if plan.has_negative_power else "false",
        has_rows="true" if plan.rows else "false",
        computes_numbers="true" if plan.computes_numbers else "false",
        types=", ".join(f"c10::k{name}" for name in plan.types),
        device="static" if plan.rows else "C10_HOST_DEVICE static",
        given="GivenRows" if plan.rows else "Given",
        statements=Statements(plan).of_all(),
        rows=members(plan, plan.rows) if plan.rows else [],
    )


def _name(op: OperatorPlan, place: Place) -> str:
    name = op.operator.func.returns[place.result].name or "result" * (place.count > 1)
    part = text(Slice(name, place.index, place.count)) if place.count > 1 else name
    return f"{part} = " if part else ""


def _rules(plan: FusedPlan, dtypes: tuple[Dtype, ...]) -> str:
    rules = ", ".join(_rule(plan, dtype) for dtype in dtypes)
    return f"{{{rules}}}" if rules else ""


def _rule(plan: FusedPlan, dtype: Dtype) -> str:
    tensors = sum(1 << i for i, item in enumerate(plan.inputs) if item.name in dtype.tensors)
    numbers = sum(1 << i for i, (name, _) in enumerate(plan.scalars) if name in dtype.numbers)
    category = f"::torchext::fused::Category::{_CATEGORIES[dtype.least]}"
    is_bool = "true" if dtype.is_bool else "false"
    cast = f", c10::ScalarType::{dtype.cast}" if dtype.cast else ""
    return f"{{{tensors}, {numbers}, {category}, {is_bool}{cast}}}"
