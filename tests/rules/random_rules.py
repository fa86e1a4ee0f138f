# SPDX-License-Identifier: BSD-3-Clause
"""Random expressions of rules about optional tensors, and what Python makes of them.

An expression of a rule has Python's syntax: so Python, which looks at a missing tensor where the
expression comes to it and nowhere else, says what a rule is to do.
"""

from __future__ import annotations

import random
from types import SimpleNamespace

OPTIONAL = ("a", "b", "c")
SCHEMA = "(Tensor x, Tensor? a=None, Tensor? b=None, Tensor? c=None, bool f=False)"


class Expressions:
    """Expressions that are drawn from a source of random numbers, of so many levels at most."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one_of(self, *makers):
        return self.random.choice(makers)()

    def tensor(self) -> str:
        return self.random.choice(("x", *OPTIONAL))

    def shape(self, depth: int) -> str:
        leaf = [lambda: f"{self.tensor()}.shape"]
        if depth == 0:
            return self.one_of(*leaf)
        return self.one_of(
            *leaf,
            lambda: f"{self.shape(depth - 1)} + {self.tensor()}.shape",
            lambda: f"({self.choice(self.shape, depth)})",
            lambda: f"({self.choice(self.shape, depth)})",
        )

    def choice(self, make, depth: int) -> str:
        return f"{make(depth - 1)} if {self.condition(depth - 1)} else {make(depth - 1)}"

    def integer(self, depth: int) -> str:
        leaves = [
            lambda: f"{self.tensor()}.dim",
            lambda: f"{self.tensor()}.numel",
            lambda: f"{self.tensor()}.shape[{self.random.choice((0, 1, -1))}]",
            lambda: str(self.random.randrange(4)),
        ]
        if depth == 0:
            return self.one_of(*leaves)
        return self.one_of(
            *leaves,
            lambda: f"({self.integer(depth - 1)} + {self.integer(depth - 1)})",
            lambda: f"({self.choice(self.integer, depth)})",
        )

    def condition(self, depth: int) -> str:
        optional = self.random.choice(OPTIONAL)
        leaves = [
            lambda: "f",
            lambda: f"{optional} is None",
            lambda: f"{optional} is not None",
            lambda: f"{self.integer(0)} {self.random.choice(('==', '<', '>='))} {self.integer(0)}",
        ]
        if depth == 0:
            return self.one_of(*leaves)
        word = self.random.choice(("and", "or"))
        return self.one_of(
            *leaves,
            lambda: f"{self.shape(depth - 1)} == {self.shape(depth - 1)}",
            lambda: f"{self.integer(depth - 1)} in ({self.integer(depth - 1)}, 2)",
            lambda: f"not ({self.condition(depth - 1)})",
            lambda: f"({self.condition(depth - 1)}) {word} ({self.condition(depth - 1)})",
            lambda: f"({self.condition(depth - 1)}) {word} ({self.condition(depth - 1)})",
            lambda: f"({self.choice(self.condition, depth)})",
        )


def sizes(count: int) -> list[str]:
    """Expressions of a size that look at an optional tensor."""
    return _drawn(count, lambda draw: draw.choice(draw.shape, 3))


def conditions(count: int) -> list[str]:
    """Conditions of more than one part."""
    return _drawn(count, lambda draw: draw.condition(3))


def _drawn(count: int, make) -> list[str]:
    texts: dict[str, None] = {}
    seed = 0
    while len(texts) < count:
        text = make(Expressions(seed))
        seed += 1
        if sum(f"{name}." in text for name in OPTIONAL) > 1 and len(text) > 60:
            texts[text] = None
    return list(texts)


def evaluated(text: str, arguments: dict):
    """What Python makes of an expression; raises AttributeError where it comes to what is missing,
    IndexError where a shape has no such size."""
    names = {name: _as_python(value) for name, value in arguments.items()}
    return eval(text, {}, names)  # a text that is drawn above


def _as_python(value):
    if value is None or isinstance(value, bool):
        return value
    return SimpleNamespace(shape=tuple(value.shape), dim=value.dim(), numel=value.numel())


def write(folder, size_rules: list[str], checks: list[str]) -> None:
    """A project with an operator for each expression."""
    folder.mkdir(parents=True, exist_ok=True)
    entries, kernels = [], []
    for kind, texts in (("sized", size_rules), ("checked", checks)):
        for index, text in enumerate(texts):
            rule = f'size: "{text}"\n    dtype: x' if kind == "sized" else (
                f'check: ["{text}"]\n    like: x'
            )  # fmt: skip
            name = f"{kind}{index}"
            entries.append(
                f"- func: {name}{SCHEMA} -> Tensor\n  meta:\n    {rule}\n  dispatch: CPU\n"
            )
            kernels.append(f"ONES({name})\n")
    (folder / "native_functions.yaml").write_text("\n".join(entries))
    (folder / "kernels.cpp").write_text(_KERNELS + "".join(kernels))
    (folder / "setup.py").write_text(_SETUP)


_KERNELS = """\
#include <randomrules/kernels.h>

using Optional = const std::optional<at::Tensor>&;

#define ONES(name)                                                                \\
  void randomrules::native::name##_cpu(                                                \\
      const at::Tensor&, Optional, Optional, Optional, bool, const at::Tensor& out) { \\
    out.fill_(1);                                                                 \\
  }

"""
_SETUP = """\
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "randomrules_library",
    namespace="randomrules",
    native_functions="native_functions.yaml",
    sources=["kernels.cpp"],
)
setup(name="randomrules", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
"""
