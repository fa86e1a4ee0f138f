# SPDX-License-Identifier: BSD-3-Clause
"""Which functions there are that formulas call without a namespace: ATen's and the helpers'.

Reads, without importing either, the operators that torchgen lists and the headers of torch, where
they are installed beside the generator, and the headers of the derivative helpers.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from ..errors import did_you_mean

_OPERATOR = re.compile(r"^- func: (\w+)", re.MULTILINE)
_WORD = re.compile(r"\b[A-Za-z_]\w*")
_CALL = re.compile(r"\b([a-z_]\w*)\(")
_SUFFIXES = ("_symint", "_outf", "_out")
# The headers that declare what is no operator; those of single operators are listed already.
_HEADERS = ("ATen/*.h", "ATen/core/*.h", "ATen/native/*.h", "c10/*/*.h", "torch/csrc/autograd/*.h")


class TorchFunctions:
    """The functions of the torch whose files these are."""

    def __init__(self, operators: Path, include: Path, helpers: Path) -> None:
        self.operators, self.include, self.helpers = operators, include, helpers

    def has(self, name: str) -> bool:
        """Whether anything of this name stands in what generated code includes."""
        forms = {name, *(name.removesuffix(suffix) for suffix in _SUFFIXES)}
        return bool(forms & self._listed) or name in self._in_headers

    def hint(self, name: str) -> str | None:
        """The function that was meant, where one is close."""
        return did_you_mean(name, self._listed)

    @cached_property
    def _listed(self) -> frozenset[str]:
        helpers = _texts(self.helpers.glob("*.h"))
        found = _OPERATOR.findall(self.operators.read_text(encoding="utf-8"))
        return frozenset(found).union(*map(_CALL.findall, helpers))

    @cached_property
    def _in_headers(self) -> frozenset[str]:
        """Every word of the headers, which are read only where a name is not listed."""
        paths = [path for pattern in _HEADERS for path in self.include.glob(pattern)]
        return frozenset().union(*map(_WORD.findall, _texts([*paths, *self.helpers.glob("*.h")])))


def _texts(paths: Iterable[Path]) -> list[str]:
    return [path.read_text(encoding="utf-8", errors="replace") for path in paths]


def installed_functions(helpers: Path) -> TorchFunctions | None:
    """Those of the installed torch; None where there is none."""
    torchgen, torch = map(importlib.util.find_spec, ("torchgen", "torch"))
    if not (torchgen and torchgen.origin and torch and torch.origin):
        return None
    operators = Path(torchgen.origin).parent / "packaged/ATen/native/native_functions.yaml"
    include = Path(torch.origin).parent / "include"
    if not (operators.is_file() and include.is_dir()):
        return None
    return TorchFunctions(operators, include, helpers)
