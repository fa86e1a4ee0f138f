# SPDX-License-Identifier: BSD-3-Clause
"""What tests of operators share: a device without hardware, and checks that every operator of a
library should pass."""

from .checking import CheckError, check
from .device import device
from .report import Cell, Report, State

__all__ = ["Cell", "CheckError", "Report", "State", "check", "device"]
