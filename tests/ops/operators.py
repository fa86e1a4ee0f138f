# SPDX-License-Identifier: BSD-3-Clause
"""What the two YAML files say about the operators of `myns`, for the tests to run over."""

from dataclasses import dataclass
from pathlib import Path

import own_spec
import torch
import yaml

import torchext.ops  # noqa: F401  read_forms() looks the operators up

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
    if file_name == own_spec.SPEC.name:
        return own_spec.native_functions()
    return yaml.safe_load((REPOSITORY / file_name).read_text())


def _read(file_name: str, key: str) -> list:
    return [(_schema_name(entry[key]), entry) for entry in _entries(file_name)]


def read_operators() -> dict:
    """The functional operators."""
    with_formula = {name for name, _ in _read("derivatives.yaml", "name")}
    operators = {}
    for name, entry in _read("native_functions.yaml", "func"):
        if "!" in entry["func"]:
            continue
        is_structured = "structured_delegate" in entry
        dispatch = entry.get("dispatch") or {"CompositeImplicitAutograd": name}
        operators[name] = Operator(
            name=name,
            is_composite="CompositeImplicitAutograd" in dispatch and not is_structured,
            has_formula=name in with_formula,
        )
    return operators


@dataclass(frozen=True)
class Form:
    """An operator that writes its result: an in-place or out= form of a functional one."""

    name: str  # "add_.Tensor", "add.out"
    functional: str  # "add.Tensor"
    outputs: tuple  # names of the keyword arguments that it writes to; none: it is in-place

    @property
    def call(self):
        """The overload in torch.ops.myns."""
        base, _, overload = self.name.partition(".")
        return getattr(getattr(torch.ops.myns, base), overload or "default")

    @property
    def is_inplace(self) -> bool:
        return not self.outputs


def read_forms() -> dict:
    """The operators that write, each with the functional one of the same name."""
    functional = {name.partition(".")[0]: name for name in read_operators()}
    forms = {}
    for name, entry in _read("native_functions.yaml", "func"):
        for part in (name, *str(entry.get("autogen", "")).split(",")):
            base, _, overload = part.strip().partition(".")
            is_out = overload.endswith("out")
            if not is_out and (not base.endswith("_") or not base):
                continue
            schema = getattr(getattr(torch.ops.myns, base), overload or "default")._schema
            outputs = tuple(a.name for a in schema.arguments if a.is_out)
            forms[part.strip()] = Form(part.strip(), functional[base.rstrip("_")], outputs)
    return forms


def read_policies() -> dict:
    """Operator to its autocast policy."""
    entries = _read("native_functions.yaml", "func")
    return {name: entry["autocast"] for name, entry in entries if "autocast" in entry}


def read_cpu_fallbacks(key: str) -> set:
    """The functional operators whose kernel for a dispatch key is that of the CPU, on copies."""
    bases = set()
    for name, entry in _read("native_functions.yaml", "func"):
        for keys, kernel in entry.get("dispatch", {}).items():
            if kernel == "cpu_fallback" and key in keys.replace(" ", "").split(","):
                bases.add(name.partition(".")[0])
    return {name for name in read_operators() if name.partition(".")[0] in bases}


def autocast_dtype(policy, dtypes, lower):
    """The dtype that a policy casts arguments of `dtypes` to, float64 aside."""
    if policy == "fp32" or (policy == "promote" and torch.float32 in dtypes):
        return torch.float32
    return lower


OPERATORS = read_operators()
FORMS = read_forms()
