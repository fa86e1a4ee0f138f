# SPDX-License-Identifier: BSD-3-Clause
"""One call for each schema class that an operator without a formula can have.

Each takes the library's namespace and a 2 x 3 tensor that may be written to, and returns what
depends on it: the results, and the tensors that were written.
"""

from collections.abc import Callable

import torch

Call = Callable[..., tuple[torch.Tensor, ...]]


def other() -> torch.Tensor:
    return torch.full((2, 3), 3.0, dtype=torch.float64)


def _mutate_shorthand(ops, x):
    assert ops.plain_mutate_shorthand(x, other()) is None
    return (x,)


def _mutate(ops, x):
    assert ops.plain_mutate(x, other()) is None
    return (x,)


def _mutate_optional(ops, x):
    ops.plain_mutate_optional(x, other())
    return (x,)


def _mutate_by_x(ops, x):
    written = other()
    ops.plain_mutate(written, x)
    return (written,)


def _mutate_two(ops, x):
    second = other()
    ops.plain_mutate_two(second, x, other())
    return (x,)


def _mutate_two_by_x(ops, x):
    first, second = other(), other()
    ops.plain_mutate_two(first, second, x)
    return first, second


def _mutate_list(ops, x):
    ops.plain_mutate_list([other(), x], other())
    return (x,)


def _mutate_and_give(ops, x):
    result = ops.plain_mutate_and_give(x, other())
    return x, result


def _inplace(ops, x):
    result = ops.plain_mul_(x, other())
    assert result is x
    return (x,)


def _inplace_by_x(ops, x):
    return (ops.plain_mul_(other(), x),)


FUNCTIONAL: dict[str, Call] = {
    "plain_mul": lambda ops, x: (ops.plain_mul(x, other()),),
    "plain_pair": lambda ops, x: ops.plain_pair(x, other()),
    "plain_optional": lambda ops, x: (ops.plain_optional(x),),
    "plain_optional (given)": lambda ops, x: (ops.plain_optional(other(), x),),
    "plain_optional_result": lambda ops, x: (ops.plain_optional_result(x, True),),
    "plain_list": lambda ops, x: tuple(ops.plain_list([x, x])),
    "plain_optional_list": lambda ops, x: (ops.plain_optional_list(other(), [None, x]),),
    "plain_list_or_none": lambda ops, x: (ops.plain_list_or_none(x),),
    "plain_list_or_none (given)": lambda ops, x: (ops.plain_list_or_none(other(), [x, other()]),),
    "plain_explicit": lambda ops, x: (ops.plain_explicit(x, other()),),
}
MUTATING: dict[str, Call] = {
    "plain_mul_": _inplace,
    "plain_mutate": _mutate,
    "plain_mutate_shorthand": _mutate_shorthand,
    "plain_mutate_optional": _mutate_optional,
    "plain_mutate_two": _mutate_two,
    "plain_mutate_list": _mutate_list,
    "plain_mutate_and_give": _mutate_and_give,
}
MUTATING_ANOTHER: dict[str, Call] = {
    "plain_mul_ (by)": _inplace_by_x,
    "plain_mutate (by)": _mutate_by_x,
    "plain_mutate_two (by)": _mutate_two_by_x,
}
VIEWS: dict[str, Call] = {
    "plain_view": lambda ops, x: (ops.plain_view(x),),
    "plain_views": lambda ops, x: tuple(ops.plain_views(x)),
}
ALL = {**FUNCTIONAL, **MUTATING, **MUTATING_ANOTHER, **VIEWS}


def operator_of(name: str) -> str:
    """`agtest::plain_mul_` for the call "plain_mul_ (by)"."""
    return f"agtest::{name.split(' ')[0]}"
