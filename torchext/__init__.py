# SPDX-License-Identifier: BSD-3-Clause
"""The operator toolchain of PyTorch for libraries that live outside PyTorch's tree.

Importing this package imports neither torch nor a compiled library: the build, the code generator
and the command line work without either. The attributes below load on first use.
"""

import importlib

__version__ = "0.1.0"

# attribute -> the module that has it; an attribute that is a module names itself
_LAZY = {
    "build": "torchext.build",
    "codegen": "torchext.codegen",
    "fallback": "torchext.fallback",
    "find_library": "torchext.library",
    "library": "torchext.library",
    "load_library": "torchext.library",
    "ops": "torchext.ops",
    "override": "torchext.overriding",
    "testing": "torchext.testing",
}


def __getattr__(name: str):
    if name not in _LAZY:
        raise AttributeError(f"module 'torchext' has no attribute {name!r}")
    module = importlib.import_module(_LAZY[name])
    value = module if module.__name__ == f"torchext.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
