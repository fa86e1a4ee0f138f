# SPDX-License-Identifier: BSD-3-Clause
"""The in-place operators that have formulas, each beside the one of torch that does the same.

Some inherit the formulas of their functional form, some have their own. Each call writes to its
first tensor and may read the second.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class InPlace:
    """One in-place operator."""

    ours: Callable  # (namespace, written, other)
    torchs: Callable  # (written, other)
    reads_other: bool = False


ALL = {
    "product_": InPlace(lambda ops, x, y: ops.product_(x, y), lambda x, y: x.mul_(y), True),
    "expo_": InPlace(lambda ops, x, y: ops.expo_(x), lambda x, y: x.exp_()),
    "squared_": InPlace(lambda ops, x, y: ops.squared_(x), lambda x, y: x.pow_(2)),
    "neg_": InPlace(lambda ops, x, y: ops.neg_(x), lambda x, y: x.neg_()),
    "scaled_sum_": InPlace(
        lambda ops, x, y: ops.scaled_sum_(x, y, 1.5), lambda x, y: x.add_(y, alpha=1.5), True
    ),
    "decay_": InPlace(lambda ops, x, y: ops.decay_(x, y), lambda x, y: x.mul_(y), True),
    "filled_from_": InPlace(
        lambda ops, x, y: ops.filled_from_(x, y), lambda x, y: x.copy_(2 * y), True
    ),
    "root_": InPlace(lambda ops, x, y: ops.root_(x), lambda x, y: x.sqrt_()),
}
READING = [name for name, call in ALL.items() if call.reads_other]


def both(name, ops):
    """The operator of the library and that of torch, as functions of the same tensors."""
    call = ALL[name]
    return [lambda x, y: call.ours(ops, x, y), call.torchs]


def values():
    """Positive numbers, so that a root has a gradient."""
    numbers = torch.arange(1.0, 7.0, dtype=torch.float64).reshape(2, 3)
    return numbers / 4, numbers.flip(0) / 3
