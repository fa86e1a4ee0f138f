# SPDX-License-Identifier: BSD-3-Clause
"""The text of formulas that call the operators of derivatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..schema.schema import Schema
from ..spec.model import NON_DIFFERENTIABLE

Lines = tuple[tuple[str, ...], str]  # of a formula: its names and its text


def without_gradient(arguments: Iterable[str]) -> Iterator[Lines]:
    found = tuple(arguments)
    if found:
        yield found, NON_DIFFERENTIABLE


def result_names(func: Schema) -> list[str]:
    if len(func.returns) == 1:
        return [func.returns[0].name or "result"]
    return [result.name or f"result{i}" for i, result in enumerate(func.returns)]


def only(index: int, count: int) -> str:
    """A mask that asks for one of several results."""
    return "{" + ", ".join("true" if i == index else "false" for i in range(count)) + "}"


def taken(call: str, index: int, count: int) -> str:
    return call if count == 1 else f"std::get<{index}>({call})"


def where_defined(grads: list[str], call: str, count: int) -> str:
    """A call that is left out where no gradient came."""
    if count == 1 and len(grads) == 1:
        return call  # which autograd asks itself
    nothing = f"std::tuple<{', '.join(['Tensor'] * count)}>()" if count > 1 else "Tensor()"
    return f"{' || '.join(f'{grad}.defined()' for grad in grads)} ? {call} : {nothing}"


def listed(found: Iterable[str]) -> str:
    return ", ".join(f"``{name}``" for name in found)
