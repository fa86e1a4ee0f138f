# SPDX-License-Identifier: BSD-3-Clause
"""The compiled module `torchext._runtime`, loaded on first use: what exists once in a process."""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path

from .built_library import require_fit


def runtime() -> types.ModuleType:
    """Return torchext._runtime; ImportError where it does not fit the torch that is installed."""
    name = "torchext._runtime"
    if name not in sys.modules:
        require_fit(str(Path(__file__).with_name("_runtime.so")))
        importlib.import_module(name)
    return sys.modules[name]
