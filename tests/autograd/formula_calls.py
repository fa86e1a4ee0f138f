# SPDX-License-Identifier: BSD-3-Clause
"""One call for each operator with formulas, of a 2 x 3 float64 tensor that all depend on."""

import torch
from plain_calls import Call


def other() -> torch.Tensor:
    return torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=torch.float64)


def typed_arguments() -> dict:
    """A value for every argument of `typed` but the first, each of which counts in the result."""
    return {
        "a": 2, "b": 3, "c": [1, 2, 3], "d": [4, 5], "e": 0.75, "f": True, "g": 1.5, "h": 2.5,
        "i": "long enough to be on the heap", "j": [6, 7], "k": [0.5, 1.5], "l": torch.float64,
        "m": [True, True], "n": [8, 9], "o": "also long enough to be on the heap",
        "p": torch.device("cpu"), "q": torch.channels_last, "r": 12, "s": 0.125, "t": True,
        "u": [1, 2.5], "v": 14, "w": ["a", "bc"], "x": 1 + 2j, "y": torch.strided,
        "z": torch.Generator(),
    }  # fmt: skip


def _clash(ops, x):
    return (ops.clash(x, other(), 2.0, 3, other(), x, 1.5, True, 0.5, x),)


def _clash_list(ops, x):
    return (ops.clash_list([x[0], x[1]], x[0], 2.0, 3.0, 0.5),)


ALL: dict[str, Call] = {
    "product": lambda ops, x: (ops.product(x, other()),),
    "product (self)": lambda ops, x: (ops.product(x, x),),
    "product (Scalar)": lambda ops, x: (ops.product.Scalar(x, 2.5),),
    "expo": lambda ops, x: (ops.expo(x),),
    "sine_cosine": lambda ops, x: ops.sine_cosine(x),
    "sum_difference": lambda ops, x: ops.sum_difference(x, other()),
    "sum_difference (other)": lambda ops, x: ops.sum_difference(other(), x),
    "weighted": lambda ops, x: (ops.weighted(x, other(), x, 2.0),),
    "weighted (two)": lambda ops, x: (ops.weighted(other(), x),),
    "scaled_or_not": lambda ops, x: (ops.scaled_or_not(x),),
    "scaled_or_not (given)": lambda ops, x: (ops.scaled_or_not(other(), x),),
    "squares": lambda ops, x: (ops.squares([x, other(), x], 1.5),),
    "times_total": lambda ops, x: (ops.times_total(other(), [x, other(), x]),),
    "times_total (self)": lambda ops, x: (ops.times_total(x, [x, other()]),),
    "times_present": lambda ops, x: (ops.times_present(x, [None, other()]),),
    "times_present (others)": lambda ops, x: (ops.times_present(other(), [x, None, x]),),
    "halves": lambda ops, x: tuple(ops.halves(x)),
    "rows_at": lambda ops, x: (ops.rows_at(x, torch.tensor([1, 0, 1])),),
    "ignores_other": lambda ops, x: (ops.ignores_other(x, other()),),
    "lacks_other": lambda ops, x: (ops.lacks_other(x, other()),),
    "defers_other": lambda ops, x: (ops.defers_other(x, other()),),
    "value_and_index": lambda ops, x: (ops.value_and_index(x)[0],),
    "float_and_value": lambda ops, x: (ops.float_and_value(x)[1],),
    "differentiable_if": lambda ops, x: (ops.differentiable_if(x, True),),
    "pair_if": lambda ops, x: (ops.pair_if(x, False)[1],),
    "total": lambda ops, x: (ops.total(x),),
    "as_dtype": lambda ops, x: (ops.as_dtype(x, torch.float64),),
    "typed": lambda ops, x: (ops.typed(x, **typed_arguments()),),
    "flagged": lambda ops, x: (ops.flagged(x, [False, True]),),
    "typed_symint": lambda ops, x: (ops.typed_symint(x, 2, [3, 4], [5], 6),),
    "clash": _clash,
    "clash_list": _clash_list,
    "clash_results": lambda ops, x: ops.clash_results(x),
    "clash_result": lambda ops, x: (ops.clash_result(x),),
}
