# SPDX-License-Identifier: BSD-3-Clause
"""Fields of a record that are keys of a YAML file: `load` accepts just these, and docs/language.md
is written from their descriptions."""

from __future__ import annotations

import dataclasses
from typing import Any

_REQUIRED = object()


def key(
    doc: str,
    form: str,
    default: Any = _REQUIRED,
    *,
    is_extension: bool = False,
    without_effect: str | None = None,
) -> Any:
    """A field that is a YAML key.

    doc says what it decides; form is one of text, flag, list, map, schema; without_effect says why
    a key that upstream knows changes nothing in what is generated here.
    """
    metadata = {
        "doc": doc,
        "form": form,
        "is_extension": is_extension,
        "without_effect": without_effect,
    }
    if default is _REQUIRED:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def spec_keys(record: type) -> dict[str, dataclasses.Field[Any]]:
    """The YAML keys of a record type, in the order of its fields."""
    return {f.name: f for f in dataclasses.fields(record) if "doc" in f.metadata}
