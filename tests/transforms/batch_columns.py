# SPDX-License-Identifier: BSD-3-Clause
"""Columns of torch.func: vmap against Python loops, gradients and tangents against torch's."""

import functools
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from cases import directions, gradient_of, parts
from operators import OPERATORS

from codegen.analysis.library import plan_library
from codegen.errors import Errors
from codegen.spec.load import load_operators

SPEC = Path(__file__).parents[2] / "native_functions.yaml"


@functools.cache
def rules() -> dict[str, str]:
    """The batching rules of the library, by operator."""
    errors = Errors()
    operators = load_operators(SPEC, SPEC.name, errors)
    plans = plan_library("myns", (SPEC.name,), operators, (), errors).operators
    errors.raise_if_any()
    return {f"myns::{p.operator.name}": p.batching.function for p in plans if p.batching}


def has_rule(row) -> bool:
    """Whether one call of the form serves a whole batch: `vmap:` of its entry says how."""
    form = OPERATORS[row.operator].call if row.kind == "out" else row.overload
    return rules().get(form.name(), "each_example") != "each_example"


@contextmanager
def without_the_loop(refused: bool):
    """Refuse the loop over the batch, by torch's own switch: its warning does not reach Python."""
    was_enabled = torch._C._functorch._is_vmap_fallback_enabled()
    torch._C._functorch._set_vmap_fallback_enabled(not refused)
    try:
        yield
    finally:
        torch._C._functorch._set_vmap_fallback_enabled(was_enabled)


def batch(t, dim, size):
    return t if dim is None else torch.stack([t, 2 * t, t - 1][:size], dim)


def looped(function, levels, tensors) -> list:
    """What nested vmaps give: `levels` are their in_dims, the outermost first; out_dims are 0."""
    if not levels:
        return parts(function(*tensors))
    (size,) = {t.size(d) for t, d in zip(tensors, levels[0]) if d is not None}
    singles = [
        [t if dim is None else t.select(dim, index) for t, dim in zip(tensors, levels[0])]
        for index in range(size)
    ]
    results = [looped(function, levels[1:], single) for single in singles]
    return [torch.stack(of_batch) for of_batch in zip(*results)]


def placed(t, dims):
    """A result of `looped` with its batches moved from the front to `dims`, the outermost first."""
    return torch.stack([placed(part, dims[1:]) for part in t], dims[0]) if dims else t


def _check(subject, levels, out_dim):
    """Assert that vmaps, one in another, are Python loops over the reference.

    `levels` has in_dims for the call's tensors; an out= tensor is batched in dimension 0.
    """
    given, count = subject.given(), len(subject.call.tensors)
    levels = [[*level, *[0] * (len(given) - count)] for level in levels]
    # A composite form may have a result without batch, for which torch knows no other dimension.
    out_dim = 0 if OPERATORS[subject.row.operator].is_composite else out_dim
    for level, size in reversed(list(zip(levels, (3, 2)))):
        given = [batch(t, dim, size) for t, dim in zip(given, level)]
    expected = looped(subject.expected, [level[:count] for level in levels], given[:count])
    function = subject.function
    for level in reversed(levels):
        function = torch.func.vmap(function, tuple(level), out_dim)
    with without_the_loop(refused=has_rule(subject.row)):
        returned = parts(function(*given))
    torch.testing.assert_close(returned, [placed(e, [out_dim] * len(levels)) for e in expected])
    if subject.row.kind != "functional":
        dims = [level[0 if subject.row.kind == "in-place" else -1] for level in levels]
        written = [placed(e, dims) for e in expected]
        torch.testing.assert_close(subject.written(given), written)


def _check_that_an_unbatched_tensor_takes_no_batch(subject):
    """Neither `self` of an in-place form nor an out= tensor has room for the results."""
    given, count = subject.given(), len(subject.call.tensors)
    is_read = [0 < i or subject.row.kind == "out" for i in range(count)]
    in_dims = [0 if is_read[i] else None for i in range(count)] + [None] * (len(given) - count)
    given = [batch(t, dim, 3) for t, dim in zip(given, in_dims)]
    message = (
        r"vmap: .*\(self, \*extra_args\) is not possible|doesn't match the broadcast shape"
        "|vmap: .* writes to '.*', which is not batched"
    )
    with pytest.raises(RuntimeError, match=message):
        torch.func.vmap(subject.function, tuple(in_dims))(*given)


def vmap(row):
    """Against a loop: all operands batched, in the first and in the last dimension, or only one;
    `out_dims=-1`. A tensor that is written to and is not batched takes no batched result."""
    for subject in row.subjects():
        others = len(subject.call.tensors) - 1
        in_dims = [[0] * (others + 1), [-1] * (others + 1), [0] + [None] * others]
        if row.kind != "in-place":
            in_dims.append([None] * others + [0])
        for level in in_dims:
            _check(subject, [level], out_dim=-1)
        if row.kind == "out" or (row.kind == "in-place" and others):
            _check_that_an_unbatched_tensor_takes_no_batch(subject)
    if row.kind == "in-place" and others and (torchs := row.of_torch()):
        _check_that_an_unbatched_tensor_takes_no_batch(torchs.subjects()[0])


def nested_vmap(row):
    """Against two loops, with operands that are batched in both or in one."""
    for subject in row.subjects():
        others = len(subject.call.tensors) - 1
        everything, first = [0] * (others + 1), [0] + [None] * others
        _check(subject, [everything, everything], out_dim=0)
        _check(subject, [[-1] * (others + 1), [1] * (others + 1)], out_dim=-1)
        _check(subject, [first, everything], out_dim=0)
        if others and row.kind != "in-place":
            _check(subject, [first, [None] + [0] * others], out_dim=0)


def vmap_of_grad(row):
    """Per-sample gradients, where every operand is a sample's own and where the first alone is."""
    for subject in row.subjects():
        tensors = subject.call.tensors
        for level in ([0] * len(tensors), [0] + [None] * (len(tensors) - 1)):
            given = [batch(t, dim, 3) for t, dim in zip(tensors, level)]
            expected = looped(gradient_of(subject.expected, tensors), [level], given)
            function = torch.func.vmap(gradient_of(subject.pure, tensors), tuple(level))
            torch.testing.assert_close(list(function(*given)), expected)


def jvp(row):
    """Values and tangents, with a tangent on every operand."""
    for subject in row.subjects():
        primals = tuple(subject.call.tensors)
        tangents = directions(primals)
        expected = torch.func.jvp(lambda *t: tuple(subject.expected(*t)), primals, tangents)
        torch.testing.assert_close(torch.func.jvp(subject.pure, primals, tangents), expected)
