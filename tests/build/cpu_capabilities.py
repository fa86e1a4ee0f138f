# SPDX-License-Identifier: BSD-3-Clause
"""The instruction sets that kernels are compiled for, as ATen calls them, and this machine's."""

import torch

KNOWN = ["DEFAULT", "AVX2", "AVX512"]
BEST = torch.backends.cpu.get_cpu_capability()
ON_THIS_MACHINE = KNOWN[: KNOWN.index(BEST) + 1 if BEST in KNOWN else 1]
