# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of tests/codegen, which run the command line on spec text."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "codegen"))
