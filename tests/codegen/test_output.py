# SPDX-License-Identifier: BSD-3-Clause
"""The output folder: only what changed is written, and only what was generated is deleted."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from spec_runs import output, run

from codegen.output import MANIFEST, File, FileSet, banner

ROOT = Path(__file__).resolve().parents[2]
OLD = 10**18  # a time in the past, in nanoseconds


def manifest(files: FileSet) -> dict[str, list[str]]:
    roles = (("sources", "source"), ("headers", "header"), ("python", "python"))
    return {name: files.paths(role) for name, role in roles}


def write(folder: Path, **texts: str) -> list[str]:
    files = FileSet()
    files.add(File(f"src/{name}.cpp", text, "source") for name, text in texts.items())
    return files.write(folder, manifest(files))


def age(folder: Path) -> None:
    for path in folder.rglob("*"):
        os.utime(path, ns=(OLD, OLD))


def test_two_emitters_cannot_write_one_file() -> None:
    files = FileSet()
    files.add([File("a.h", "", "header")])
    with pytest.raises(ValueError, match=r"two emitters write a\.h"):
        files.add([File("a.h", "", "header")])


def test_paths_of_a_role_are_sorted() -> None:
    files = FileSet()
    files.add(File(path, "", role) for path, role in (("b", "x"), ("a", "x"), ("c", "y")))
    assert files.paths("x") == ["a", "b"]


def test_the_first_run_writes_everything(tmp_path: Path) -> None:
    assert write(tmp_path / "new" / "folder", a="1\n", b="2\n") == ["src/a.cpp", "src/b.cpp"]
    assert (tmp_path / "new" / "folder" / "src" / "a.cpp").read_bytes() == b"1\n"


def test_what_did_not_change_is_not_written(tmp_path: Path) -> None:
    write(tmp_path, a="1\n", b="2\n")
    age(tmp_path)
    assert write(tmp_path, a="1\n", b="3\n") == ["src/b.cpp"]
    assert (tmp_path / "src" / "a.cpp").stat().st_mtime_ns == OLD
    assert (tmp_path / "src" / "b.cpp").stat().st_mtime_ns > OLD
    assert (tmp_path / MANIFEST).stat().st_mtime_ns == OLD


def test_a_file_edited_by_hand_is_restored(tmp_path: Path) -> None:
    write(tmp_path, a="1\n")
    (tmp_path / "src" / "a.cpp").write_bytes(b"\xff edited")
    assert write(tmp_path, a="1\n") == ["src/a.cpp"]
    assert (tmp_path / "src" / "a.cpp").read_text() == "1\n"


def test_what_is_generated_no_more_is_deleted(tmp_path: Path) -> None:
    write(tmp_path, a="1\n", b="2\n")
    (tmp_path / "src" / "own.cpp").write_text("by hand")
    write(tmp_path, a="1\n")
    assert sorted(output(tmp_path)) == [MANIFEST, "src/a.cpp", "src/own.cpp"]


def test_a_deleted_file_that_is_gone_already_is_no_error(tmp_path: Path) -> None:
    write(tmp_path, a="1\n", b="2\n")
    (tmp_path / "src" / "b.cpp").unlink()
    write(tmp_path, a="1\n")
    assert sorted(output(tmp_path)) == [MANIFEST, "src/a.cpp"]


@pytest.mark.parametrize(
    "path", ["../precious", "src/../../precious", "/{}/precious", "./../precious", "..", "", 7]
)
def test_a_manifest_never_deletes_outside_its_folder(path: object, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep")
    folder = tmp_path / "out"
    folder.mkdir()
    listed = path.replace("{}", str(tmp_path).strip("/")) if isinstance(path, str) else path
    data = {"sources": [listed], "headers": [], "python": []}
    (folder / MANIFEST).write_text(json.dumps(data))
    write(folder, a="1\n")
    assert precious.read_text() == "keep"
    assert sorted(output(folder)) == [MANIFEST, "src/a.cpp"]


@pytest.mark.parametrize(
    "text",
    ["", "not json", "[]", "{}", '{"sources": 1}', "null", "\xff", "[" * 100_000],
    ids=lambda text: text[:20],
)
def test_a_broken_manifest_is_taken_for_none(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(text.encode("latin-1"))
    assert write(tmp_path, a="1\n") == ["src/a.cpp"]


SPEC_LINES = "// native_functions.yaml:{}: CPU: mul()\nint x;  // a.yaml:1\n"


def test_lines_of_specs_in_comments_keep_the_time(tmp_path: Path) -> None:
    write(tmp_path, a=SPEC_LINES.format(3))
    age(tmp_path)
    assert write(tmp_path, a=SPEC_LINES.format(17)) == ["src/a.cpp"]
    path = tmp_path / "src" / "a.cpp"
    assert path.read_text() == SPEC_LINES.format(17)
    assert path.stat().st_mtime_ns == OLD


@pytest.mark.parametrize(
    "text",
    [
        SPEC_LINES.format(3).replace("mul()", "neg()"),
        SPEC_LINES.format(3).replace("int", "bool"),
        SPEC_LINES.format(3).replace("a.yaml:1", "a.yaml:2"),  # after code: not a comment line
        SPEC_LINES.format(3) + "int y;\n",
        'm.def("a.yaml:3");\n',
    ],
)
def test_any_other_change_is_a_new_time(text: str, tmp_path: Path) -> None:
    write(tmp_path, a=SPEC_LINES.format(3))
    age(tmp_path)
    write(tmp_path, a=text)
    assert (tmp_path / "src" / "a.cpp").stat().st_mtime_ns > OLD


def test_moving_an_entry_down_compiles_nothing_again(tmp_path: Path) -> None:
    native = (
        "- func: f(Tensor x) -> Tensor\n  dispatch:\n    CPU, CUDA: f_kernel\n    Meta: f_meta\n"
    )
    derivatives = "- name: f(Tensor x) -> Tensor\n  x: grad * x\n"
    run(tmp_path, native, derivatives)
    age(tmp_path / "out")
    run(tmp_path, "# a comment\n\n" + native, "\n\n" + derivatives)
    files = output(tmp_path / "out")
    assert b"native_functions.yaml:3" in files["include/lib/kernels/f.h"]
    changed = [p for p in files if (tmp_path / "out" / p).stat().st_mtime_ns != OLD]
    assert sorted(changed) == sorted([MANIFEST, "python/operators.json"])  # which name the lines


def test_a_kill_while_writing_leaves_the_old_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, a="1\n", b="1\n")

    def killed(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, a="2\n", b="2\n")
    monkeypatch.undo()
    assert (tmp_path / "src" / "a.cpp").read_text() == "1\n"
    assert json.loads((tmp_path / MANIFEST).read_text())["sources"] == ["src/a.cpp", "src/b.cpp"]
    assert write(tmp_path, a="2\n", b="2\n") == ["src/a.cpp", "src/b.cpp"]
    assert sorted(output(tmp_path)) == [MANIFEST, "src/a.cpp", "src/b.cpp"]


def test_a_file_that_a_killed_run_wrote_for_nothing_is_deleted_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, a="1\n")
    replace = Path.replace

    def killed_at_the_manifest(self: Path, target: Path) -> Path:
        if target.name == MANIFEST:
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", killed_at_the_manifest)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, a="1\n", added="2\n")
    monkeypatch.undo()
    write(tmp_path, a="1\n", added="2\n")
    write(tmp_path, a="1\n")
    assert sorted(output(tmp_path)) == [MANIFEST, "src/a.cpp"]


def fail_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The disk is full after half of the file of this name."""
    write_bytes = Path.write_bytes

    def fails(self: Path, data: bytes) -> int:
        if self.name == name:
            write_bytes(self, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_bytes(self, data)

    monkeypatch.setattr(Path, "write_bytes", fails)


@pytest.mark.parametrize("name", ["b.cpp.new", "c.cpp.new", f"{MANIFEST}.new"])
def test_a_full_disk_changes_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, a="1\n", b="1\n")
    age(tmp_path)
    before = output(tmp_path)
    fail_at(monkeypatch, name)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, a="2\n", b="2\n", c="2\n")
    assert output(tmp_path) == before
    assert {path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")} == {OLD}


def test_runs_at_once_write_one_after_the_other(tmp_path: Path) -> None:
    def write_many(text: str) -> None:
        for _ in range(20):
            write(tmp_path, **{f"f{i}": text for i in range(20)})

    with ThreadPoolExecutor() as runs:
        list(runs.map(write_many, ["1\n", "2\n", "3\n"]))
    found = output(tmp_path)
    assert len(found) == 21 and len({found[f"src/f{i}.cpp"] for i in range(20)}) == 1


def test_a_full_disk_leaves_no_half_of_a_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_at(monkeypatch, "b.cpp.new")
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, a="1\n", b="1\n")
    assert output(tmp_path) == {}


