# SPDX-License-Identifier: BSD-3-Clause
"""The operators that the model is built of, in two implementations with one interface.

`model.py` calls nothing but an `Ops` object for its element-wise arithmetic, its norms, its gates
and its softmax, so that the same model runs on torchext's operators and on PyTorch's own.
"""

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

import torchext.ops  # noqa: F401  (loads the library: torch.ops.myns has its operators now)

EPS = 1e-6


class Ops(Protocol):
    """What the model asks of an operator library. Shapes broadcast as in PyTorch."""

    name: str

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """`x + y`."""
        ...

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x * y`."""
        ...

    def muladd(self, x: Tensor, y: Tensor, c: float) -> Tensor:
        """`x * y + c`."""
        ...

    def softmax(self, x: Tensor, dim: int) -> Tensor:
        """Softmax over dimension `dim`."""
        ...

    def rms_norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """`(..., d), (d,) -> (..., d)`: x by its root mean square over d, times weight."""
        ...

    def silu_and_mul(self, x: Tensor) -> Tensor:
        """`(..., 2 * d) -> (..., d)`: silu of the first half times the second half."""
        ...


class MynsOps:
    """The operators of torchext's own library, as the dispatcher offers them."""

    name = "myns"

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.ops.myns.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.ops.myns.mul(x, y)

    def muladd(self, x: Tensor, y: Tensor, c: float) -> Tensor:
        return torch.ops.myns.muladd(x, y, c)

    def softmax(self, x: Tensor, dim: int) -> Tensor:
        return torch.ops.myns.softmax(x, dim)

    def rms_norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return torch.ops.myns.rms_norm(x, weight, EPS)

    def silu_and_mul(self, x: Tensor) -> Tensor:
        return torch.ops.myns.silu_and_mul(x)


class TorchOps:
    """The same functions, written with what PyTorch brings."""

    name = "torch"

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        return x * y

    def muladd(self, x: Tensor, y: Tensor, c: float) -> Tensor:
        return x * y + c

    def softmax(self, x: Tensor, dim: int) -> Tensor:
        return torch.softmax(x, dim)

    def rms_norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, weight.shape, weight, EPS)

    def silu_and_mul(self, x: Tensor) -> Tensor:
        first, second = x.chunk(2, dim=-1)
        return F.silu(first) * second
