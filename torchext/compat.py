# SPDX-License-Identifier: BSD-3-Clause
"""What differs between the versions of torch that are supported, on the side of Python.

Each difference with the version that brought or ended it. csrc/include/torchext/compat.h is the
side of C++; nothing else in the project asks for a version of torch.
"""

from __future__ import annotations


def version() -> tuple[int, int]:
    """Return major and minor of the torch that is installed."""
    import torch

    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def cxx_standard() -> str:
    """Return the standard of C++ that torch's headers are compiled with: C++20 from 2.13 on."""
    return "c++20" if version() >= (2, 13) else "c++17"
