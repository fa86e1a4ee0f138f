# SPDX-License-Identifier: BSD-3-Clause
"""Lists of a fixed length of which one number stands for all: parameters and the lists of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from .call_plan import LengthCheck
from .plan import Signature


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


def list_lines(signature: Signature, lengths: Iterable[LengthCheck]) -> Iterator[str]:
    """The statements that make the lists that kernels and formulas see."""
    types = {p.name: p.type for p in signature.parameters}
    for check in lengths:
        if check.takes_one:
            name = check.parameter
            made = f"torchext::fixed_list<{check.lengths[0]}>({name}_given)"
            yield f"  const auto {name}_list = {made};"
            yield f"  const {types[name]} {name} = {name}_list;"
