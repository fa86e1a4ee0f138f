# SPDX-License-Identifier: BSD-3-Clause
"""Lists of a fixed length of which one number stands for all: parameters and the lists of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from ...cpp.signatures import Signature
from ...plan.calls import LengthCheck


def given(signature: Signature, lengths: Iterable[LengthCheck]) -> Signature:
    """The signature with other names for such lists; `list_lines` makes the lists of them."""
    names = {check.parameter for check in lengths if check.takes_one}
    return dataclasses.replace(
        signature,
        parameters=tuple(
            dataclasses.replace(p, name=f"{p.name}_given") if p.name in names else p
            for p in signature.parameters
        ),
    )


def passed(parameter: str, lengths: Iterable[LengthCheck]) -> str:
    """What stands for a parameter of the C++ API in a call: the list, where one number may do."""
    sizes = {check.parameter: check.lengths[0] for check in lengths}
    return _list_of(parameter, sizes[parameter]) if parameter in sizes else parameter


def _list_of(name: str, size: int) -> str:
    return f"torchext::fixed_list<{size}>({name})"


def list_lines(signature: Signature, lengths: Iterable[LengthCheck]) -> Iterator[str]:
    """The statements that make the lists that kernels and formulas see."""
    types = {p.name: p.type for p in signature.parameters}
    for check in lengths:
        if check.takes_one:
            name = check.parameter
            yield f"  const auto {name}_as_list = {_list_of(f'{name}_given', check.lengths[0])};"
            yield f"  const {types[name]} {name} = {name}_as_list;"
