# SPDX-License-Identifier: BSD-3-Clause
"""Specs that are too much: sizes, depths, aliases, and texts that would end what they stand in.

The timeouts say that a run ends, and not how long it may take.
"""

import itertools
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from spec_runs import NATIVE, output, run

ENTRY = "- func: op{i}(Tensor x, int n=1) -> Tensor\n  dispatch:\n    CPU: op{i}_cpu\n"
FORMULA = "- name: op{i}(Tensor x, int n=1) -> Tensor\n  x: grad * n\n"


def last_line(result) -> str:
    return result.report.splitlines()[-1]


@pytest.mark.timeout(120)
def test_ten_thousand_operators(tmp_path):
    native = "".join(ENTRY.format(i=i) for i in range(10_000))
    derivatives = "".join(FORMULA.format(i=i) for i in range(10_000))
    result = run(tmp_path, native, derivatives)
    assert (result.status, result.report) == (0, "")
    assert len([name for name in output(tmp_path / "out") if name.startswith("src/nodes_")]) == 64


@pytest.mark.timeout(120)
def lines_run(folder: Path, operators: int) -> int:
    """How many lines of Python the generator runs for so many operators."""
    native = "".join(ENTRY.format(i=i) for i in range(operators))
    derivatives = "".join(FORMULA.format(i=i) for i in range(operators))
    folder.mkdir()
    count = itertools.count()

    def trace(*_):
        next(count)
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        result = run(folder, native, derivatives)
    finally:
        sys.settrace(previous)
    assert result.status == 0
    return next(count)


def test_the_work_for_an_operator_does_not_grow_with_their_number(tmp_path):
    """benchmarks/codegen.py has the seconds of more of them."""
    lines_run(tmp_path / "caches", 10)
    few, many = (lines_run(tmp_path / str(n), n) for n in (256, 1024))
    assert few > 256 * 1000
    assert many < 4.2 * few


def test_ten_megabytes_of_comments_and_of_text(tmp_path):
    comments = "# nothing\n" * 1_000_000
    result = run(tmp_path, comments + ENTRY.format(i=0))
    assert (result.status, result.report) == (0, "")
    doc = "x" * 10_000_000
    result = run(tmp_path, f"{ENTRY.format(i=0)}  doc: {doc}\n")
    assert (result.status, result.report) == (0, "")


@pytest.mark.timeout(120)
def test_a_large_file_of_mistakes_ends_at_the_thousandth(tmp_path):
    result = run(tmp_path, "".join(f"- func: op{i}(Tesnor x) -> Tensor\n" for i in range(250_000)))
    assert result.status == 1
    assert last_line(result) == "1000 errors; what follows was not read"
    assert result.report.count(": error: ") == 1000


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "open_, close", ["[]", "{}", ("- ", ""), ("a: {", "}"), ("- func: [", "]")]
)
@pytest.mark.parametrize("depth", [100, 10_000, 1_000_000])
def test_deep_nesting(open_, close, depth, tmp_path):
    separator = "" if close else "\n"
    if not close and depth == 1_000_000:
        depth = 1000  # a line for each level, and its indent
        native = "".join(" " * i + "-\n" for i in range(depth))
    else:
        native = open_ * depth + close * depth + separator
    result = run(tmp_path, native)
    assert result.status == 1
    assert result.report.startswith(f"{NATIVE}:")
    assert not (tmp_path / "out").exists()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "native",
    [
        # each list is nine of the one before
        "- &a [x, x, x]\n" + "".join(
            f"- &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n"
            for a, b in zip("abcdefgh", "bcdefghi", strict=True)
        ),
        # a long list in many entries
        "- func: op(Tensor x) -> Tensor\n  tags: &t [" + "core, " * 5000 + "core]\n"
        + "".join(f"- func: op{i}(Tensor x) -> Tensor\n  tags: *t\n" for i in range(5000)),
        # a long text in many entries
        "- func: op(Tensor x) -> Tensor\n  doc: &d " + "x" * 100_000 + "\n"
        + "".join(f"- func: op{i}(Tensor x) -> Tensor\n  doc: *d\n" for i in range(5000)),
        "- &a\n  func: op(Tensor x) -> Tensor\n" + "- *a\n" * 100_000,
        "- &a [*a]\n",
        "- func: &a {x: *a}\n",
    ],
    ids=["laughs", "lists", "texts", "entries", "itself", "itself in a map"],
)  # fmt: skip
def test_aliases_that_repeat_without_end(native, tmp_path):
    result = run(tmp_path, native)
    assert result.status == 1
    assert result.report.startswith(f"{NATIVE}:")
    assert len(result.report) < 10_000_000
    assert not (tmp_path / "out").exists()


