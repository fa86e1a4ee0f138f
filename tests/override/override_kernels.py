# SPDX-License-Identifier: BSD-3-Clause
"""A kernel in Python that the tests of overrides put in the place of addition."""

from collections.abc import Callable

import torch

ADD = "aten::add.Tensor"


def times(factor: float) -> Callable:
    """A kernel for add: the sum that the next one outside makes, times a number."""

    def kernel(self, other, *, alpha=1):
        return torch.add(self, other, alpha=alpha) * factor

    return kernel
