# SPDX-License-Identifier: BSD-3-Clause
"""One kernel per operator of the mirror, which forwards to aten's operator below autograd.

The manifest of the codegen gives the prototypes, so that a kernel takes what its wrapper passes.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from pathlib import Path

from torchgen.model import OperatorName

from .spec import Operator

MOST_SHARDS = 32

_SOURCE = """\
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/core/IListRef.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
{includes}

namespace {namespace}::native {{

{kernels}
}} // namespace {namespace}::native
"""

_KERNEL = """\
{prototype} {{
  at::AutoDispatchBelowADInplaceOrView guard;
  return at::_ops::{handle}::call({arguments});
}}
"""
_PARAMETERS = re.compile(
    r"^(?P<result>.*?)\b[\w:]*::(?P<name>\w+)\((?P<parameters>.*)\)$", re.DOTALL
)
_NAME = re.compile(r"(\w+)\s*(?:=.*)?$")


def write(
    namespace: str, operators: Iterable[Operator], manifest: list[dict], folder: Path
) -> list[Path]:
    """Write the kernels that the manifest asks for; returns their sources."""
    by_kernel = {operator.kernel: operator for operator in operators}
    count = min(MOST_SHARDS, 1 << (len(by_kernel) // MOST_SHARDS).bit_length())
    shards: dict[int, list[tuple[Operator, str]]] = {index: [] for index in range(count)}
    for kernel in manifest:
        operator = by_kernel[kernel["name"].rpartition("::")[2]]
        index = zlib.crc32(_header(operator).encode()) % count
        shards[index].append((operator, kernel["prototype"]))
    folder.mkdir(parents=True, exist_ok=True)
    sources = []
    for index, kernels in shards.items():
        path = folder / f"kernels_{index}.cpp"
        if not kernels:
            path.unlink(missing_ok=True)
            continue
        text = _text(namespace, kernels)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        sources.append(path)
    return sources


def _text(namespace: str, kernels: list[tuple[Operator, str]]) -> str:
    headers = sorted({_header(operator) for operator, _ in kernels})
    return _SOURCE.format(
        namespace=namespace,
        includes="\n".join(f"#include <ATen/ops/{header}>" for header in headers),
        kernels="\n".join(_kernel(operator, prototype) for operator, prototype in kernels),
    )


def _header(operator: Operator) -> str:
    return f"{OperatorName.parse(operator.name).name.base}_ops.h"


def _kernel(operator: Operator, prototype: str) -> str:
    found = _PARAMETERS.match(prototype)
    assert found, prototype
    return _KERNEL.format(
        prototype=f"{found['result']}{found['name']}({found['parameters']})",
        handle=operator.handle,
        arguments=", ".join(_names(found["parameters"])),
    )


def _names(parameters: str) -> list[str]:
    """The names of the parameters of a prototype."""
    depth, begin, parts = 0, 0, []
    for index, char in enumerate(parameters):
        depth += (char in "<({[") - (char in ">)}]")
        if char == "," and depth == 0:
            parts.append(parameters[begin:index])
            begin = index + 1
    parts.append(parameters[begin:])
    return [_NAME.search(part.strip())[1] for part in parts if part.strip()]
