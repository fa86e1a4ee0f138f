# SPDX-License-Identifier: BSD-3-Clause
"""Conditions that are known at the call: of what is in the branch not taken nothing is computed.

What is missing is NaN here, so that whatever reads it is found.
"""

import itertools

import pytest
import torch
from torch_values import value_of

from codegen.fused.branches import unguarded
from codegen.fused.derivatives import Arguments, gradients, tangent
from codegen.fused.reading import read
from codegen.fused.tree import IsMissing, Name, Number, exchanged, names, text

KINDS = {
    **dict.fromkeys("xy", "tensor"), **dict.fromkeys("vw", "tensor?"), "flag": "bool", "k": "int"
}  # fmt: skip
POINTWISE = [
    "x if w is None else x / w",
    "x / w if w is not None else x",
    "x * y if w is None or v is None else x * log(w) / v",
    "x if w is None and v is None else x * y if w is None or v is None else x / w / v",
    "x * (1 if w is None else w) + (0 if w is None else x / w) / (2 if v is None else v)",
    "(x if w is None else x / w) * (y if v is None else log(v) * (1 if w is None else w))",
    "exp(x if w is None else rsqrt(w) * x) + (0 if w is None else w * w / x)",
    "x if flag else x / y",
    "x / (y - y) if k > 2 else x * y",
    "(x if flag else log(y - y)) + (x * y if not flag else y / (x - x))",
    "x / (y - y) if flag and k > 2 else x if flag or k < 0 else sqrt(y) * x",
    "x if flag else y / (x - x) if w is None else x ** 2 * w",
]
ROWS = [
    "x if w is None else x / sum(w)",
    "x * rsqrt(mean(x ** 2)) * (1 if w is None else w) + (0 if v is None else y / v)",
    "logsumexp(x if w is None else x / w)",
    "softmax(x) if w is None else softmax(x / w) * sum(y)",
    "cat(x if w is None else x / w, y * (1 if v is None else log(v)))",
    "sum(x / (y - y)) if flag else x * sum(y)",
    "x if w is None else x * sum(y * log(w))",
]


def calls(expression):
    """What may be given: which tensors are there, and the numbers."""
    tree = read(expression, KINDS, of_rows=frozenset() if expression in ROWS else None)
    used = names(tree)
    optional = [n for n in used if KINDS[n] == "tensor?"]
    for given in itertools.product([True, False], repeat=len(optional)):
        there = dict(zip(optional, given))
        for flag, k in itertools.product([True, False], [3, 1, -1]):
            if not {"flag", "k"} & {*used} and (flag, k) != (True, 3):
                continue
            yield there, {"flag": flag, "k": k}


def poisoned(tree, there):
    """The expression as it is where some are missing, which then are NaN."""
    missing = {IsMissing(name): Number(not is_there) for name, is_there in there.items()}
    return exchanged(tree, missing)


def tensors(there):
    torch.manual_seed(4)
    given = {name: torch.rand(3, 4, dtype=torch.float64) + 0.5 for name in ("x", "y", *there)}
    return {n: v * float("nan") if not there.get(n, True) else v for n, v in given.items()}


@pytest.mark.parametrize("expression", [*POINTWISE, *ROWS])
def test_nothing_is_computed_of_what_is_missing(expression):
    of_rows = frozenset() if expression in ROWS else None
    tree = read(expression, KINDS, of_rows=of_rows)
    assert not unguarded(tree, KINDS)
    for there, numbers in calls(expression):
        known = Arguments({**KINDS, "n": "int"}, of_rows)
        given = tensors(there)
        wanted = [n for n in names(tree) if n in given and there.get(n, True)]
        leaves = {n: given[n].clone().requires_grad_() for n in wanted}
        own = poisoned(tree, there)
        result = value_of(own, {**given, **numbers, **leaves, "n": 4})
        row = result.dim() == 2 and result.shape[-1] == 1
        grad = torch.rand_like(result.detach())
        expected = torch.autograd.grad(result, list(leaves.values()), grad, allow_unused=True)
        more = frozenset({"grad"}) if row else frozenset()
        kinds = {**known.kinds, "grad": "tensor", **{f"{n}_t": "tensor" for n in wanted}}
        known = Arguments(kinds, None if of_rows is None else more)
        found = gradients({"grad": tree}, wanted, known)
        at = {**given, **numbers, "grad": grad[..., 0] if row else grad, "n": 4}
        along = torch.zeros((), dtype=torch.float64)
        moves = {f"{n}_t": torch.randn(3, 4, dtype=torch.float64) for n in wanted}
        for name, value in zip(wanted, expected, strict=True):
            mine = found[name]
            value = torch.zeros_like(given[name]) if value is None else value
            along = along + (value * moves[f"{name}_t"]).sum()
            if mine is None:
                assert not value.any()
                continue
            assert not unguarded(mine, kinds)
            mine = value_of(poisoned(mine, there), at).expand(3, 4)
            torch.testing.assert_close(
                mine, value, equal_nan=True, msg=lambda m: f"{name}: {text(found[name])} {m}"
            )
        moved = tangent(tree, {n: Name(f"{n}_t") for n in wanted}, known)
        assert not unguarded(moved, kinds)
        moved = value_of(poisoned(moved, there), {**at, **moves})
        torch.testing.assert_close((moved * grad).sum(), along, equal_nan=True)


UNGUARDED = {
    "x * w": {"w"},
    "x if w is None else x * v": {"v"},
    "x * w if w is None else x": {"w"},
    "x * w if w is not None or v is not None else x": {"w"},
    "x * w * v if w is not None and v is not None else x": set(),
    "x if w is None or v is None else v / w": set(),
    "x if w is None and v is None else v / w": {"v", "w"},
    "x if w is None or w > 0 else x / w": set(),
    "x if w > 0 or w is None else x / w": {"w"},
    "x if not (w is not None and v is not None) else x / w + v": set(),
    "(x if w is None else x * v) if v is not None else x": set(),
    "x / w if flag else x": {"w"},
}


@pytest.mark.parametrize("expression", UNGUARDED)
def test_what_may_be_missing_is_asked_for_where_it_is_given(expression):
    assert unguarded(read(expression, KINDS), KINDS) == UNGUARDED[expression]
