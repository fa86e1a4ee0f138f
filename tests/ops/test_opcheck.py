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


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["mul.Tensor", "sin", "rms_norm"])
def test_opcheck_passes_in_other_dtypes(name, dtype):
    sample = SAMPLES[name]
    for call in sample.calls(sample.small_shape, dtype) if dtype in sample.dtypes else ():
        torch.library.opcheck(operator_of(sample).call, call.args, call.kwargs)
