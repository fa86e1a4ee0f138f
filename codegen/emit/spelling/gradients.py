# SPDX-License-Identifier: BSD-3-Clause
"""The text of a gradient inside a backward node: reads a GradientPlan, returns C++."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...cpp.template import fill
from ...output import RESTORE_LINE, line_of
from ...plan.autograd import GradientPlan, NodePlan

_GRADIENT = """
if (needs[$edge]) {
$line
  outputs.store($edge, $formula);
$restore
}
"""

_GRADIENTS = """
if ($any) {
$mask
$line
  const auto computed = $computed;
$stores
$restore
}
"""

_ELEMENTS = """
if (needs[$edge]) {
$lists
  variable_list computed(grads.size());
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined()) {
$line
      computed[i] = $formula;
$restore
    }
  }
  outputs.store($edge, computed);
}
"""


def gradient_block(node: NodePlan, gradient: GradientPlan) -> str:
    """The computation of the gradients that one formula gives."""
    return _indented(_block(node, gradient))


def _block(node: NodePlan, gradient: GradientPlan) -> str:
    edges = gradient.edges
    line = [line_of(gradient.line)]
    formula = "at::zeros_like(grad)" if gradient.is_lost else gradient.expression
    common = {"line": line, "restore": [RESTORE_LINE], "formula": formula}
    needs = [f"needs[{i}]" for i in edges]
    if len(edges) == 1 and not gradient.needs_mask and not _is_whole_list(node, gradient, 0):
        if gradient.is_elementwise:
            lists = element_checks(gradient.lists, "grads")
            return fill(_ELEMENTS, edge=str(edges[0]), lists=lists, **common)
        return fill(_GRADIENT, edge=str(edges[0]), **common)
    mask = f"  const ::std::array<bool, {len(needs)}> grad_input_mask = {{{', '.join(needs)}}};"
    values = ["computed"]
    if len(edges) > 1:
        values = [f"::std::get<{i}>(computed)" for i in range(len(edges))]
    stores = []
    for i, (need, edge, value) in enumerate(zip(needs, edges, values)):
        stores += _list_check(node, gradient, i, value)
        if len(edges) == 1:
            stores.append(f"  outputs.store({edge}, {value});")
        else:
            stores += [f"  if ({need}) {{", line_of(gradient.line)]
            stores += [f"    outputs.store({edge}, {value});", "  }"]
    any_ = " || ".join(needs)
    masks = [mask] if gradient.needs_mask else []
    computed = f"kept({formula})" if len(edges) == 1 else formula
    return fill(
        _GRADIENTS, any=any_, mask=masks, line=line, computed=computed, stores=stores,
        restore=[RESTORE_LINE],
    )  # fmt: skip


def element_checks(lists: Iterable[tuple[str, str]], counted: str) -> list[str]:
    """What refuses lists with fewer elements than the one that a formula counts."""
    return [f'  check_elements({counted}.size(), "{n}", {local}.size());' for n, local in lists]


def _is_whole_list(node: NodePlan, gradient: GradientPlan, place: int) -> bool:
    """Whether a formula gives the gradients of all of a list at once."""
    is_each = gradient.is_elementwise or gradient.is_missing
    return node.edges[gradient.edges[place]].is_list and not is_each


def _list_check(node: NodePlan, gradient: GradientPlan, place: int, value: str) -> Iterator[str]:
    """What the compiler says of one tensor that is given for a list."""
    if _is_whole_list(node, gradient, place):
        name = node.edges[gradient.edges[place]].argument
        words = f"the gradient of '{name}' is a list of tensors, and this formula gives none"
        yield line_of(gradient.line)
        yield f"  static_assert(is_list_of_gradients<decltype({value})>,"
        yield f'      "{words}: it gives them all, or that of one element by grads[i]");'


def _indented(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    return "\n".join(f"  {line}" if line and line[0] != "#" else line for line in lines)
