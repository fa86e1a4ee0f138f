# SPDX-License-Identifier: BSD-3-Clause
"""Whatever stands in the specs: code, or errors with places in the files; and nothing else.

The same 2,000 cases each time; with TORCHEXT_FUZZ_CASES that many new ones (`make fuzz`: 100,000).
"""

import os
import re
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from spec_runs import DERIVATIVES, NATIVE, output, run
from strategies import cases

CASES = os.environ.get("TORCHEXT_FUZZ_CASES")
PLACE = re.compile(rf"^({re.escape(NATIVE)}|{re.escape(DERIVATIVES)}):(\d+):(\d+): error: \S")


def lines_of(content: bytes) -> list[str]:
    """The lines of a file, broken where YAML breaks them; a byte order mark is no character."""
    text = content.decode("utf-8", "replace").removeprefix("\ufeff")
    return re.split("\r\n|[\n\r\x85\u2028\u2029]", text)


def check(native: bytes, derivatives: bytes) -> None:
    """One run of the command line in an empty folder; the output is all there or not there."""
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), native, derivatives or None)
        written = output(Path(folder, "out")) if Path(folder, "out").exists() else {}
    if result.status == 0:
        assert "manifest.json" in written
        assert result.report == ""
        return
    assert result.status == 1
    assert written == {}
    reported = result.report.splitlines()
    count = re.fullmatch(r"(\d+) errors?", reported[-1])
    places = [place for line in reported if (place := PLACE.match(line))]
    assert count and places and int(count[1]) >= 1, result.report
    files = {NATIVE: lines_of(native), DERIVATIVES: lines_of(derivatives)}
    for name, line, column in (place.groups() for place in places):
        lines = files[name]
        # an empty file, and the end of one, have a place as well
        assert 1 <= int(line) <= max(1, len(lines) + 1), result.report
        text = lines[int(line) - 1] if int(line) <= len(lines) else ""
        assert 1 <= int(column) <= len(text) + 1, result.report


@settings(
    max_examples=int(CASES or 2000),
    derandomize=CASES is None,
    deadline=60_000,  # milliseconds: no case may hang
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
@given(cases)
def test_every_spec_is_code_or_an_error_with_a_place(case):
    check(*case)
