# SPDX-License-Identifier: BSD-3-Clause
"""The derivative helpers as operators, `torch.ops.derivative_helpers`, built once and kept."""

import functools
from pathlib import Path

import library_build
import pytest
import torch

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
NAMESPACE = "derivative_helpers"


@pytest.fixture(scope="session", autouse=True)
def helpers():
    """Build and load every bindings_*.cpp; under vmap the helpers' own operations are batched."""
    build = ROOT / "build" / "tests" / f"{NAMESPACE}-{torch.__version__}"
    build.mkdir(parents=True, exist_ok=True)
    # One file: torch's templates, which each file instantiates, are most of what is compiled.
    parts = sorted(FOLDER.glob("bindings_*.cpp"))
    everything = build / "bindings.cpp"
    includes = "".join(f'#include "{part}"\n' for part in parts)
    text = f"#include <torchext/precompiled.h>\n{includes}"
    if not everything.exists() or everything.read_text(encoding="utf-8") != text:
        everything.write_text(text, encoding="utf-8")
    library_build.load(
        NAMESPACE,
        everything,
        build,
        extra_ldflags=["-Wl,-z,defs", "-lc10", "-ltorch_cpu"],
    )
    library = decompose_under_vmap(NAMESPACE)
    yield getattr(torch.ops, NAMESPACE)
    library._destroy()


def decompose_under_vmap(namespace):
    """Make vmap run the kernels of a namespace's operators in place of a loop over the batch."""
    library = torch.library.Library(namespace, "IMPL")
    kernel = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    for name in torch._C._dispatch_get_all_op_names():
        if name.startswith(f"{namespace}::"):
            base, _, overload = name.removeprefix(f"{namespace}::").partition(".")
            packet = getattr(getattr(torch.ops, namespace), base)
            op = getattr(packet, overload or "default")
            library.impl(op, functools.partial(op.redispatch, kernel), "FuncTorchBatched")
    return library
