# SPDX-License-Identifier: BSD-3-Clause
"""Operator schemas as values: everything that PyTorch's dispatcher accepts, printed exactly."""

from __future__ import annotations

from dataclasses import dataclass

from .types import Alias, Type

__all__ = ["Alias", "Argument", "OperatorName", "Return", "Schema", "Type"]


@dataclass(frozen=True)
class Argument:
    """An argument; `default` is its text in the schema, None where there is none."""

    type: Type
    name: str
    default: str | None = None
    is_kwarg_only: bool = False

    @property
    def is_out(self) -> bool:
        """Whether it is what an out= form writes a result to; one that may be missing is not."""
        return self.is_kwarg_only and self.type.is_write and self.type.name != "Optional"

    def is_returned_as(self, result: Return) -> bool:
        """Whether a result is the argument, or a view of it."""
        own = self.type.alias_set
        return own is not None and own == result.type.alias_set

    def __str__(self) -> str:
        return f"{self.type} {self.name}" + ("" if self.default is None else f"={self.default}")


@dataclass(frozen=True)
class Return:
    """A result, with a name where the schema gives one."""

    type: Type
    name: str | None = None

    def __str__(self) -> str:
        return f"{self.type} {self.name}" if self.name else str(self.type)


@dataclass(frozen=True)
class OperatorName:
    """`namespace::base.overload`; namespace and overload may be empty."""

    base: str
    overload: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        space = f"{self.namespace}::" if self.namespace else ""
        return f"{space}{self.unqualified}"

    @property
    def unqualified(self) -> str:
        """The name without its namespace, as the dispatcher's `def` and `impl` take it."""
        return f"{self.base}.{self.overload}" if self.overload else self.base

    @property
    def identifier(self) -> str:
        """A C++ identifier: `mul.Tensor` is `mul_Tensor`."""
        return f"{self.base}_{self.overload}" if self.overload else self.base

    @property
    def is_private(self) -> bool:
        """Whether the name says that users do not call it: `_mul`; not `__and__`."""
        return self.base.startswith("_") and not self.base.startswith("__")

    @property
    def is_inplace(self) -> bool:
        """Whether the name is that of an in-place form: `mul_`, `__iand__`; not `__and__`."""
        if self.base.startswith("__") and self.base.endswith("__"):
            return self.base[2:3] == "i" and self.base[3:-2] in _INPLACE_DUNDERS
        return self.base.endswith("_") and not self.base.startswith("__")


_INPLACE_DUNDERS = "add sub mul div and or xor lshift rshift mod pow floordiv truediv".split()


@dataclass(frozen=True)
class Schema:
    """`name(arguments) -> returns`."""

    name: OperatorName
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]
    is_vararg: bool = False
    is_varret: bool = False
    has_parenthesised_return: bool = False  # `-> (Tensor)` rather than `-> Tensor`

    def __str__(self) -> str:
        parts: list[str] = []
        for index, arg in enumerate(self.arguments):
            first = not (index and self.arguments[index - 1].is_kwarg_only)
            if arg.is_kwarg_only and first:
                parts.append("*")
            parts.append(str(arg))
        parts += ["..."] if self.is_vararg else []
        return f"{self.name}({', '.join(parts)}) -> {self._returns()}"

    def _returns(self) -> str:
        parts = [str(r) for r in self.returns] + (["..."] if self.is_varret else [])
        if len(parts) == 1 and not self.has_parenthesised_return:
            return parts[0]
        return f"({', '.join(parts)})"

    @property
    def is_out(self) -> bool:
        """Whether results are written into keyword-only mutable arguments (an out= form); one that
        may be missing makes none."""
        return any(a.is_out for a in self.arguments)

    @property
    def mutated(self) -> tuple[Argument, ...]:
        """The arguments that the operator writes to."""
        return tuple(a for a in self.arguments if a.type.is_write)

    @property
    def written_results(self) -> tuple[Argument | None, ...]:
        """For each result the argument that it is; None where it is new, or a view."""
        return tuple(
            next((a for a in self.mutated if a.is_returned_as(result)), None)
            for result in self.returns
        )

    @property
    def is_view(self) -> bool:
        """Whether a result shares memory with an argument that is not written to."""
        return any(r.type.is_alias and not r.type.is_write for r in self.returns)

    @property
    def has_aliases(self) -> bool:
        """Whether the operator writes to arguments, or returns views of them."""
        return bool(self.mutated) or self.is_view

    def argument(self, name: str) -> Argument | None:
        """The argument of this name, if there is one."""
        return next((a for a in self.arguments if a.name == name), None)
