# SPDX-License-Identifier: BSD-3-Clause
"""Builds random expressions into libraries, in batches, and compares them with torch's operators.

`make fuzz-expressions` builds batches after its other expressions, each in a process of its own and
in a folder below build/fuzz. Prints every difference, and how to draw its batch again; ends with 1
where there is one.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import time
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from batches import drawn_one_by_one, in_batches
from hypothesis import strategies as st
from library_build import build, by_clang

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE.parent / "fused")]
from expression_strategies import expressions, rows_of  # noqa: E402

from codegen.fused.extents import Extent, extent  # noqa: E402
from codegen.fused.reading import Mistake, read  # noqa: E402
from codegen.fused.tree import Tree, in_order, names  # noqa: E402

_SETUP = """\
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "{namespace}_library", namespace="{namespace}", native_functions="native_functions.yaml"
)
setup(name="{namespace}", ext_modules=[library], cmdclass={{"build_ext": BuildExtension}})
"""
# Arguments, in the order of a schema, and what an expression knows of them.
TYPES = {"x": "Tensor", "y": "Tensor", "z": "Tensor", "s": "Tensor", "i": "Tensor",
         "w": "Tensor?", "a": "float", "k": "Scalar"}  # fmt: skip
KINDS = {name: type_.replace("Tensor", "tensor") for name, type_ in TYPES.items()}
OF_ROWS = frozenset({"s", "i"})
_OPTIONS = ["a", "k", "(1 if w is None else w)", "(x if w is None else w)"]
# Parts of an expression: few are tested elsewhere, and many have second derivatives of hundreds.
_LEAST, _MOST = 8, 60


@dataclass(frozen=True)
class Case:
    """An operator, and the expressions that its results are."""

    key: str
    expressions: tuple[str, ...]
    name: str = "f"

    @property
    def is_of_rows(self) -> bool:
        return self.key == "rows"

    @functools.cached_property
    def trees(self) -> list[Tree]:
        return [read(e, self.kinds, of_rows=self.of_rows) for e in self.expressions]

    @property
    def kinds(self) -> dict[str, str]:
        return {**KINDS, "n": "int"} if self.is_of_rows else KINDS

    @property
    def of_rows(self) -> Set[str] | None:
        return OF_ROWS if self.is_of_rows else None

    @property
    def arguments(self) -> list[str]:
        used = {name for tree in self.trees for name in names(tree)}
        return [name for name in TYPES if name in used]

    @property
    def schema(self) -> str:
        arguments = ", ".join(f"{TYPES[name]} {name}" for name in self.arguments)
        results = ", ".join(["Tensor"] * len(self.trees))
        return f"{self.name}({arguments}) -> {results if len(self.trees) == 1 else f'({results})'}"

    @property
    def entry(self) -> str:
        lines = "".join(f"    - {expression}\n" for expression in self.expressions)
        return f"- func: {self.schema}\n  {self.key}:\n{lines}"


def _is_an_operator(case: Case) -> bool:
    """Whether an entry may have the expressions; other tests are of those that none may have."""
    try:
        trees = case.trees
    except Mistake:
        return False
    if not {*"xyz"} & {*case.arguments}:
        return False
    if case.is_of_rows and any(extent(t, case.kinds) is Extent.CALL for t in trees):
        return False
    return _LEAST <= len({part for tree in trees for part in in_order(tree)}) <= _MOST


def _cases(key: str, text: st.SearchStrategy[str]) -> st.SearchStrategy[Case]:
    """Of one result, or of two."""
    one, two = st.tuples(text), st.tuples(text, text)
    return st.one_of(one, one, two).map(lambda texts: Case(key, texts)).filter(_is_an_operator)


CASES = st.one_of(_cases("pointwise", expressions(_OPTIONS)), _cases("rows", rows_of(_OPTIONS[:3])))


def drawn(count: int, number: int) -> list[Case]:
    """So many operators, always the same for a number."""
    cases = drawn_one_by_one(CASES, count, number)
    return [dataclasses.replace(case, name=f"f{index}") for index, case in enumerate(cases)]


def write(folder: Path, namespace: str, cases: list[Case]) -> None:
    """A project of a library with the operators."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "native_functions.yaml").write_text("".join(case.entry for case in cases))
    (folder / "setup.py").write_text(_SETUP.format(namespace=namespace))


def run(number: int, size: int) -> int:
    """Build and compare one batch; how many differences there are."""
    import torchext

    namespace = f"expressions{number}"
    cases = drawn(size, number)
    sources = ROOT / "build" / "fuzz" / namespace
    write(sources, namespace, cases)
    begun = time.monotonic()
    ops = torchext.load_library(build(sources, **by_clang()) / f"{namespace}_library.so")
    built = time.monotonic()

    from expression_calls import compared

    count = refused = 0
    for case in cases:
        found = compared(ops, case)
        count, refused = count + len(found.differences), refused + found.refused
        for what in found.differences:
            print(f"batch {number}: {what}", flush=True)
    print(
        f"batch {number}: {len(cases)} expressions, {count} differences, {refused} calls refused, "
        f"built in {built - begun:.0f} s, compared in {time.monotonic() - built:.0f} s",
        flush=True,
    )
    return count


if __name__ == "__main__":
    sys.exit(in_batches(__file__, "expressions", run, total=1000, batch=50))
