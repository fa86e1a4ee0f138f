# SPDX-License-Identifier: BSD-3-Clause
"""Every mistake in a spec has one message, with its place; a run with one writes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from spec_runs import output, run

from codegen.__main__ import main
from codegen.errors import Diagnostic, Errors, Location, Source, SpecError, did_you_mean

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("error_table.txt")
GOOD = "- func: mul(Tensor self, Tensor other) -> Tensor\n  dispatch:\n    CPU: mul_cpu\n"
BAD = "- func: mul(Tensr self) -> Tensor\n"
# Listings that would stand in the table many times over.
LISTINGS = {
    "<KEYS>": "func, dispatch, tags, doc, pt2_compliant, differentiable, complex_autograd, "
    "device_check, device_guard, manual_kernel_registration, autogen, "
    "use_const_ref_for_mutable_tensors, cpp_no_default_args, structured, structured_delegate, "
    "structured_inherits, precomputed, ufunc_inner_loop, pointwise, rows, let, opaque, "
    "meta, allocates, autocast, vmap, layout, dtypes, samples, variants, python_module, "
    "manual_cpp_binding, category_override, forms",
    "<AUTOGRAD KEYS>": "Default, Autograd, AutogradCPU, AutogradCUDA, AutogradFunctionality, "
    "AutogradHIP, AutogradHPU, AutogradIPU, AutogradLazy, AutogradMAIA, AutogradMPS, AutogradMTIA, "
    "AutogradMeta, AutogradNestedTensor, AutogradOther, AutogradPrivateUse1, AutogradPrivateUse2, "
    "AutogradPrivateUse3, AutogradVE, AutogradXLA, AutogradXPU",
}


class Case:
    """A row of the table: title, spec texts by heading, and the report."""

    def __init__(self, title: str) -> None:
        self.title, self.parts = title, {"native": ""}

    @property
    def derivatives(self) -> str | None:
        return self.parts.get("derivatives.yaml")

    @property
    def report(self) -> str:
        return with_listings(self.parts["reported"])


def with_listings(text: str) -> str:
    for name, listing in LISTINGS.items():
        text = text.replace(name, listing)
    return text


def without_listings(text: str) -> str:
    for name, listing in LISTINGS.items():
        text = text.replace(listing, name)
    return text


def read_table() -> list[Case]:
    cases: list[Case] = []
    part = ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("##### "):
            heading = line.removeprefix("##### ")
            part = heading if heading in ("derivatives.yaml", "reported") else "native"
            if part == "native":
                cases.append(Case(heading))
            cases[-1].parts[part] = ""
        elif cases:
            cases[-1].parts[part] += f"{line}\n"
    for case in cases:
        case.parts["reported"] = case.parts["reported"].rstrip("\n") + "\n"
    return cases


def write_table() -> None:
    """Write the reports of the table anew."""
    intro = TABLE.read_text(encoding="utf-8").partition("##### ")[0]
    texts = []
    for case in read_table():
        with tempfile.TemporaryDirectory() as folder:
            report = run(Path(folder), case.parts["native"], case.derivatives).report
        case.parts["reported"] = without_listings(report)
        parts = case.parts.items()
        texts.append("".join(f"##### {case.title if p == 'native' else p}\n{t}" for p, t in parts))
    TABLE.write_text(intro + "\n".join(texts), encoding="utf-8")


@pytest.mark.parametrize("case", read_table(), ids=lambda case: case.title.replace(" ", "_"))
def test_reports_with_place_and_hint(case: Case, tmp_path: Path) -> None:
    result = run(tmp_path, case.parts["native"], case.derivatives)
    assert result.report == case.report
    assert result.status == 1
    assert not (tmp_path / "out").exists()


def test_titles_of_the_table_are_unique() -> None:
    titles = [case.title for case in read_table()]
    assert len(set(titles)) == len(titles) > 90


# What a text file cannot show: bytes, and files that are not there.


def expect_report(tmp_path: Path, native: bytes, *lines: str) -> None:
    result = run(tmp_path, native)
    assert (result.status, result.report) == (1, "\n".join([*lines, "1 error", ""]))
    assert not (tmp_path / "out").exists()


def test_a_tab_cannot_indent(tmp_path: Path) -> None:
    expect_report(
        tmp_path,
        b"- func: f(Tensor x) -> Tensor\n\tdispatch:\n",
        "native_functions.yaml:2:1: error: "
        r"not YAML: found character '\t' that cannot start any token",
        "  \tdispatch:",
        "  ^",
    )


def test_a_caret_stands_below_its_character_after_tabs(tmp_path: Path) -> None:
    expect_report(
        tmp_path,
        b"- func:\tf(Tensr\tx) -> Tensor\n",
        "native_functions.yaml:1:11: error: unknown type 'Tensr'",
        "  - func:\tf(Tensr\tx) -> Tensor",
        "         \t  ^",
        "  hint: did you mean 'Tensor'?",
    )


def test_a_control_character_is_found(tmp_path: Path) -> None:
    expect_report(
        tmp_path,
        b"- func: f(Tensor x) -> Tensor\n  doc: a\x01b\n",
        "native_functions.yaml:2:9: error: "
        "not YAML: unacceptable character #x0001: special characters are not allowed",
        "    doc: a\x01b",
        "          ^",
    )


def test_a_byte_that_is_not_utf8_is_found(tmp_path: Path) -> None:
    expect_report(
        tmp_path,
        "- func: f(Tensor x) -> Tensor\n  doc: é ".encode() + b"caf\xe9\n",
        "native_functions.yaml:2:13: error: byte 0xe9 is not UTF-8",
        "    doc: é caf\N{REPLACEMENT CHARACTER}",
        "              ^",
    )


def test_utf16_is_not_utf8(tmp_path: Path) -> None:
    result = run(tmp_path, GOOD.encode("utf-16"))
    assert result.status == 1
    assert result.report.startswith("native_functions.yaml:1:1: error: byte 0xff is not UTF-8\n")


def test_crlf_gives_the_output_of_lf(tmp_path: Path) -> None:
    folders = tmp_path / "lf", tmp_path / "crlf"
    for folder, text in zip(folders, (GOOD, GOOD.replace("\n", "\r\n"))):
        folder.mkdir()
        assert run(folder, text.encode()).status == 0
    assert output(folders[0] / "out") == output(folders[1] / "out")


def test_a_mistake_in_a_crlf_file_is_at_its_place(tmp_path: Path) -> None:
    expect_report(
        tmp_path,
        b'- func: "f(Tensor x,\r\n    Tensr y) -> Tensor"\r\n',
        "native_functions.yaml:2:5: error: unknown type 'Tensr'",
        '      Tensr y) -> Tensor"',
        "      ^",
        "  hint: did you mean 'Tensor'?",
    )


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    folders = tmp_path / "without", tmp_path / "with"
    for folder, mark in zip(folders, (b"", b"\xef\xbb\xbf")):
        folder.mkdir()
        assert run(folder, mark + GOOD.encode()).status == 0
    assert output(folders[0] / "out") == output(folders[1] / "out")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = run(tmp_path, GOOD, None, "--derivatives", str(tmp_path / "absent.yaml"))
    message = "absent.yaml:1:1: error: cannot read the file: no such file or directory\n1 error\n"
    assert (result.status, result.report) == (1, message)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    result = run(tmp_path, GOOD, None, "--derivatives", str(tmp_path))
    message = f"{tmp_path.name}:1:1: error: cannot read the file: is a directory\n1 error\n"
    assert (result.status, result.report) == (1, message)


@pytest.mark.timeout(60)
def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    result = run(tmp_path, GOOD, None, "--derivatives", str(tmp_path / "pipe.yaml"))
    message = "pipe.yaml:1:1: error: cannot read the file: not a regular file\n1 error\n"
    assert (result.status, result.report) == (1, message)


def test_a_pipe_that_the_process_was_given_is_read(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    command = (
        f"{sys.executable} -m codegen check --namespace lib "
        f"--native-functions <(cat {tmp_path}/good.yaml)"
    )
    root = Path(__file__).parents[2]
    result = subprocess.run(["bash", "-c", command], cwd=root, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("break_", ["\n", "\r\n", "\r", "\x85", "\u2028", "\u2029"])
def test_lines_are_broken_where_yaml_breaks_them(break_: str, tmp_path: Path) -> None:
    native = f"- func: f(Tensor x) -> Tensor{break_}  no_such: 1\n"
    result = run(tmp_path, native.encode())
    assert result.report.startswith("native_functions.yaml:2:3: error: unknown key 'no_such'")
    assert "\n    no_such: 1\n    ^\n" in result.report


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\x1c"])
def test_what_only_python_takes_for_a_line_break(character: str, tmp_path: Path) -> None:
    result = run(tmp_path, f"# a{character}b\n- func: f(Tensr x) -> Tensor\n".encode())
    assert "native_functions.yaml:1:4: error: not YAML" in result.report


def test_deep_nesting_is_a_mistake_like_others(tmp_path: Path) -> None:
    result = run(tmp_path, "[" * 2000 + "]" * 2000)
    assert result.status == 1
    assert result.report.startswith("native_functions.yaml:1:")
    assert result.report.endswith("\n1 error\n")


def test_lists_are_nested_as_deeply_as_fifty(tmp_path: Path) -> None:
    message = "native_functions.yaml:1:51: error: not YAML: lists and maps are nested too deeply\n"
    assert run(tmp_path, "[" * 51 + "]" * 51).report.startswith(message)
    assert "too deeply" not in run(tmp_path, "[" * 50 + "]" * 50).report


def test_a_long_text_that_forms_share_is_no_alias(tmp_path: Path) -> None:
    native = (
        "- func: f(Tensor self) -> Tensor\n  forms: [f_, f.out]\n  structured: True\n"
        f'  tags: "core,{" " * 600_000}"\n  dispatch: CPU\n'
    )
    assert run(tmp_path, native).report == ""


@pytest.mark.parametrize(
    ("samples", "place"), [("[{self: &a [*a]}]", "4:20"), ("[&a {self: *a}]", "4:13")]
)
def test_a_sample_that_holds_itself_is_nested_too_deeply(
    samples: str, place: str, tmp_path: Path
) -> None:
    result = run(tmp_path, f"{GOOD}  samples: {samples}\n")
    message = f"native_functions.yaml:{place}: error: lists and maps are nested too deeply\n"
    assert result.status == 1
    assert message in result.report


def test_a_sample_may_be_nested_by_aliases(tmp_path: Path) -> None:
    values = "".join(f"&a{i} [" for i in range(30)) + "1" + "]" * 30
    native = (
        f"- func: f(Tensor x, Tensor y) -> Tensor\n  dispatch:\n    CPU: f\n  samples:\n"
        f"  - {{x: {{values: {values}, dtype: int64}}, y: {{values: [*a0], dtype: int64}}}}\n"
    )
    assert run(tmp_path, native).report == ""


@pytest.mark.parametrize(
    ("native", "place", "what"),
    [
        (GOOD.replace("mul(", "f" * 201 + "("), "1:9", "an operator name"),
        (GOOD.replace("mul(", "n" * 201 + "::mul("), "1:9", "an operator name"),
        (GOOD + f"  autogen: mul.out, {'f' * 201}.out\n", "4:21", "an operator name"),
        (GOOD.replace("mul_cpu", "k" * 201), "3:10", "a kernel's name"),
    ],
    ids=["operator", "namespace", "autogen", "kernel"],
)
def test_a_name_that_no_file_could_have_is_refused(
    native: str, place: str, what: str, tmp_path: Path
) -> None:
    result = run(tmp_path, native)
    message = f"native_functions.yaml:{place}: error: {what} has at most 200 characters\n"
    assert result.status == 1
    assert result.report.startswith(message)


def test_the_longest_names_can_be_written(tmp_path: Path) -> None:
    name = "n" * 200
    (tmp_path / "spec.yaml").write_text(GOOD.replace("mul(", "f" * 200 + "("))
    spec = ["--native-functions", str(tmp_path / "spec.yaml")]
    assert main(["--namespace", name, *spec, "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "include" / name / "ops" / f"{'f' * 200}.h").exists()


# The command line.


def test_a_namespace_that_no_folder_could_have_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        run_main(tmp_path, "n" * 201)
    assert exit_.value.code == 2
    assert capsys.readouterr().err.endswith("a namespace has at most 200 characters\n")


def test_an_output_folder_without_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--namespace", "lib", "--native-functions", "x", "--out", ""])
    assert exit_.value.code == 2
    assert capsys.readouterr().err.endswith("argument --out: '' is no folder\n")


def test_an_output_folder_that_is_a_loop_is_reported(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "out")
    result = run(tmp_path, GOOD)
    assert result.status == 1
    assert result.report.startswith("error: cannot write: ")


def test_a_path_that_is_no_text_is_shown_as_text(tmp_path: Path) -> None:
    spec = tmp_path / os.fsdecode(b"\xe9.yaml")
    spec.write_text(GOOD)
    out = ["--out", str(tmp_path / "out")]
    assert main(["--namespace", "lib", "--native-functions", str(spec), *out]) == 0
    library = (tmp_path / "out" / "src" / "library.cpp").read_text()
    assert "from \N{REPLACEMENT CHARACTER}.yaml." in library


@pytest.mark.parametrize("namespace", ["at", "c10", "std", "torch", "native", "", "a.b", "1a"])
def test_a_namespace_that_cannot_be_is_refused(
    namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        run_main(tmp_path, namespace)
    assert exit_.value.code == 2
    message = f"argument --namespace: '{namespace}' cannot be the namespace of a library\n"
    assert capsys.readouterr().err.endswith(message)


def run_main(tmp_path: Path, namespace: str) -> int:
    (tmp_path / "spec.yaml").write_text(GOOD)
    spec = ["--native-functions", str(tmp_path / "spec.yaml")]
    return main(["--namespace", namespace, *spec, "--out", str(tmp_path / "out")])


@pytest.mark.parametrize("missing", ["--namespace", "--native-functions", "--out"])
def test_a_missing_option_is_named(
    missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"--namespace": "lib", "--native-functions": "x", "--out": str(tmp_path)}
    del options[missing]
    with pytest.raises(SystemExit) as exit_:
        main([word for pair in options.items() for word in pair])
    assert exit_.value.code == 2
    assert f"the following arguments are required: {missing}" in capsys.readouterr().err


def test_gen_is_the_default_command(tmp_path: Path) -> None:
    assert run_main(tmp_path, "lib") == 0
    assert (tmp_path / "out" / "manifest.json").exists()


def test_check_reads_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(GOOD)
    command = ["check", "--namespace", "lib", "--native-functions", str(tmp_path / "spec.yaml")]
    assert main(command) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["spec.yaml"]
    (tmp_path / "spec.yaml").write_text(BAD)
    assert main(command) == 1


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    result = run(tmp_path, GOOD)
    assert result.status == 1
    assert result.report.startswith("error: cannot write: ")
    assert (tmp_path / "out").read_text() == "a file"


def test_an_earlier_output_stays_complete_when_a_run_fails(tmp_path: Path) -> None:
    assert run(tmp_path, GOOD).status == 0
    before = output(tmp_path / "out")
    times = {path: (tmp_path / "out" / path).stat().st_mtime_ns for path in before}
    assert run(tmp_path, GOOD + BAD).status == 1
    assert output(tmp_path / "out") == before
    assert {path: (tmp_path / "out" / path).stat().st_mtime_ns for path in before} == times


def test_names_in_messages_are_as_they_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("specs").mkdir()
    Path("specs/ops.yaml").write_text(BAD)
    main(["--namespace", "lib", "--native-functions", "specs/ops.yaml", "--out", "out"])
    assert capsys.readouterr().err.startswith("specs/ops.yaml:1:13: error: unknown type 'Tensr'")


def command_line(folder: Path, native: str) -> subprocess.CompletedProcess[str]:
    (folder / "spec.yaml").write_text(native)
    spec = ["--native-functions", str(folder / "spec.yaml"), "--out", str(folder / "out")]
    command = [sys.executable, "-m", "codegen", "--namespace", "lib", *spec]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_process_says_nothing_and_exits_with_0(tmp_path: Path) -> None:
    result = command_line(tmp_path, GOOD)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_the_process_reports_on_stderr_and_exits_with_1(tmp_path: Path) -> None:
    result = command_line(tmp_path, BAD)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "spec.yaml:1:13: error: unknown type 'Tensr'\n"
        "  - func: mul(Tensr self) -> Tensor\n"
        "              ^\n"
        "  hint: did you mean 'Tensor'?\n"
        "1 error\n"
    )


# --keep-going


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("- func: bad(Tensr x) -> Tensor\n", "unknown type 'Tensr'"),
        (
            "- func: bad(Tensor x) -> Tensor\n  dispatch:\n    CUDDA: bad_cuda\n",
            "unknown dispatch key 'CUDDA'",
        ),
        ("- func: bad(Tensor x) -> Tensor\n  zzz: 1\n", "unknown key 'zzz' in an operator's entry"),
        (
            "- func: bad(Tensor x) -> Tensor\n  dispatch:\n    CUDA: cpu_fallback\n",
            "'cpu_fallback' for CUDA runs the CPU kernel, and there is none",
        ),
        ("- func: bad(Tensor x) -> int\n  autogen: bad.out\n", "'autogen' cannot declare it: 'bad'"
         " returns no tensor that 'bad.out' could be written to"),
        ("- func: other::bad(Tensor x) -> Tensor\n",
         "operator of namespace 'other' in a library for namespace 'lib'"),
    ],
)  # fmt: skip
def test_keep_going_leaves_out_what_has_mistakes(bad: str, reason: str, tmp_path: Path) -> None:
    result = run(tmp_path, bad + GOOD, None, "--keep-going")
    assert (result.status, result.report) == (0, "")
    files = output(tmp_path / "out")
    rejected = json.loads(files["manifest.json"])["rejected"]
    assert rejected == [{"op": "bad", "reason": reason}]
    assert any(b'm.def("mul(' in text for text in files.values())
    assert not any(b"bad" in text for path, text in files.items() if path != "manifest.json")


def test_keep_going_leaves_out_an_operator_whose_formula_has_a_mistake(tmp_path: Path) -> None:
    derivatives = "- name: mul(Tensor self, Tensor other) -> Tensor\n  slef: grad\n"
    more = "- func: neg(Tensor self) -> Tensor\n"
    assert run(tmp_path, GOOD + more, derivatives, "--keep-going").status == 0
    files = output(tmp_path / "out")
    assert [r["op"] for r in json.loads(files["manifest.json"])["rejected"]] == ["mul"]
    assert not any(b'"mul' in text for path, text in files.items() if path != "manifest.json")


def test_keep_going_leaves_out_who_calls_what_is_left_out(tmp_path: Path) -> None:
    derivatives = "- name: mul(Tensor self, Tensor other) -> Tensor\n  self: lib::bad(grad)\n"
    more = "- func: bad(Tensr self) -> Tensor\n- func: neg(Tensor self) -> Tensor\n"
    assert run(tmp_path, GOOD + more, derivatives, "--keep-going").status == 0
    files = output(tmp_path / "out")
    rejected = {r["op"]: r["reason"] for r in json.loads(files["manifest.json"])["rejected"]}
    assert rejected == {
        "bad": "unknown type 'Tensr'", "mul": "'lib::bad' is no operator of the library",
    }  # fmt: skip
    assert not any(b'"mul' in text for path, text in files.items() if path != "manifest.json")


def test_keep_going_with_nothing_wrong_rejects_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, GOOD, None, "--keep-going").status == 0
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["rejected"] == []


def test_keep_going_gives_up_where_a_mistake_is_of_no_operator(tmp_path: Path) -> None:
    assert run(tmp_path, "- dispatch: {}\n" + GOOD, None, "--keep-going").status == 1
    assert not (tmp_path / "out").exists()


# The records.


def test_mistakes_are_reported_in_the_order_of_files_lines_and_columns() -> None:
    errors = Errors()
    places = [("b.yaml", 1, 1), ("a.yaml", 2, 5), ("a.yaml", 2, 1), ("a.yaml", 10, 1)]
    for name, line, column in places:
        errors.add(Location(Source(name, ""), line, column), "wrong")
    with pytest.raises(SpecError) as error:
        errors.raise_if_any()
    assert [str(d.location) for d in error.value.diagnostics] == [
        "a.yaml:2:1", "a.yaml:2:5", "a.yaml:10:1", "b.yaml:1:1",
    ]  # fmt: skip


def test_the_same_mistake_is_noted_once() -> None:
    errors, place = Errors(), Location(Source("a.yaml", ""), 1, 1)
    errors.add(place, "wrong")
    errors.add(place, "wrong")
    errors.add(place, "wrong", "a hint")
    assert len(errors.diagnostics) == 2


def test_nothing_noted_raises_nothing() -> None:
    Errors().raise_if_any()


def test_a_mistake_knows_its_operator() -> None:
    errors, place = Errors(), Location(Source("a.yaml", ""), 1, 1)
    with errors.about("f"):
        with errors.about("g"):
            errors.add(place, "first")
        errors.add(place, "second")
    errors.add(place, "third")
    assert [d.operator for d in errors.diagnostics] == ["g", "f", None]


def test_a_place_beyond_the_text_shows_no_line() -> None:
    place = Location(Source("a.yaml", "one\n"), 7, 1)
    assert str(Diagnostic(place, "wrong")) == "a.yaml:7:1: error: wrong"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("slef", "did you mean 'self'?"),
        ("qqq", "arguments: other, self"),
        ("", "arguments: other, self"),
    ],
)
def test_a_hint_names_the_closest_word_or_all(word: str, hint: str) -> None:
    assert did_you_mean(word, ["self", "other"], "arguments") == hint


def test_a_hint_without_listing_names_only_close_words() -> None:
    assert did_you_mean("qqq", ["self", "other"]) is None


if __name__ == "__main__":
    write_table()
