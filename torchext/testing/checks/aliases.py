# SPDX-License-Identifier: BSD-3-Clause
"""Which results are arguments, or share memory with them.

Its messages are whole: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..calls import Call, strided_copy, tensors_of
from ..subject import Subject

# Of operators that torch's own ones have it for: they may return an argument as it is.
_MAY_ALIAS = torch.Tag.maybe_aliasing_or_mutating


def check_aliases(subject: Subject, call: Call) -> None:
    """Check that results are arguments where the schema says so, and new where it says nothing."""
    given = subject.with_outs(call).map_tensors(strided_copy)
    result = given.run()
    schema = subject.overload._schema
    results = list(result) if len(schema.returns) > 1 else [result][: len(schema.returns)]
    new: list[tuple[str, torch.Tensor]] = []
    for index, (annotated, value) in enumerate(zip(schema.returns, results)):
        what = "the result" if len(results) == 1 else f"result {index}"
        if annotated.alias_info is None:
            if _MAY_ALIAS not in subject.overload.tags:
                _check_new(given, what, value)
            new += [(what, tensor) for tensor in tensors_of(value)]
        elif annotated.alias_info.is_write:
            _check_written(given, annotated, what, value)
    _check_apart(new)


def _check_new(given: Call, what: str, value: Any) -> None:
    for tensor in tensors_of(value):
        for name, argument in given.named_tensors:
            assert tensor is not argument, (
                f"{what} is the argument '{name}', and new by the schema: return a copy, or say "
                "so, as in `Tensor(a!) out -> Tensor(a!)`"
            )
            assert not _shares_memory(tensor, argument), (
                f"{what} shares memory with the argument '{name}', and is new by the schema: "
                "return a copy, or say so, as in `Tensor(a) x -> Tensor(a)`"
            )


def _check_apart(new: list[tuple[str, torch.Tensor]]) -> None:
    """Check that no two of the new results are one tensor, but where there are no elements."""
    for index, (what, tensor) in enumerate(new):
        for first, other in new[:index]:
            is_one = tensor is other and tensor.numel()
            assert not (is_one and first == what), (
                f"{what} has one tensor twice, and all are new by the schema: return a copy"
            )
            assert not is_one, (
                f"{what} is {first} too, and both are new by the schema: return a copy"
            )


def _check_written(given: Call, annotated: torch._C.Argument, what: str, value: Any) -> None:
    for name in _arguments_of(given, annotated):
        arguments = [t for n, t in given.named_tensors if n == name]
        same = [t is a for t, a in zip(tensors_of(value), arguments)]
        assert all(same), f"{what} is not the argument '{name}', as the schema says"


def _arguments_of(given: Call, annotated: torch._C.Argument) -> Iterator[str]:
    for argument in given.overload._schema.arguments:
        info = argument.alias_info
        if (
            info is not None
            and info.is_write
            and info.before_set == annotated.alias_info.before_set
        ):
            yield argument.name


def _shares_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    has_memory = all(t.layout == torch.strided and t.numel() for t in (a, b))
    return has_memory and torch._C._is_alias_of(a, b)
