# SPDX-License-Identifier: BSD-3-Clause
"""The columns, the table of every entry that falls short, and the same as JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import torch

from .build import Built
from .compare import COLUMNS
from .spec import Operator

EXPLAINED = Path(__file__).absolute().parent / "explained.txt"
ALL = ("schema", *COLUMNS)
_HEAD = f"{'operators':>9} {'tested':>7} {'match':>6} {'mismatch':>8}"


def stage(operator: Operator, built: Built) -> tuple[str, str]:
    """How far an operator came, as the first thing that is wrong, and why; or ("", "")."""
    name = operator.name
    if name in built.rejected:
        return "rejected by the codegen", built.rejected[name]
    if name in built.broken:
        return "does not compile", built.broken[name]
    if name in built.unlinked:
        return "does not link", ", ".join(map(_helper, built.unlinked[name]))
    return ("does not load", "; ".join(built.orphans)) if built.library is None else ("", "")


def _helper(symbol: str) -> str:
    """The unqualified name in a mangled symbol."""
    parts, rest = [], symbol.removeprefix("_ZN")
    while match := re.match(r"K?(\d+)", rest):
        length = int(match[1])
        parts.append(rest[match.end() : match.end() + length])
        rest = rest[match.end() + length :]
    return parts[-1] if parts else symbol


def untested(operator: Operator, built: Built, reached: Collection[str]) -> str:
    """Why an operator is not compared with aten's, or ''."""
    if operator.is_composite:
        return operator.elsewhere
    if operator.name not in reached:
        return operator.elsewhere or "no OpInfo reaches it"
    return stage(operator, built)[0]


def make(
    operators: list[Operator],
    built: Built,
    reached: Collection[str],
    compared: dict[str, dict[str, dict]],
) -> dict[str, Any]:
    """The report as values; the same input gives the same report."""
    compared = _judged(operators, compared)
    plain = [operator for operator in operators if not operator.is_view]
    views = [operator for operator in operators if operator.is_view]
    reasons = {op.name: why for op in operators if (why := untested(op, built, reached))}
    return {
        "torch": torch.__version__,
        "codegen seconds": built.codegen_seconds,
        "entries": _stages([op for op in plain if op.is_entry], built),
        "entries that return views": _stages([op for op in views if op.is_entry], built),
        "inherited forms": _stages([op for op in plain if not op.is_entry], built),
        "columns": _columns([op.name for op in plain], compared),
        "columns of entries": _columns([op.name for op in plain if op.is_entry], compared),
        "columns of views": _columns([op.name for op in views], compared),
        "errors of no entry": built.orphans,
        "falls short": _shortfalls(operators, built, compared),
        "not tested": dict(sorted(reasons.items())),
        "calls refused": _refused(compared),
        "operators": dict(sorted(compared.items())),
    }


def _judged(
    operators: list[Operator], compared: dict[str, dict[str, dict]]
) -> dict[str, dict[str, dict]]:
    """The comparisons without operators whose formulas are not aten's way on the CPU.

    Where derivatives.yaml has no tangent, aten runs a decomposition of torch; here it is refused.
    """
    found = {}
    for operator in operators:
        columns = compared.get(operator.name)
        if columns is None or operator.is_composite:
            continue
        result = columns["forward"]
        refused = "the mirror raises NotImplementedError" in result["reason"]
        if refused and not operator.has_tangent:
            why = {"status": "not applicable", "reason": "no formula of upstream, which decomposes"}
            columns = {**columns, "forward": {**result, **why}}
        found[operator.name] = columns
    return found


def _stages(operators: list[Operator], built: Built) -> dict[str, int]:
    stages = Counter(stage(operator, built)[0] for operator in operators)
    accepted = len(operators) - stages["rejected by the codegen"]
    compiles = accepted - stages["does not compile"]
    return {
        "entries": len(operators),
        "accepted": accepted,
        "compile": compiles,
        "link and load": stages[""],
    }


