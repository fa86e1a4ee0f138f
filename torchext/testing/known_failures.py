# SPDX-License-Identifier: BSD-3-Clause
"""The file of known failures: one line each, `OPERATOR CHECKS: REASON`.

# an empty line or one that begins with # says nothing
my_ops::sort.out  compile_dynamic: sizes become constants, see issue 12
my_ops::seed      vmap, device: draws random numbers that torch does not know of
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path

_LINE = re.compile(r"(?P<operator>\S+)\s+(?P<checks>\w+(\s*,\s*\w+)*)\s*:\s*(?P<reason>\S.*)")


class KnownFailures:
    """What is expected to fail, and why."""

    def __init__(self, reasons: dict[tuple[str, str], str] | None = None) -> None:
        self.reasons = dict(reasons or {})

    @classmethod
    def read(
        cls,
        path: str | os.PathLike,
        namespace: str,
        operators: Collection[str],
        checks: Collection[str],
        others: Collection[str] = (),
    ) -> KnownFailures:
        """Read a file; ValueError with its line for what names no operator, no check or no reason.

        operators: their names without namespace, which a line may leave out as well. Lines for
        operators of the namespaces `others` are left out.
        """
        found: dict[tuple[str, str], str] = {}
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            match = _LINE.fullmatch(line.strip())
            if match is None:
                raise ValueError(f"{path}:{number}: expected 'OPERATOR CHECKS: REASON'")
            if match["operator"].partition("::")[0] in others:
                continue
            operator = match["operator"].removeprefix(f"{namespace}::")
            if operator not in operators:
                raise ValueError(f"{path}:{number}: '{namespace}' has no operator '{operator}'")
            for check in re.split(r"\s*,\s*", match["checks"]):
                if check not in checks:
                    known = ", ".join(checks)
                    raise ValueError(f"{path}:{number}: there is no check '{check}', but {known}")
                if (operator, check) in found:
                    raise ValueError(f"{path}:{number}: {operator} {check} stands twice")
                found[operator, check] = match["reason"]
        return cls(found)

    def reason(self, operator: str, check: str) -> str | None:
        """Why the check of the operator fails; None where it should pass."""
        return self.reasons.get((operator, check))
