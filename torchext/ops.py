# SPDX-License-Identifier: BSD-3-Clause
"""torchext's own operators: `torchext.ops.rms_norm` is `torch.ops.myns.rms_norm`.

Importing this module loads the library, and raises ImportError where it does not fit.
"""

import difflib

from .library import load_library

_namespace = load_library("torchext")


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return getattr(_namespace, name)
    except AttributeError:
        close = difflib.get_close_matches(name, _operator_names(), n=1)
        hint = f", did you mean {close[0]!r}?" if close else ""
        raise AttributeError(f"torchext has no operator {name!r}{hint}") from None


def __dir__() -> list[str]:
    return _operator_names()


def _operator_names() -> list[str]:
    import torch

    prefix = f"{_namespace.name}::"
    everything = torch._C._dispatch_get_all_op_names()
    own = (name.removeprefix(prefix) for name in everything if name.startswith(prefix))
    return sorted({name.split(".")[0] for name in own})
