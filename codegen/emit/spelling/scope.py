# SPDX-License-Identifier: BSD-3-Clause
"""How names are written inside the namespace of a library's generated code."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scope:
    """A place in a file of generated code that calls an author's kernels `native::name` and meta
    functions `meta::name`."""

    namespace: str
    varying: dict[str, str] = field(default_factory=dict)  # what a template has in place of names

    def name(self, qualified: str) -> str:
        """A class or function."""
        own = f"torchext::generated::{self.namespace}::"
        if qualified.startswith(own):
            short = qualified.removeprefix(own)
        elif qualified.startswith((f"{self.namespace}::native::", f"{self.namespace}::meta::")):
            short = qualified.removeprefix(f"{self.namespace}::")
        else:
            short = f"::{qualified}"
        return self.varying.get(short, short)

    def home(self, home: str) -> str:
        """A value of torchext::Home."""
        return self.varying.get(f"Home::{home}", f"Home::{home}")
