# SPDX-License-Identifier: BSD-3-Clause
"""Where torchext's own C++ is: in the installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path


def folder(part: str) -> Path:
    """Return the folder `part` of csrc; RuntimeError where there is none."""
    parents = Path(__file__).resolve().parents
    candidates = [parents[1] / "csrc", parents[2] / "csrc"]
    for candidate in candidates:
        if (candidate / part).is_dir():
            return candidate / part
    raise RuntimeError(f"torchext finds no csrc/{part} in {[str(path) for path in candidates]}")
