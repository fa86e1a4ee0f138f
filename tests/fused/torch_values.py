# SPDX-License-Identifier: BSD-3-Clause
"""What expressions are worth, computed with torch's own operators."""

import functools
import operator

import torch
from torch.nn import functional as F

from codegen.fused.tree import (
    ELEMENT,
    Call,
    Cast,
    Choice,
    IsMissing,
    Name,
    Number,
    OfRow,
    Slice,
    in_order,
)

FUNCTIONS = {
    "+": torch.add, "-": torch.sub, "*": torch.mul, "/": torch.div, "%": torch.remainder,
    "**": torch.pow, "-x": torch.neg,
    "<": torch.lt, "<=": torch.le, ">": torch.gt, ">=": torch.ge, "==": torch.eq, "!=": torch.ne,
    "and": torch.logical_and, "or": torch.logical_or, "not": torch.logical_not,
    "log_sigmoid": F.logsigmoid, "silu": F.silu, "gelu": F.gelu, "mish": F.mish,
    "gelu_tanh": functools.partial(F.gelu, approximate="tanh"), "softplus": F.softplus,
    "floor_divide": functools.partial(torch.div, rounding_mode="floor"),
    "hardswish": F.hardswish, "lerp": torch.lerp, "detach": torch.Tensor.detach,
    "handle_r_to_c": lambda x, y: y.real if y.is_complex() and not x.is_complex() else y,
    "broadcast_with": lambda x, like: torch.broadcast_tensors(x, like)[0],
    "of_cumprods": lambda x, *row: x, "of_cumprods_backward": lambda x, *grad_and_row: x,
}  # fmt: skip


# Conditions that are known before any element.
OF_NUMBERS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne, "and": operator.and_, "or": operator.or_, "not": operator.not_,
}  # fmt: skip

# Of rows, which stay dimensions.
OF_ROWS = {
    "sum": lambda x: x.sum(-1, keepdim=True),
    "mean": lambda x: x.mean(-1, keepdim=True),
    "amax": lambda x: x.amax(-1, keepdim=True),
    "amin": lambda x: x.amin(-1, keepdim=True),
    "prod": lambda x: x.prod(-1, keepdim=True),
    "prod_of_others": lambda x: prod_of_others(x),
    "var": lambda x, correction: x.var(-1, correction=correction, keepdim=True),
    "logsumexp": lambda x: x.logsumexp(-1, keepdim=True),
    "argmax": lambda x: x.argmax(-1, keepdim=True),
    "count": lambda x: x.count_nonzero(-1).unsqueeze(-1),
    "arange": lambda n: torch.arange(n, dtype=torch.float64),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "expand_as": lambda x, like: x.expand(like.shape),
    ELEMENT: lambda x, index: x.gather(-1, index),
}


def prod_of_others(x):
    """As the derivative of the sum of what all rows have."""
    return torch.func.grad(lambda x: x.prod(-1).sum())(x)


def as_tensor(value, like):
    return value if isinstance(value, torch.Tensor) else torch.full_like(like, value)


def as_row(value, like):
    value = as_tensor(value, like)
    return value.expand(torch.broadcast_shapes(value.shape, like.shape))


def called(name, values, like):
    """A function of the language, by torch's of this name."""
    if name in OF_NUMBERS and not any(isinstance(v, torch.Tensor) for v in values):
        return OF_NUMBERS[name](*values)
    if name == "cat":
        return torch.cat([as_row(value, like) for value in values], -1)
    if name in OF_ROWS:
        rows = values if name == "arange" else [as_row(values[0], like), *values[1:]]
        return OF_ROWS[name](*rows)
    if name == "softplus":
        return F.softplus(as_tensor(values[0], like), *map(float, values[1:]))
    if name == "clamp":
        return torch.clamp(*(as_tensor(v, like) for v in values))
    function = FUNCTIONS.get(name) or getattr(torch, name)
    if all(not isinstance(v, torch.Tensor) for v in values):
        values = [as_tensor(values[0], like), *values[1:]]
    if name in ("-", "/", "+", "*", "%", "**", "<", "<=", ">", ">=", "==", "!="):
        if not isinstance(values[0], torch.Tensor) and name != "**":
            values = [as_tensor(values[0], like), *values[1:]]
        return function(*values)
    return function(*(as_tensor(v, like) for v in values))


def is_of_numbers(condition, given):
    """Whether no tensor decides on it, also where a function of a number makes a tensor here."""
    return not any(
        isinstance(part, (Name, OfRow, Slice)) and isinstance(given[part.name], torch.Tensor)
        for part in in_order(condition)
    )


def value_of(tree, given):
    """What an expression is worth for these tensors, by name; of rows, a number that each has one
    of as a last dimension of size 1."""
    like = next(v for v in given.values() if isinstance(v, torch.Tensor)).detach()
    made = {}
    for part in in_order(tree):
        if isinstance(part, Name):
            made[part] = given[part.name]
        elif isinstance(part, OfRow):
            made[part] = given[part.name].unsqueeze(-1)
        elif isinstance(part, Slice):
            made[part] = given[part.name].chunk(part.count, -1)[part.index]
        elif isinstance(part, Cast):
            made[part] = as_tensor(made[part.value], like).to(getattr(torch, part.dtype))
        elif isinstance(part, Number):
            made[part] = part.value
        elif isinstance(part, IsMissing):
            made[part] = given[part.name] is None
        elif isinstance(part, Choice):
            condition = made[part.condition]
            if is_of_numbers(part.condition, given):
                chosen = bool(condition.all() if isinstance(condition, torch.Tensor) else condition)
                made[part] = made[part.then if chosen else part.other]
            else:
                both = (as_tensor(made[p], like) for p in (part.then, part.other))
                made[part] = torch.where(condition, *both)
        elif isinstance(part, Call):
            made[part] = called(part.function, [made[a] for a in part.arguments], like)
    return as_tensor(made[tree], like)
