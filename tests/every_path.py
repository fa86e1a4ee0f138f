# SPDX-License-Identifier: BSD-3-Clause
"""The paths that an expression is computed on: kernels, and ATen's operators under vmap and
torch.compile."""

import torch
from torch.utils._pytree import tree_map


def _batched(function):
    """The function of a batch of one, by vmap."""

    def called(*given):
        batch = torch.vmap(function)(*(tensor[None] for tensor in given))
        return tree_map(lambda tensor: tensor[0], batch)

    return called


def _compiled(function):
    """Compiled anew, so that no limit of recompilation sends a call to a kernel."""
    torch._dynamo.reset()
    return torch.compile(function, backend="aot_eager_decomp_partition")


PATHS = {"kernel": lambda function: function, "vmap": _batched, "compiled": _compiled}
