# SPDX-License-Identifier: BSD-3-Clause
"""Builds composed operators into libraries, in batches, and compares them with their references.

`make fuzz-operators`: each batch in a process of its own,
in a folder below build/fuzz. Prints every difference, and how to draw its batch again; ends with 1
where there is one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import batches
from compositions import KINDS, Composition, compositions, overload_sets, texts
from hypothesis import HealthCheck, Phase, given, seed, settings
from library_build import build, by_clang

if TYPE_CHECKING:
    from torchext.testing.report import Cell

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_SETUP = """\
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "{namespace}_library",
    namespace="{namespace}",
    native_functions="native_functions.yaml",
    derivatives="derivatives.yaml",
    sources=["kernels.cpp"],
)
setup(name="{namespace}", ext_modules=[library], cmdclass={{"build_ext": BuildExtension}})
"""


def drawn(count: int, number: int, kind: str | None = None) -> list[Composition]:
    """So many operators, or a few more, always the same for a number; all of one kind if given."""
    sets = overload_sets("@") if kind is None else compositions(kind, "@", "").map(lambda c: [c])
    found: list[Composition] = []
    names = iter(range(count))

    @seed(number)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(sets)
    def draw(cases: list[Composition]) -> None:
        if len(found) < count:
            index = next(names)
            found.extend(case.called(f"f{index}") for case in cases)

    draw()
    return found


def write(folder: Path, namespace: str, cases: list[Composition]) -> None:
    """A project of a library with the operators."""
    folder.mkdir(parents=True, exist_ok=True)
    native, derivatives, kernels = texts(cases, namespace)
    (folder / "native_functions.yaml").write_text(native)
    (folder / "derivatives.yaml").write_text(derivatives)
    (folder / "kernels.cpp").write_text(kernels)
    (folder / "setup.py").write_text(_SETUP.format(namespace=namespace))


def compare(namespace: str, folder: Path, cases: list[Composition], check: bool) -> list[str]:
    """Every difference between the operators of a library that is built and their references."""
    import torch
    from composed_calls import differences

    import torchext
    from torchext import testing

    ops = torchext.load_library(folder / f"{namespace}_library.so")
    found = []
    if check:
        names = [n for case in cases for n in (case.name, case.inplace, case.out) if n is not None]
        report = testing.check(namespace, operators=names, raise_exception=False)
        references = {case.name: getattr(ops, case.reference) for case in cases}
        found += [
            f"check: {c.operator} fails {c.check}: {c.reason[:500]}"
            for c in report.failures
            if not is_compiled_again(references.get(c.operator), c)
        ]
    for case in cases:
        for dtype in (torch.float64, torch.complex128):
            found += [f"{case.schema}: {what}" for what in differences(ops, case, dtype)]
    return found


def is_compiled_again(reference: Callable | None, cell: Cell) -> bool:
    """Whether a check failed since a view was compiled again for other sizes, as torch's own
    operators are that it consists of: Inductor makes the size of a slice with steps a constant."""
    import torch
    from torch._dynamo.testing import CompileCounterWithBackend

    is_view = reference is not None and "Tensor(a) x)" in str(reference.default._schema)
    if not is_view or cell.check != "compile_dynamic" or "compiled again" not in cell.reason:
        return False
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("inductor")
    compiled = torch.compile(lambda x: reference(x), dynamic=True, backend=counter)
    for sizes in ((3, 4), (6, 4), (3, 8)):
        compiled(torch.randn(sizes))
    return counter.frame_count > 1


def run(number: int, count: int, check: bool, kind: str | None = None) -> int:
    """Build and compare one batch; how many differences there are."""
    namespace = f"composed{number}" if kind is None else f"{kind}{number}"
    cases = drawn(count, number, kind)
    sources = ROOT / "build" / "fuzz" / namespace
    write(sources, namespace, cases)
    begun = time.monotonic()
    folder = build(sources, **by_clang())
    built = time.monotonic()
    found = compare(namespace, folder, cases, check)
    for what in found:
        print(f"batch {number}: {what}", flush=True)
    print(
        f"batch {number}: {len(cases)} operators, {len(found)} differences, "
        f"built in {built - begun:.0f} s, compared in {time.monotonic() - built:.0f} s",
        flush=True,
    )
    return len(found)


def main() -> int:
    options = batches.arguments("operators", 10_000, 100, __doc__.splitlines()[0])
    options.add_argument("--without-check", action="store_true", help="of torchext.testing")
    options.add_argument("--kind", choices=sorted(KINDS), help="all operators are of this kind")
    chosen = options.parse_args()
    if chosen.only:
        return min(run(chosen.first, chosen.batch, not chosen.without_check, chosen.kind), 1)
    more = ["--without-check"] if chosen.without_check else []
    more += ["--kind", chosen.kind] if chosen.kind else []
    return batches.run_batches(__file__, "operators", chosen, more)


if __name__ == "__main__":
    sys.exit(main())
