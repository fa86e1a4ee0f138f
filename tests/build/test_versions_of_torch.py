# SPDX-License-Identifier: BSD-3-Clause
"""Where the versions of torch differ is said in one header and in one Python module."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = {"csrc/include/torchext/compat.h", "torchext/compat.py"}
ASKS = re.compile(
    r"TORCH_VERSION_(MAJOR|MINOR|PATCH)|torch\.(__version__|version\.\w+)\s*([<>!=]|\.(split|starts))"
    r"|\bversion\(\)\s*[<>=!]|hasattr\(torch\b"
)


def test_nothing_else_asks_for_the_version_of_torch():
    sources = [
        path
        for folder in ("csrc", "torchext", "codegen")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".h", ".cpp", ".cu", ".cuh", ".py")
    ]
    asking = {
        path.relative_to(ROOT).as_posix()
        for path in [*sources, ROOT / "setup.py"]
        if ASKS.search(path.read_text(encoding="utf-8"))
    }
    assert asking == PLACES
