# SPDX-License-Identifier: BSD-3-Clause
"""The compiled module `torchext._runtime`, loaded on first use: what exists once in a process.

A library that is installed brings one, so that nothing is compiled where it runs.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import sysconfig
import threading
import types
from pathlib import Path

import torchext

from .built_library import require_fit
from .toolchain import record

_NAME = "torchext._runtime"
_loading = threading.RLock()


def runtime() -> types.ModuleType:
    """Return torchext._runtime, compiled now if no library brought it and the cache has none.

    ImportError where torch is missing and where it cannot be compiled.
    """
    if _NAME not in sys.modules:
        with _loading:
            load_beside(str(Path(__file__).with_name("_C.so")))  # of torchext's own operators
            if _NAME not in sys.modules:
                from .toolchain.runtime_module import built

                _load(built())
    return sys.modules[_NAME]


def load_beside(library: str) -> None:
    """Load the module that a library brought, if it is the first and this torchext's."""
    path = record.runtime_path(library)
    if _NAME in sys.modules or not os.path.exists(path):
        return
    try:
        built_for = require_fit(library)
    except ImportError:
        return
    is_for_this_python = built_for.runtime == sysconfig.get_config_var("SOABI")
    if is_for_this_python and built_for.torchext == torchext.__version__:
        _load(path)


def _load(path: str) -> None:
    with _loading:
        if _NAME not in sys.modules:
            loader = importlib.machinery.ExtensionFileLoader(_NAME, path)
            spec = importlib.util.spec_from_file_location(_NAME, path, loader=loader)
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
            sys.modules[_NAME] = module
