# SPDX-License-Identifier: BSD-3-Clause
"""rules_<shard>.h and .cpp: the meta functions that are generated from `meta:`.

Those of structured operators that a TensorIterator serves are declared with their kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..cpp.template import fill
from ..output import File, banner
from ..plan.expressions import RuledResult, RuleLoop
from ..plan.kernels import RulePlan
from ..plan.library import OperatorPlan, Plan
from .spelling.expressions import check_lines, decided, required_lines, spelled

_HEADER = """
$banner
#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <torchext/meta_base.h>

namespace torchext::generated::$namespace::rules {

$classes

} // namespace torchext::generated::$namespace::rules
"""

_CLASS = """
// $location: the rule of $schema
struct $name : public MetaBase {
  $prototype;
};
"""

_SOURCE = """
$banner
#include <torchext/shape.h>
$includes

$iterators
namespace torchext::generated::$namespace::rules {

$functions

} // namespace torchext::generated::$namespace::rules
"""

_FUNCTION = """
// $location: $schema
$prototype {
$statements
}
"""


def emit(plan: Plan) -> Iterator[File]:
    """A header and a source for each shard."""
    head, space = banner(__name__, plan.specs), plan.namespace
    for index in range(plan.shards):
        shard = plan.shard(index)
        found = [(op, op.rule) for op in shard if op.rule]
        if found:
            classes = "\n".join(_class(op, rule) for op, rule in found).rstrip()
            text = fill(_HEADER, banner=head, namespace=space, classes=classes)
            yield File(f"include/{space}/rules_{index}.h", text, "header")
        iterated = [op for op in shard if op.structured and op.structured.iterator]
        if found or iterated:
            headers = sorted({f"kernels/{op.group}" for op in iterated})
            headers += [f"rules_{index}"] if found else []
            text = fill(
                _SOURCE,
                banner=head,
                namespace=space,
                includes=[f"#include <{space}/{header}.h>" for header in headers],
                iterators=[text for op in iterated for text in (_iterator(op), "")],
                functions="\n".join(_function(op, rule) for op, rule in found).rstrip(),
            )
            yield File(f"src/rules_{index}.cpp", text, "part")


def _iterator(op: OperatorPlan) -> str:
    """The meta function of a structured operator that one function of TensorIterator sets up."""
    structured = op.structured
    assert structured is not None and structured.iterator is not None
    rule, tensors = structured.iterator
    borrows = "" if rule == "ternary" else "borrowing_"
    arguments = ", ".join(["maybe_get_output()", *tensors])
    return fill(
        _FUNCTION,
        location=op.spec_line,
        schema=op.schema,
        prototype=structured.meta.prototype(f"{structured.meta_class}::meta"),
        statements=[f"  build_{borrows}{rule}_op({arguments});"],
    ).rstrip("\n")


def _class(op: OperatorPlan, rule: RulePlan) -> str:
    return fill(
        _CLASS,
        location=op.spec_line,
        schema=op.schema,
        name=rule.name.rpartition("::")[2],
        prototype=rule.meta.prototype("meta"),
    )


def _function(op: OperatorPlan, rule: RulePlan) -> str:
    name = rule.name.rpartition("::")[2]
    return fill(
        _FUNCTION,
        location=op.spec_line,
        schema=op.schema,
        prototype=rule.meta.prototype(f"{name}::meta"),
        statements=[f"  {line}" for line in _statements(rule)],
    )


def _statements(rule: RulePlan) -> Iterator[str]:
    yield f'[[maybe_unused]] constexpr auto op = "{rule.operator}";'
    for check in rule.checks:
        yield from check_lines(check)
    for index, result in enumerate(rule.results):
        if result.loop is None:
            yield from _result(str(index), result)
            continue
        yield "int64_t torchext_index = 0;"
        yield f"{_loop(result.loop)} {{"
        yield from (f"  {line}" for line in _result("torchext_index++", result))
        yield "}"


def _loop(loop: RuleLoop) -> str:
    name = loop.name
    if loop.count is None:
        return f"for (const auto& {name} : {spelled(loop.values)})"
    last = f"shape::as_index({spelled(loop.count)})"
    return f"for (int64_t {name} = 0, last = {last}; {name} < last; ++{name})"


def _result(index: str, result: RuledResult) -> Iterator[str]:
    """The statements that set one result, where it is there."""
    lines = (*required_lines(result.needs), _set_output(index, result))
    if result.when is None:
        yield from lines
        return
    yield from required_lines(result.when_needs)
    yield f"if ({decided(result.when)}) {{"
    yield from (f"  {line}" for line in lines)
    yield "}"


def _set_output(index: str, result: RuledResult) -> str:
    options = f"shape::options({', '.join(map(spelled, (result.dtype, *result.tensors)))})"
    given = f"{index}, {spelled(result.sizes)}"
    if result.is_contiguous:
        return f"set_output_contiguous_symint({given}, {options});"
    if result.strides is None:
        return f"set_output_raw_strided_symint({given}, {{}}, {options});"
    return f"set_output_strided_symint({given}, {spelled(result.strides)}, {options});"
