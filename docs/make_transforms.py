# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/transforms.md from the table of tests/transforms: `python docs/make_transforms.py`.

Those tests assert every cell that is printed here, and that the page is what this writes.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
sys.path[1:1] = [str(ROOT), str(TESTS), str(TESTS / "ops"), str(TESTS / "transforms")]

from table_rows import ROWS  # noqa: E402
from transform_table import COLUMNS, Reason, excuse_of, excused_share  # noqa: E402

PAGE = ROOT / "docs" / "transforms.md"
PASSES = "✓"

_PAGE = """\
<!-- Written by docs/make_transforms.py from the table of tests/transforms; edit that. -->

# Every form under every transform

Rows are the forms of every operator of `myns` that the dispatcher knows, columns what is done with
a call. Each cell is a test, `pytest tests/transforms -k mul.Tensor-out-export`, which compares with
torch's own operators: {passes} passes. Of the cells whose form exists {share} % do not, CUDA graphs
aside, each for one of these reasons, which its test asserts:

{reasons}

{table}

What is refused:

{refusals}

What a column is:

{columns}
"""


def page() -> str:
    """The whole page. It is that of a machine without a GPU, wherever it is written."""
    reasons = [f"- {reason.mark}: {reason.value[1]}" for reason in Reason]
    columns = [(name, " ".join(check.__doc__.split())) for name, check in COLUMNS.items()]
    return _PAGE.format(
        passes=PASSES,
        share=f"{100 * excused_share(gpu=False):.1f}",
        reasons="\n".join(reasons),
        table=_table(("operator", "form", *COLUMNS), map(_cells, ROWS)),
        refusals=_table(("transform", "form", "operators", "error"), _refusals()),
        columns=_table(("column", "what is compared"), columns),
    )


def _cells(row) -> list:
    excuses = [excuse_of(row, column, gpu=False) for column in COLUMNS]
    marks = [PASSES if excuse is None else excuse.reason.mark for excuse in excuses]
    return [f"`{row.operator}`", row.kind, *marks]


def _refusals() -> list:
    """One line for an error: of which forms, of all operators that have such a form or of some."""
    found = {}
    for column in COLUMNS:
        for row in ROWS:
            excuse = excuse_of(row, column, gpu=True)
            if excuse and excuse.reason is Reason.REFUSED:
                text = excuse.match.replace(".*", "...").replace("|", "` or `")
                found.setdefault((column, row.kind, f"`{text}`"), []).append(row.operator)
    return [
        (column, kind, _operators(kind, operators), text)
        for (column, kind, text), operators in found.items()
    ]


def _operators(kind: str, operators: list) -> str:
    existing = [row.operator for row in ROWS if row.kind == kind and row.overload]
    return "all" if operators == existing else ", ".join(f"`{name}`" for name in operators)


def _table(head, lines) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
