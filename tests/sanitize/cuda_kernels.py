# SPDX-License-Identifier: BSD-3-Clause
"""Every operator of myns with CUDA kernels, and its backward, on the host: the machine that runs
them is built with the sanitizer, and so is all of the library but the kernels.

python cuda_kernels.py OBJECT CALLS
"""

import sys

import torch
from leaks.memory import subjects

import torchext
import torchext.testing
from torchext.testing import cuda_on_host

torchext.testing.device()
cuda_on_host.open_object(sys.argv[1], "myns")
with torchext.fallback.mode("silent"):
    for _, call in subjects("myns", "torchext"):
        for _ in range(int(sys.argv[2])):
            call()
assert cuda_on_host.launches() > 100
# An error ends a launch in the middle, with threads on stacks of their own.
rows = torch.randn(100, 300, device="torchext")
expected = torch.ops.myns.softmax(rows, 1).cpu()
for _ in range(int(sys.argv[2])):
    with cuda_on_host.schedule(most_steps=1000):
        try:
            torch.ops.myns.softmax(rows, 1)
            raise SystemExit("error: a launch of any number of steps is taken")
        except RuntimeError as error:
            assert "no thread has ended" in str(error)
    assert torch.equal(torch.ops.myns.softmax(rows, 1).cpu(), expected)