def _columns(names: Iterable[str], compared: dict[str, dict]) -> dict[str, dict]:
    found = {}
    tested = [compared[name] for name in names if name in compared]
    for column in ALL:
        results = [columns[column] for columns in tested]
        status = Counter(result["status"] for result in results)
        reasons = Counter(
            result["reason"].partition(":")[0]
            for result in results
            if result["status"] == "not applicable"
        )
        found[column] = {
            "operators": len(results),
            "tested": status["match"] + status["mismatch"],
            "match": status["match"],
            "mismatch": status["mismatch"],
            "not applicable": dict(sorted(reasons.items())),
        }
    return found


def _refused(compared: dict[str, dict[str, dict]]) -> dict[str, int]:
    """How many calls of an operator were left out, since a list has a length that is refused."""
    counts = {
        name: max(result.get("refused", 0) for result in columns.values())
        for name, columns in sorted(compared.items())
    }
    return {name: count for name, count in counts.items() if count}


def _shortfalls(
    operators: list[Operator], built: Built, compared: dict[str, dict]
) -> list[dict[str, str]]:
    known = explanations()
    rows = []
    for operator in sorted(operators, key=lambda operator: operator.name):
        what, why = stage(operator, built)
        # views may be refused: their formulas are not what is generated for them
        if what and not (operator.is_view and operator.name in built.rejected):
            rows.append({"operator": operator.name, "what": what, "why": why})
        for column in ALL:
            result = compared.get(operator.name, {}).get(column, {})
            if result.get("status") == "mismatch":
                rows.append({"operator": operator.name, "what": column, "why": result["reason"]})
    for row in rows:
        row["explanation"] = known.get((row["operator"], row["what"]), "")
    return rows


def explanations() -> dict[tuple[str, str], str]:
    """Operator and column to why they differ: the lines `OPERATOR COLUMN WHY` of a file."""
    lines = EXPLAINED.read_text(encoding="utf-8").splitlines()
    rows = [line.split(None, 2) for line in lines if line.strip() and not line.startswith("#")]
    return {(operator, column): why for operator, column, why in rows}


def is_clean(report: dict[str, Any]) -> bool:
    """Whether nothing falls short but what is explained."""
    explained = all(row["explanation"] for row in report["falls short"])
    return explained and not report["errors of no entry"]


def write(report: dict[str, Any], path: Path) -> None:
    """Write the report as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def text(report: dict[str, Any]) -> str:
    """The report for people: one line a column, and a table of what falls short."""
    lines = [f"torch {report['torch']}, codegen {report['codegen seconds']} s", ""]
    for title in ("entries", "entries that return views", "inherited forms"):
        numbers = ", ".join(f"{count} {name}" for name, count in report[title].items())
        lines.append(f"{title}: {numbers}")
    for title in ("columns", "columns of entries", "columns of views"):
        lines += ["", f"{title:20} {_HEAD}  not applicable"]
        lines += [_column(name, values) for name, values in report[title].items()]
    reasons = Counter(report["not tested"].values())
    lines += ["", "not tested: " + _counts(reasons)]
    for reason in sorted(reasons):
        names = [name for name, why in report["not tested"].items() if why == reason]
        lines.append(f"  {reason}: {', '.join(names)}")
    refused = report["calls refused"]
    lines += ["", f"calls with a list whose length is refused: {_counts(refused)}"]
    lines += ["", f"falls short ({len(report['falls short'])}):"]
    for row in report["falls short"]:
        lines.append(f"  {row['operator']:40} {row['what']:10} {row['why']}")
        lines += [f"  {'':51} explained: {row['explanation']}"] if row["explanation"] else []
    lines += [f"  {'':40} error      {why}" for why in report["errors of no entry"]]
    return "\n".join(lines)


def _column(name: str, values: dict[str, Any]) -> str:
    tested = f"{values['operators']:9} {values['tested']:7}"
    numbers = f"{values['match']:6} {values['mismatch']:8}"
    return f"{name:20} {tested} {numbers}  {_counts(values['not applicable'])}"


def _counts(reasons: dict[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items())) or "-"
