# SPDX-License-Identifier: BSD-3-Clause
"""What the two YAML files say about the operators of `myns`, for the tests to run over."""

from dataclasses import dataclass
from pathlib import Path

import torch
import yaml

REPOSITORY = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Operator:
    """One entry of native_functions.yaml."""

    name: str  # "add.Tensor"
    is_composite: bool  # CompositeImplicitAutograd: differentiates through its parts
    has_formula: bool  # derivatives.yaml has an entry for it

    @property
    def base_name(self) -> str:
        return self.name.partition(".")[0]

    @property
    def qualified_name(self) -> str:
        """As error messages spell the operator, without its overload."""
        return f"myns::{self.base_name}"

    @property
    def call(self):
        """The overload in torch.ops.myns."""
        packet = getattr(torch.ops.myns, self.base_name)
        return getattr(packet, self.name.partition(".")[2] or "default")

    @property
    def node_name(self) -> str:
        """As upstream names autograd nodes: rms_norm_backward has RmsNormBackwardBackward0."""
        return "".join(word.capitalize() for word in self.base_name.split("_")) + "Backward0"


def _schema_name(schema: str) -> str:
    return schema.partition("(")[0].strip()


def _entries(file_name: str) -> list:
    return yaml.safe_load((REPOSITORY / file_name).read_text())


def read_operators() -> dict:
    with_formula = {_schema_name(entry["name"]) for entry in _entries("derivatives.yaml")}
    operators = {}
    for entry in _entries("native_functions.yaml"):
        name = _schema_name(entry["func"])
        dispatch = entry.get("dispatch") or {"CompositeImplicitAutograd": name}
        operators[name] = Operator(
            name=name,
            is_composite="CompositeImplicitAutograd" in dispatch,
            has_formula=name in with_formula,
        )
    return operators


OPERATORS = read_operators()
