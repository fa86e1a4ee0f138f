# SPDX-License-Identifier: BSD-3-Clause
"""Whatever stands in the specs: code, or errors with places in the files; and nothing else.

The same 2,000 cases each time; with TORCHEXT_FUZZ_CASES that many new ones (`make fuzz`: 100,000).
"""

import json
import os
import re
import signal
import string
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from spec_runs import DERIVATIVES, NATIVE, output, run
from strategies import cases, sound

from codegen.errors import Errors
from codegen.spec.expansion import expanded

HANG_SECONDS = 60
CASES = os.environ.get("TORCHEXT_FUZZ_CASES")
EARLIER = "of an earlier run"
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_SPEC_LINE = re.compile(rf"{re.escape(NATIVE)}:\d+".encode())
PLACE = re.compile(rf"^({re.escape(NATIVE)}|{re.escape(DERIVATIVES)}):(\d+):(\d+): error: \S")


def lines_of(content: bytes) -> list[str]:
    """The lines of a file, broken where YAML breaks them; a byte order mark is no character."""
    text = content.decode("utf-8", "replace").removeprefix("\ufeff")
    return re.split("\r\n|[\n\r\x85\u2028\u2029]", text)


def check(native: bytes, derivatives: bytes) -> bool:
    """One run of the command line in an empty folder; the output is all there or not there.

    Returns whether it is there.
    """
    # Seconds of the processor; pytest-timeout has the other clock.
    previous = signal.signal(signal.SIGVTALRM, _hangs)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS)
    try:
        return _check(native, derivatives)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def _hangs(*_) -> None:
    raise TimeoutError(f"a case takes more than {HANG_SECONDS} s")


def _check(native: bytes, derivatives: bytes) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        out.mkdir()
        (out / "manifest.json").write_text(EARLIER)
        result = run(Path(folder), native, derivatives or None)
        written = output(out)
    if result.status == 0:
        manifest = json.loads(written["manifest.json"])
        roles = ("sources", "parts", "python_sources", "python_parts", "python")
        listed = [path for role in roles for path in manifest[role]]
        assert listed and set(listed) <= set(written)
        assert result.report == ""
        for name in written:
            if name.endswith((".cpp", ".h")):
                check_characters(written[name].decode())
        return True
    assert result.status == 1
    assert written == {"manifest.json": EARLIER.encode()}
    reported = result.report.splitlines()
    count = re.fullmatch(r"(\d+) errors?", reported[-1])
    places = [place for line in reported if (place := PLACE.match(line))]
    assert count and len(places) == int(count[1]) >= 1, result.report
    files = {NATIVE: lines_of(native), DERIVATIVES: lines_of(derivatives)}
    for name, line, column in (place.groups() for place in places):
        lines = files[name]
        # an empty file, and the end of one, have a place as well
        assert 1 <= int(line) <= max(1, len(lines) + 1), result.report
        text = lines[int(line) - 1] if int(line) <= len(lines) else ""
        assert 1 <= int(column) <= len(text) + 1, result.report
    return False


def check_characters(cpp: str) -> None:
    """Outside of comments and texts, C++ has letters, digits and signs of ASCII alone."""
    code = COMMENT_OR_TEXT.sub("", cpp)
    assert code.isascii() and not set(code) - set(string.printable), code


def fuzzed(count: int):
    """Settings for so many cases, new ones where TORCHEXT_FUZZ_CASES asks for them."""
    return settings(
        max_examples=count,
        derandomize=CASES is None,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


@fuzzed(int(CASES or 2000))
@given(cases)
def test_every_spec_is_code_or_an_error_with_a_place(case):
    check(*case)


def generated(native: bytes) -> tuple[int, dict[str, bytes]]:
    """The status of a run, and the files without the lines of the spec that they name, and without
    where lines end, which depends on how long those numbers are."""
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), native)
        files = output(Path(folder, "out"))
    return result.status, {name: _without_lines(data) for name, data in files.items()}


def _without_lines(data: bytes) -> bytes:
    whole = re.sub(rb"\n *//     (?=\S)", b" ", data)
    return b"".join(_SPEC_LINE.sub(b"", whole).split()).replace(b'""', b"")


@fuzzed(int(CASES or 2000) // 4)
@given(cases)
def test_the_long_form_of_a_spec_generates_what_it_does(case):
    """Without derivatives, most of which are wrong; `expand` changes nothing the second time."""
    native, _ = case
    status, files = generated(native)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, NATIVE)
        path.write_bytes(native)
        errors = Errors()
        long = expanded(path, NATIVE, errors)
        if errors.count:
            assert status == 1
            return
        path.write_bytes(long.encode())
        assert expanded(path, NATIVE, Errors()) == long
    assert (status, files) == generated(long.encode())


def test_most_sound_specs_are_code():
    """The names alone are wrong in some."""
    are_code = []

    @fuzzed(200)
    @given(sound())
    def run_one(case):
        are_code.append(check(*case))

    run_one()
    assert sum(are_code) > 0.75 * len(are_code)
