# SPDX-License-Identifier: BSD-3-Clause
"""The paths that an expression is computed on: kernels, of a batch under vmap too, and ATen's
operators under torch.compile."""

import torch
from functorch.compile import aot_function, min_cut_rematerialization_partition, nop
from torch._inductor.decomposition import select_decomp_table
from torch.utils._pytree import tree_map


def _batched(function):
    """The function of a batch of one, by vmap."""

    def called(*given):
        is_tensor = [isinstance(one, torch.Tensor) for one in given]
        batch = [one[None] if is_one else one for one, is_one in zip(given, is_tensor)]
        dims = tuple(0 if is_one else None for is_one in is_tensor)
        return tree_map(lambda tensor: tensor[0], torch.vmap(function, dims)(*batch))

    return called


def _compiled(function):
    """Compiled anew, so that no limit of recompilation sends a call to a kernel."""
    torch._dynamo.reset()
    return torch.compile(function, backend="aot_eager_decomp_partition")


def traced(function, dynamic=False):
    """What backend "aot_eager_decomp_partition" makes of a function of nothing but its arguments.

    Without Dynamo, which takes most of the time that torch.compile does.
    """

    def called(*given):
        found = aot_function(
            lambda *own: function(*own),  # an operator has not the attributes of a function
            fw_compiler=nop,
            partition_fn=min_cut_rematerialization_partition,
            decompositions=select_decomp_table(),
            dynamic=dynamic,
        )(*given)
        return tuple(found) if isinstance(found, list) else found

    return called


PATHS = {"kernel": lambda function: function, "vmap": _batched, "compiled": _compiled}
