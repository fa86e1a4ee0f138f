# SPDX-License-Identifier: BSD-3-Clause
"""torch.library.opcheck, all its tests: schema, autograd registration, fake tensors, AOT."""

import pytest
import torch
from cases import operator_of, over_operators, requiring_grad
from samples import SAMPLES


@pytest.mark.parametrize("requires_grad", [False, True], ids=["plain", "requires_grad"])
@over_operators()
def test_opcheck_passes(sample, requires_grad):
    for call in sample.calls(sample.small_shape, torch.float32):
        if requires_grad:
            call = requiring_grad(call)
        torch.library.opcheck(operator_of(sample).call, call.args, call.kwargs)


OTHER_DTYPES = [
    (name, dtype)
    for name in ("mul.Tensor", "sin", "rms_norm")
    for dtype in (torch.int64, torch.complex64, torch.bfloat16)
    if dtype in SAMPLES[name].dtypes
]


@pytest.mark.parametrize(("name", "dtype"), OTHER_DTYPES, ids=str)
def test_opcheck_passes_in_other_dtypes(name, dtype):
    sample = SAMPLES[name]
    for call in sample.calls(sample.small_shape, dtype):
        torch.library.opcheck(operator_of(sample).call, call.args, call.kwargs)
