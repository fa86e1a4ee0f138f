# SPDX-License-Identifier: BSD-3-Clause
"""Every operator of myns, and its backward, on the test device: through the fallback to the CPU.

python on_device.py CALLS
"""

import sys

from leaks.memory import subjects

import torchext
import torchext.testing

torchext.testing.device()
with torchext.fallback.mode("silent"):
    for _, call in subjects("myns", "torchext"):
        for _ in range(int(sys.argv[1])):
            call()
assert torchext.fallback.stats()
