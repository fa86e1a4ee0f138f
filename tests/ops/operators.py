# SPDX-License-Identifier: BSD-3-Clause
"""What the two YAML files say about the operators of `myns`, for the tests to run over."""

from dataclasses import dataclass

import own_spec
import torch

import torchext.ops  # noqa: F401  read_forms() looks the operators up

REPOSITORY = own_spec.SPEC.parent


@dataclass(frozen=True)
class Operator:
    """One entry of native_functions.yaml."""

    name: str  # "add.Tensor"
    is_composite: bool  # differentiates through its parts, as what follows from derivatives does
    has_formula: bool  # in derivatives.yaml, or of its expression
    is_made_apart: bool  # results of rows, which out= forms copy

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


_ENTRIES = [(_schema_name(entry["func"]), entry) for entry in own_spec.native_functions()]
_FORMULAS = {_schema_name(entry["name"]) for entry in own_spec.derivatives()}


def read_operators() -> dict:
    """The functional operators, without those that follow from others by elements."""
    operators = {}
    derived = own_spec.derived_of_elements()
    for name, entry in _ENTRIES:
        if "!" in entry["func"] or name in derived:
            continue
        has_formula = name in _FORMULAS
        operators[name] = Operator(
            name=name,
            is_composite=not has_formula and not {"dispatch", "structured_delegate"} & {*entry},
            has_formula=has_formula,
            is_made_apart="rows" in entry,
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
    for name, entry in _ENTRIES:
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
    return {name: entry["autocast"] for name, entry in _ENTRIES if "autocast" in entry}


def read_cpu_fallbacks(key: str) -> set:
    """The functional operators whose kernel for a dispatch key is that of the CPU, on copies."""
    bases = set()
    for name, entry in _ENTRIES:
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
