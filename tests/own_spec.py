# SPDX-License-Identifier: BSD-3-Clause
"""The repository's own native_functions.yaml, each entry in upstream's form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from codegen.errors import Errors
from codegen.spec.expansion import expanded

SPEC = Path(__file__).parents[1] / "native_functions.yaml"


def native_functions() -> list[dict[str, Any]]:
    """The entries as PyYAML reads them."""
    errors = Errors()
    text = expanded(SPEC, SPEC.name, errors)
    errors.raise_if_any()
    return yaml.safe_load(text)