def test_a_text_that_cannot_be_encoded_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, a="1\n")
    with pytest.raises(UnicodeEncodeError):
        write(tmp_path, a="2\n", b="\ud800\n")
    assert output(tmp_path)["src/a.cpp"] == b"1\n"


def test_a_folder_in_the_place_of_a_file_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, a="1\n")
    before = output(tmp_path)
    (tmp_path / "src" / "b.cpp").mkdir()
    with pytest.raises(IsADirectoryError):
        write(tmp_path, a="2\n", b="2\n")
    assert output(tmp_path) == before


def test_the_banner_says_who_wrote_it_and_from_what() -> None:
    first, second = banner("codegen.emit.library", ["a.yaml", "b.yaml"]).splitlines()
    assert first == "// Generated by codegen.emit.library from a.yaml and b.yaml."
    assert "Do not edit: change those." in second and "free of conditions" in second


def test_the_banner_is_the_same_where_the_generator_is_installed() -> None:
    assert banner("torchext.codegen.emit.x", ["a"]) == banner("codegen.emit.x", ["a"])


# The whole generator.

NATIVE = "".join(
    f"- func: op{i}(Tensor self, Tensor other) -> Tensor\n"
    f"  dispatch:\n    CPU: op{i}_cpu\n    CUDA: op{i}_cuda\n    SparseCPU, Meta: op{i}_any\n"
    "  tags: [pointwise, core]\n"
    for i in range(44)
)
DERIVATIVES = "".join(
    f"- name: op{i}(Tensor self, Tensor other) -> Tensor\n"
    "  self: grad * other * other.sym_size(0)\n  other: grad * self * self.dim()\n"
    for i in range(44)
)


