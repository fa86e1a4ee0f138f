# SPDX-License-Identifier: BSD-3-Clause
"""The repository's own two YAML files: each entry in upstream's form, and what follows from the
expressions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from codegen.errors import Errors
from codegen.fused.operators import Lowered, lowered
from codegen.fused.writing import written_derivatives, written_operators
from codegen.spec.expansion import expanded
from codegen.spec.load import load_operators

SPEC = Path(__file__).parents[1] / "native_functions.yaml"
FORMULAS = SPEC.with_name("derivatives.yaml")


def native_functions() -> list[dict[str, Any]]:
    """The operators, as PyYAML reads them."""
    errors = Errors()
    text = expanded(SPEC, SPEC.name, errors) + written_operators(_lowered(errors))
    errors.raise_if_any()
    return yaml.safe_load(text)


def derived_of_elements() -> set[str]:
    """The operators that follow from expressions of elements, whose functions tests/pointwise
    compares one by one, with their derivatives."""
    errors = Errors()
    entries = yaml.safe_load(written_operators(_lowered(errors)))
    errors.raise_if_any()
    return {entry["func"].partition("(")[0] for entry in entries if "pointwise" in entry}


def derivatives() -> list[dict[str, Any]]:
    """The formulas, as PyYAML reads them."""
    errors = Errors()
    text = FORMULAS.read_text() + written_derivatives(_lowered(errors), [])
    errors.raise_if_any()
    return yaml.safe_load(text)


def _lowered(errors: Errors) -> Lowered:
    return lowered("myns", load_operators(SPEC, SPEC.name, errors), [], errors)
