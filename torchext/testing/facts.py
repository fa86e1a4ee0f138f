# SPDX-License-Identifier: BSD-3-Clause
"""What a library's table of operators, which its build puts beside it, says of each."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import torch

from .. import library as libraries
from ..toolchain.record import operator_table_path


@dataclass(frozen=True)
class Facts:
    """One operator, as its entry of native_functions.yaml has it."""

    namespace: str
    name: str  # with its overload: "mul.Tensor"
    schema: str
    location: str  # FILE:LINE of the entry
    functional: str | None  # the functional form of an in-place or out= form
    composite: bool  # has a CompositeImplicitAutograd kernel
    cpu_fallback: list[str]  # dispatch keys whose kernel is the CPU's
    gradients: list[str]  # arguments with a formula
    refuses_gradients: bool  # has no formula, and says so on backward
    own_autograd: bool  # has kernels or formulas for autograd keys of its own
    shape_rule: bool  # sizes are those of `meta:` or of a structured operator's meta function
    dynamic_sizes: bool  # the rule leaves sizes of results to values
    tangents: bool  # has formulas for forward mode
    autocast: str | None
    dtypes: dict[str, dict[str, list[str]]]  # dispatch key -> argument -> names of dtypes
    samples: list[dict[str, Any]]

    def claims(self, *keys: str) -> dict[str, list[str]]:
        """What `dtypes:` says on the first of these dispatch keys that has a kernel of its own."""
        return next((self.dtypes[key] for key in keys if key in self.dtypes), {})

    @property
    def overload(self) -> torch._ops.OpOverload:
        """The operator."""
        return overload_of(self.namespace, self.name)


def overload_of(namespace: str, name: str) -> torch._ops.OpOverload:
    """The operator of a name such as "mul.Tensor" or "neg"."""
    base, _, overload = name.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")


@dataclass(frozen=True)
class Table:
    """What a library has."""

    namespace: str
    operators: list[Facts]  # in the order of their spec
    overrides: list[str]  # PyTorch's own that it has kernels for, such as "aten::add.Tensor"
    beside: list[str]  # those that no entry declares: what traced calls become


def read_table(library: str) -> Table:
    """The table of the shared object at this path.

    Raises FileNotFoundError or ValueError with what to do where a library has no table, or another
    one: it was built by an older torchext.
    """
    path = operator_table_path(library)
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except FileNotFoundError:
        message = f"{library} has no table of operators ({path}); build it again"
        raise FileNotFoundError(message) from None
    try:
        operators = [Facts(content["namespace"], **entry) for entry in content["operators"]]
        return Table(content["namespace"], operators, content["overrides"], content["beside"])
    except (KeyError, TypeError):  # other keys
        message = f"{path} is of another version of torchext; build the library again"
        raise ValueError(message) from None


def table_of(library: str | os.PathLike) -> Table:
    """The table of a library, which is loaded; ValueError where it has no operators of its own."""
    table = read_table(libraries.loaded_path(library))
    if not table.operators:
        raise ValueError(f"{os.fspath(library)} has no operators of its own")
    return table