def test_generating_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        folder.mkdir()
        assert run(folder, NATIVE, DERIVATIVES).status == 0
    first, second = (output(folder / "out") for folder in folders)
    assert first == second
    assert len(first) > 100


def test_generating_again_writes_nothing(tmp_path: Path) -> None:
    run(tmp_path, NATIVE, DERIVATIVES)
    age(tmp_path / "out")
    run(tmp_path, NATIVE, DERIVATIVES)
    assert {path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.*")} == {OLD}


def test_the_order_of_hashes_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text(NATIVE)
    (tmp_path / "d.yaml").write_text(DERIVATIVES)
    command = [sys.executable, "-m", "codegen", "--namespace", "lib", "--native-functions"]
    command += [str(tmp_path / "n.yaml"), "--derivatives", str(tmp_path / "d.yaml"), "--out"]
    results = []
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([*command, str(tmp_path / seed)], cwd=ROOT, env=environment, check=True)
        results.append(output(tmp_path / seed))
    assert results[0] == results[1] == results[2]


def test_output_names_no_place_of_this_machine(tmp_path: Path) -> None:
    run(tmp_path, NATIVE, DERIVATIVES)
    for path, content in output(tmp_path / "out").items():
        if path != MANIFEST:
            assert str(tmp_path).encode() not in content and str(ROOT).encode() not in content


def test_the_manifest_lists_every_file_and_no_other(tmp_path: Path) -> None:
    run(tmp_path, NATIVE, DERIVATIVES)
    data = json.loads((tmp_path / "out" / MANIFEST).read_text())
    roles = ("sources", "parts", "headers", "python_sources", "python_parts", "python")
    listed = [path for role in roles for path in data[role]]
    assert sorted([*listed, MANIFEST]) == sorted(output(tmp_path / "out"))
    assert data["namespace"] == "lib"
    own, *runtime = data["include_dirs"]
    assert own == "include"
    include = ROOT / "csrc" / "include"
    assert [(tmp_path / "out" / folder).resolve() for folder in runtime] == [
        include,
        include / "torchext" / "replacements",
    ]


def test_the_manifest_lists_the_kernels_with_prototype_and_place(tmp_path: Path) -> None:
    native = (
        "- func: f(Tensor x, int n=2) -> Tensor\n"
        "  dispatch:\n    CPU: f_cpu\n    CUDA: cpu_fallback\n    Meta: other::f_meta\n"
    )
    run(tmp_path, native)
    schema = "f(Tensor x, int n=2) -> Tensor"
    assert json.loads((tmp_path / "out" / MANIFEST).read_text())["kernels"] == [
        {
            "name": f"{space}::native::{name}",
            "prototype": f"at::Tensor {space}::native::{name}(const at::Tensor& x, int64_t n)",
            "schema": schema,
            "location": "native_functions.yaml:1",
            "key": key,
        }
        for space, name, key in (("lib", "f_cpu", "CPU"), ("other", "f_meta", "Meta"))
    ]


def test_the_manifest_lists_the_classes_that_the_author_defines(tmp_path: Path) -> None:
    def functions(out: str) -> list[tuple[str, str]]:
        native = (
            "- func: f(Tensor self) -> Tensor\n  structured_delegate: f.out\n"
            "- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  structured: True\n"
            f"{out}  dispatch:\n    CPU, CUDA: f\n    XPU: f_xpu\n"
        )
        assert run(tmp_path, native).report == ""
        kernels = json.loads((tmp_path / "out" / MANIFEST).read_text())["kernels"]
        return [(kernel["name"], kernel["key"]) for kernel in kernels]

    impls = [
        ("lib::native::structured_f::impl", "CPU, CUDA"),
        ("lib::native::structured_f_xpu::impl", "XPU"),
    ]
    assert functions("") == [("lib::meta::structured_f::meta", "Meta"), *impls]
    iterator = "  structured_inherits: TensorIteratorBase\n"
    assert functions(iterator) == [("lib::meta::structured_f::meta", "Meta"), *impls]
    assert functions(f"{iterator}  meta: unary_float\n") == impls


def test_every_part_is_compiled_in_one_unit(tmp_path: Path) -> None:
    run(tmp_path, NATIVE, DERIVATIVES)
    data = json.loads((tmp_path / "out" / MANIFEST).read_text())
    included = []
    for role in ("sources", "python_sources"):
        for path in data[role]:
            text = (tmp_path / "out" / path).read_text()
            parts = re.findall(r'^#include "\.\./(.*)"$', text, re.MULTILINE)
            if path.startswith("units/"):
                assert parts == sorted(parts) and parts
                assert {p.startswith("python/") for p in parts} == {role == "python_sources"}
            included += parts
    assert sorted(included) == sorted([*data["parts"], *data["python_parts"]])


def test_python_is_read_for_eight_shards_at_once(tmp_path: Path) -> None:
    native = "".join(
        f"- func: f{i}(Tensor x) -> Tensor\n  dispatch: {{CPU: f}}\n" for i in range(600)
    )
    formulas = "".join(f"- name: f{i}(Tensor x) -> Tensor\n  x: grad\n" for i in range(600))
    run(tmp_path, native, formulas)
    units = {path.name: path.read_text() for path in (tmp_path / "out" / "units").iterdir()}
    assert len([name for name in units if name.startswith("autograd_")]) == 16
    parts = {
        name: [int(shard) for shard in re.findall(r"python/nodes_(\d+)", text)]
        for name, text in units.items()
        if name.startswith("python_")
    }
    assert {name: sorted(shards) for name, shards in parts.items()} == {
        "python_0.cpp": list(range(8)),
        "python_1.cpp": list(range(8, 16)),
    }


def test_a_few_expressions_among_many_operators_are_in_one_file(tmp_path: Path) -> None:
    native = "".join(
        f"- func: f{i}(Tensor x) -> Tensor\n"
        + ("  pointwise: exp(x)\n" if i % 50 == 0 else "  dispatch: {CPU: f}\n")
        for i in range(600)
    )
    run(tmp_path, native)
    sources = [path.name for path in (tmp_path / "out" / "src").glob("fused*.cpp")]
    assert sorted(sources) == ["fused_0.cpp", "fused_loops_0.cpp"]
    first = re.search(
        r"^#include .*$", (tmp_path / "out/src/fused_0.cpp").read_text(), re.MULTILINE
    )
    assert first.group() == "#include <torchext/precompiled.h>"
