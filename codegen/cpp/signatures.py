# SPDX-License-Identifier: BSD-3-Clause
"""Types of C++ functions, with the names of their parameters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """One parameter of a C++ function."""

    type: str
    name: str
    default: str | None = None

    @property
    def declaration(self) -> str:
        """`type name`, without the default."""
        return f"{self.type} {self.name}"


@dataclass(frozen=True)
class Signature:
    """A C++ function type with parameter names."""

    result: str
    parameters: tuple[Parameter, ...]

    @property
    def type(self) -> str:
        """The function type: `at::Tensor(const at::Tensor&, int64_t)`."""
        return f"{self.result}({', '.join(p.type for p in self.parameters)})"

    @property
    def pointer(self) -> str:
        """The type of a pointer to such a function."""
        return self.type.replace("(", " (*)(", 1)

    def prototype(self, name: str, defaults: bool = False) -> str:
        """A declaration without semicolon."""
        parts = [
            p.declaration + (f" = {p.default}" if defaults and p.default is not None else "")
            for p in self.parameters
        ]
        return f"{self.result} {name}({', '.join(parts)})"

    @property
    def names(self) -> str:  # to pass them on
        return ", ".join(p.name for p in self.parameters)
