# SPDX-License-Identifier: BSD-3-Clause
"""Compares operators in a process of its own, which may crash without losing the run.

    python -m upstream.worker LIBRARY SAMPLES RESULTS NAME...

appends one line of JSON to RESULTS when an operator begins and one when it is done.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

from . import samples, spec
from .calls import REFUSED, Overload
from .compare import COLUMNS, Pair, compare


def main(arguments: list[str]) -> None:
    library, folder, results, *names = arguments
    import torchext

    torch.set_num_threads(1)
    torchext.load_library(library)
    with open(results, "a", encoding="utf-8") as log, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            print(json.dumps({"begin": name}), file=log, flush=True)
            found = columns(Path(folder), name)
            print(json.dumps({"name": name, "columns": found}), file=log, flush=True)


def columns(folder: Path, name: str) -> dict[str, dict]:
    """What each column says of an operator: status, reason, and how many calls were compared."""
    aten, ours = overload("aten", name), overload(spec.NAMESPACE, name)
    found: dict[str, dict] = {"schema": _schema(name)}
    calls = samples.load(folder, name)
    for column in COLUMNS:
        outcomes = [compare(Pair(aten, ours, call), column) for call in calls]
        found[column] = _summary(outcomes)
    return found


def overload(namespace: str, name: str) -> Overload:
    base, _, own = name.partition(".")
    return Overload(getattr(getattr(getattr(torch.ops, namespace), base), own or "default"))


def _summary(outcomes: list[tuple[str, str]]) -> dict[str, Any]:
    """The worst outcome of all calls, with its reason."""
    refused = sum(why == REFUSED for _, why in outcomes)
    for status in ("mismatch", "match", "not applicable"):
        found = [(number, why) for number, (kind, why) in enumerate(outcomes) if kind == status]
        if found:
            number, why = found[0]
            reason = f"call {number}: {why}" if status == "mismatch" else why
            return {"status": status, "calls": len(found), "refused": refused, "reason": reason}
    return {"status": "not applicable", "calls": 0, "reason": "no call"}


def _schema(name: str) -> dict[str, Any]:
    base, _, own = name.partition(".")
    schemas = [torch._C._get_schema(f"{ns}::{base}", own) for ns in ("aten", spec.NAMESPACE)]
    expected, actual = (str(schema).partition("::")[2] for schema in schemas)
    actual = actual.replace("Tensor(a)[](a)", "Tensor(a)[]")  # a list of views is a view here
    if expected == actual:
        return {"status": "match", "calls": 1, "reason": ""}
    return {"status": "mismatch", "calls": 1, "reason": f"{actual}, expected {expected}"}


if __name__ == "__main__":
    main(sys.argv[1:])