# What would end a comment, a string, a line or a statement that it is copied into as it is.
TEXTS = [
    "*/ int x; /*", "// \\", 'R"(")"', "a\\", "\\\\\\", "??/", '"""', "'''", "\\n", "#error x",
    "#include <no_such>", "line\nbreak\n", "tab\tand\rreturn", "é 名 💥", "\u2028", "${x} $name $$",
    "{0} {} %s", '"', "'", "--> */", "*\\\n/ int y; /*",
]  # fmt: skip
# torch reads `class` as no name of an operator.
WORDS = (
    "new delete auto operator template this int union export register at c10 std torch errno NULL "
    "TORCH_CHECK int64_t schema operator_handle registered_0 cpu_registered_0 library"
).split()
FORMULAS = [
    'grad * int64_t(sizeof("*/ // /* \\\" #"))', "grad /* } ; */ * n", "grad\n* n\n",
    "grad\t* '\"'", """grad * int64_t(sizeof("'"))""", "at::mul(grad, n < 0 ? n : '\\'')",
]  # fmt: skip


def quoted(text: str) -> str:
    escaped = "".join(
        c if c.isalnum() or c in " .,()<>?*+-=!" else f"\\U{ord(c):08x}" for c in text
    )
    return f'"{escaped}"'


def test_texts_and_names_that_would_end_what_they_stand_in_compile(tmp_path):
    native, derivatives = [], []
    for i, text in enumerate(TEXTS):
        native.append(ENTRY.format(i=i) + f"  doc: {quoted(text)}\n")
        derivatives.append(FORMULA.format(i=i))
    for i, formula in enumerate(FORMULAS):
        schema = f"formula{i}(Tensor x, int n=1) -> Tensor"
        native.append(f"- func: {schema}\n  dispatch:\n    CPU: k\n")
        derivatives.append(f"- name: {schema}\n  x: {quoted(formula)}\n")
    for i, word in enumerate(WORDS):
        schema = f"{word}(Tensor {word}, int other=1) -> Tensor"
        native.append(f"- func: {schema}\n  dispatch:\n    CPU: word{i}_cpu\n")
        derivatives.append(f"- name: {schema}\n  {word}: grad\n")
    for name in ("twin", "Twin", "twin_", "_twin"):  # what differs little
        native.append(f"- func: {name}(Tensor! self) -> ()\n  dispatch:\n    CPU: k\n")
    result = run(tmp_path, "".join(native), "".join(derivatives))
    assert result.status == 0, result.report
    compile_all(tmp_path / "out")


def compile_all(out: Path) -> None:
    """Check every source that was written, with all warnings as errors."""
    from torch.utils.cpp_extension import include_paths

    from torchext.compat import cxx_standard

    csrc = Path(__file__).parents[2] / "csrc" / "include"
    paths = [out / "include", csrc, csrc / "torchext" / "replacements", *include_paths()]
    python = sysconfig.get_path("include")
    everything = "".join(f'#include "{path}"\n' for path in sorted((out / "src").glob("*.cpp")))
    (out / "all.cpp").write_text(everything)
    compiler = shutil.which("c++")
    assert compiler is not None
    result = subprocess.run(
        [compiler, f"-std={cxx_standard()}", "-fsyntax-only", "-Wall", "-Werror",
         *(f"-I{path}" for path in paths), f"-isystem{python}", str(out / "all.cpp")],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[:4000]
