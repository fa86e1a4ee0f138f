# SPDX-License-Identifier: BSD-3-Clause
"""torch's headers, compiled once and shared: used where they are right, and never where not."""

import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sample_project import flags, run
from torch.utils import cpp_extension

from torchext.compat import cxx_standard
from torchext.toolchain import cache, environment, platforms, precompiled
from torchext.toolchain.compilation import Compiler, quickly

GCC = environment.find_compiler(platforms.current())
needs_gcc = pytest.mark.skipif(
    not Compiler.with_flags(GCC, []).is_gcc, reason="the compiler is not GCC"
)
CLANG = "clang++"
needs_clang = pytest.mark.skipif(not shutil.which(CLANG), reason="there is no clang++")


@pytest.fixture(params=[pytest.param(GCC, marks=needs_gcc), pytest.param(CLANG, marks=needs_clang)])
def compiler(request):
    """Each that compiles headers for later."""
    return request.param


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(cache.SWITCH, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A header that is compiled in no time, in place of torch's."""
    header = tmp_path / "include" / "small header.h"
    header.parent.mkdir()
    header.write_text("#pragma once\ninline int number() { return 1; }\n")
    every = header.with_name("torch_headers.h")
    every.write_text("#include <vector>\n#include <small header.h>\n")
    monkeypatch.setattr(precompiled, "torch_headers", lambda: every)
    monkeypatch.setattr(cpp_extension, "include_paths", lambda: [str(header.parent)])
    return header


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def read(folder: Path) -> str:
    return (folder / "text").read_text()


def maker(text: str, source: Path, made: list[str]):
    def make(folder: Path) -> list[str]:
        made.append(text)
        (folder / "text").write_text(text)
        return [str(source)]

    return make


def test_an_entry_is_made_once_for_what_it_is_made_of(folder, tmp_path):
    source, made = tmp_path / "source", []
    source.write_text("1")
    found = [cache.entry("kind", key, maker(key, source, made)) for key in ("a", "a", "b", "a")]
    assert made == ["a", "b"]
    assert [read(path) for path in found] == ["a", "a", "b", "a"]
    assert found[0] == found[1] == found[3]


def test_an_entry_of_a_file_that_changed_is_not_used(folder, tmp_path):
    source, made = tmp_path / "source", []
    source.write_text("1")
    first = cache.entry("kind", "a", maker("first", source, made))
    source.write_text("another size")
    assert read(cache.entry("kind", "a", maker("second", source, made))) == "second"
    source.unlink()
    source.write_text("1")
    assert cache.entry("kind", "a", maker("third", source, made)) != first
    assert made == ["first", "second", "third"]


def test_a_damaged_entry_is_made_again(folder, tmp_path):
    source, made = tmp_path / "source", []
    source.write_text("1")
    found = cache.entry("kind", "a", maker("a", source, made))
    for damage in (b"not json", b"[]", b"{"):
        (found / "files.json").write_bytes(damage)
        assert cache.entry("kind", "a", maker("a", source, made)) == found
    assert made == ["a"] * 4


def test_what_fails_leaves_nothing_behind(folder):
    def fail(unfinished: Path) -> list[str]:
        (unfinished / "half").write_text("")
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        cache.entry("kind", "a", fail)
    assert entries(folder) == []


def test_a_killed_build_leaves_no_entry_and_no_lock(folder):
    code = (
        "import os, sys, time; from torchext.toolchain import cache\n"
        "def make(folder):\n"
        "    (folder / 'half').write_text(''); print('making', flush=True); time.sleep(600)\n"
        "cache.entry('kind', 'a', make)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"making\n"
        process.send_signal(signal.SIGKILL)
    source, made = folder / "source", []
    source.write_text("1")
    assert read(cache.entry("kind", "a", maker("whole", source, made))) == "whole"
    (unfinished,) = [name for name in entries(folder) if name.startswith("unfinished-")]
    long_ago = time.time() - 48 * 3600
    os.utime(folder / unfinished, (long_ago, long_ago))
    cache.entry("kind", "b", maker("b", source, made))
    assert unfinished not in entries(folder)


def test_builds_at_once_make_an_entry_once(folder, tmp_path):
    code = (
        "import sys, time; from torchext.toolchain import cache\n"
        "def make(folder):\n"
        "    print('made', flush=True); time.sleep(0.5); return [sys.executable]\n"
        "print(cache.entry('kind', 'a', make))"
    )
    command = [sys.executable, "-c", code]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate()[0].split() for process in processes]
    assert sorted(map(len, said)) == [1, 1, 2]
    assert len({words[-1] for words in said}) == 1


def test_the_last_used_entries_stay(folder, tmp_path):
    source, made = tmp_path / "source", []
    source.write_text("1")
    paths = []
    for index in range(cache.KEPT):
        paths.append(cache.entry("kind", str(index), maker(str(index), source, made)))
        os.utime(paths[-1], (index, index))
    cache.entry("kind", "0", maker("0", source, made))  # used now
    cache.entry("kind", "new", maker("new", source, made))
    left = [path.exists() for path in paths]
    assert left == [True, False, *[True] * (cache.KEPT - 2)]


def test_the_header_is_what_its_flags_make_of_it(compiler, small, folder):
    first = precompiled.headers(compiler, ["-O0", "-Wall"])
    assert first != precompiled.Headers()
    # warnings change nothing
    assert precompiled.headers(compiler, ["-O0", "-Wextra"]) == first
    assert precompiled.headers(compiler, ["-O2", "-Wall"]) != first
    assert precompiled.headers(compiler, ["-O0", "-DNUMBER=1"]) != first
    small.write_text("#pragma once\ninline int number() { return 2222; }\n")
    assert precompiled.headers(compiler, ["-O0", "-Wall"]) != first


@needs_gcc
def test_a_source_reads_it_and_means_the_same_without(small, tmp_path):
    source = tmp_path / "source.cpp"
    includes = "#include <torchext/precompiled.h>\n#include <small header.h>\n"
    source.write_text(includes + "int main() { return number(); }\n")
    (made,) = precompiled.headers(GCC, ["-O0"]).include_dirs
    own = Path(precompiled.__file__).parents[2] / "csrc" / "include"
    for folders, mark in (([made, own], "! "), ([own], ". ")):
        includes = [f"-I{path}" for path in (*folders, small.parent)]
        command = [GCC, "-O0", f"-std={cxx_standard()}", "-H", *includes]
        done = subprocess.run(
            [*command, "-c", source, "-o", os.devnull], capture_output=True, text=True, check=True
        )
        assert f"{mark}{folders[0]}/torchext/precompiled.h" in done.stderr


@needs_clang
def test_clang_reads_the_file_that_it_is_told(small, tmp_path):
    source = tmp_path / "source.cpp"
    source.write_text("int main() { return number(); }\n")  # of the header that is not included
    headers = precompiled.headers(CLANG, ["-O0"])
    kept = headers.linked_into(str(tmp_path / "build folder"))
    assert Path(kept.flags[1]).parent == tmp_path / "build folder"
    assert headers.linked_into(str(tmp_path / "build folder")) == kept
    shutil.rmtree(folder_of(headers))
    chosen = Compiler.with_flags(CLANG, ["-O0"])
    with pytest.raises(subprocess.CalledProcessError):
        chosen.compile(source, tmp_path / "source.o", [*headers.flags, "-c"])
    chosen.compile(source, tmp_path / "source.o", [*kept.flags, "-c"])


@needs_clang
def test_a_build_folder_keeps_the_last_alone(small, tmp_path):
    kept = [
        precompiled.headers(CLANG, [flag]).linked_into(str(tmp_path / "build"))
        for flag in ("-O0", "-O1")
    ]
    assert list((tmp_path / "build").iterdir()) == [Path(kept[1].flags[1])]


@needs_clang
@pytest.mark.parametrize("given", ["-O0", "-O3"])
def test_what_is_compiled_once_reads_them_too(given, small):
    """It is compiled with less optimisation, if with any."""
    headers = precompiled.headers(CLANG, [given])
    quick = Compiler.with_flags(CLANG, [*quickly([given]), "-Wall"])
    assert headers.flags_for(quick) == [*headers.flags]
    source = small.with_name("source.cpp")
    source.write_text("int main() { return number(); }\n")
    quick.compile(source, small.with_name("source.o"), [*headers.flags, "-c"])


@needs_clang
def test_clang_is_told_nothing_where_another_flag_made_them(small):
    headers = precompiled.headers(CLANG, ["-O0"])
    for other in (["-O1"], ["-O0", "-mavx2"], ["-O0", "-DNUMBER"]):
        assert headers.flags_for(Compiler.with_flags(CLANG, other)) == []
    assert precompiled.Headers().flags_for(Compiler.with_flags(CLANG, ["-O0"])) == []


@needs_clang
def test_what_clang_cannot_read_is_said_and_left_out(small, folder, capfd):
    """As what -march=native made on another machine is for this one."""
    made = precompiled.headers(CLANG, ["-O0"])
    Path(made.flags[1]).write_text("of another machine")
    assert precompiled.headers(CLANG, ["-O0"]) == precompiled.Headers()
    assert "Clang cannot read them on this machine" in capfd.readouterr().err


@needs_clang
def test_a_build_folder_that_cannot_be_written_is_said(small, tmp_path, capfd):
    (tmp_path / "build").write_text("a file in its place")
    made = precompiled.headers(CLANG, ["-O0"])
    assert made.linked_into(str(tmp_path / "build")) == precompiled.Headers()
    assert "building without torch's headers of the cache: " in capfd.readouterr().err


@needs_clang
def test_what_a_killed_build_left_goes(small, tmp_path):
    for name in ("headers-1.pch", "headers-1.new"):
        (tmp_path / "build").mkdir(exist_ok=True)
        (tmp_path / "build" / name).write_text("")
    precompiled.Headers().linked_into(str(tmp_path / "build"))
    assert [*(tmp_path / "build").iterdir()] == []


@pytest.mark.slow
def test_torchs_headers_are_compiled(compiler, folder):
    """With nothing in them that says how loops are parallel, or that torch does not have."""
    made = precompiled.headers(compiler, ["-O0", "-fPIC"])
    read = json.loads((folder_of(made) / "files.json").read_text())
    names = {Path(path).name for path in read}
    assert {"Functions.h", "library.h", "function.h", "torch_headers.h"} <= names
    assert names.isdisjoint(["Parallel.h", "ParallelOpenMP.h", "json.hpp", "Python.h"])


@pytest.mark.parametrize(
    ("text", "is_asking"),
    [
        ("#include <torchext/precompiled.h>\n", True),
        ("// Of x.\n\n  #  include  <torchext/precompiled.h>  // all\n#include <vector>\n", True),
        ("/* # Of\n # x */ #include <torchext/precompiled.h>\n", True),
        ("// Of x.\n\n#include <torchext/precompiled.h>\nint x;\n", True),
        ("#include <vector>\n#include <torchext/precompiled.h>\n", False),
        ("#define X\n#include <torchext/precompiled.h>\n", False),
        ("int x;\n", False),
    ],
)
def test_who_asks_does_so_first(text, is_asking, tmp_path):
    source = tmp_path / "source.cpp"
    source.write_text(text)
    assert precompiled.is_asked_for(str(source)) == is_asking


def folder_of(headers: precompiled.Headers) -> Path:
    """The entry in the cache."""
    [*dirs] = headers.include_dirs
    return Path(dirs[0]) if dirs else Path(headers.flags[1]).parents[1]


def test_who_makes_none_finds_what_others_made(compiler, small, folder):
    assert precompiled.headers(compiler, [], is_made=False) == precompiled.Headers()
    assert not folder.exists()
    made = precompiled.headers(compiler, [])
    assert precompiled.headers(compiler, [], is_made=False) == made != precompiled.Headers()
    small.write_text("#pragma once\n")
    assert precompiled.headers(compiler, [], is_made=False) == precompiled.Headers()


def test_a_compiler_that_does_not_answer_goes_without(small, folder, tmp_path):
    mute = tmp_path / "g++"
    mute.write_text("#!/bin/sh\nexit 1\n")
    mute.chmod(0o755)
    assert precompiled.headers(str(mute), []) == precompiled.Headers()


def test_it_can_be_switched_off(compiler, small, folder, monkeypatch):
    monkeypatch.setenv(cache.SWITCH, "0")
    assert precompiled.headers(compiler, []) == precompiled.Headers()
    assert not folder.exists()


def test_another_compiler_goes_without(small, folder, tmp_path):
    other = tmp_path / "icpx"
    other.write_text("#!/bin/sh\necho another compiler 2025.1\n")
    other.chmod(0o755)
    assert precompiled.headers(str(other), []) == precompiled.Headers()
    assert not folder.exists()


def test_headers_that_do_not_compile_are_said_and_left_out(compiler, small, folder, capfd):
    small.write_text("no C++")
    assert precompiled.headers(compiler, []) == precompiled.Headers()
    said = capfd.readouterr().err
    assert "building without torch's headers of the cache: " in said and "small header.h:1" in said
    assert entries(folder) == []


def test_a_cache_that_cannot_be_written_is_said_and_left_out(compiler, small, folder, capfd):
    folder.write_text("a file in its place")
    assert precompiled.headers(compiler, []) == precompiled.Headers()
    assert "building without torch's headers of the cache: " in capfd.readouterr().err


def test_entries_belong_to_their_user(compiler, small, folder):
    made = folder_of(precompiled.headers(compiler, []))
    assert stat.S_IMODE(os.stat(made).st_mode) == 0o700


@needs_gcc
def test_every_generated_unit_of_a_library_reads_it(built_project):
    """Nothing of the command that BuildExtension makes keeps GCC from taking it."""
    folder = next(built_project.folder.glob("build/temp-torch-*/sample_ops._C"))
    command = ["ninja", "-C", str(folder), "-t", "commands"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    units = [shlex.split(line) for line in said.splitlines() if "/units/" in line]
    assert len(units) >= 3
    for words in units:
        words[words.index("-o") + 1] = words[words.index("-MF") + 1] = os.devnull
        done = subprocess.run(
            [*words, "-H", "-Winvalid-pch", "-fsyntax-only"],
            cwd=folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
        # "!" is what was taken, "x" what was refused
        assert re.search(r"^! \S+/torchext/precompiled\.h\.gch$", done.stderr, re.MULTILINE)


@pytest.mark.slow
def test_every_part_includes_what_it_uses(built_project):
    """Alone, and with no header of torch's before it: another shard has other parts."""
    folder = next(built_project.folder.glob("build/temp-torch-*/sample_ops._C"))
    command = ["ninja", "-C", str(folder), "-t", "commands"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # of any unit, or, with Clang, of any source beside them
    of_a_unit = next(shlex.split(line) for line in said.splitlines())
    options = [word for word in of_a_unit if word.startswith(("-I", "-D", "-std"))]
    options = [word for word in options if "/headers-" not in word]
    (generated,) = built_project.folder.glob("build/generated/*")
    manifest = json.loads((generated / "manifest.json").read_text())
    parts = [*manifest["parts"], *manifest["python_parts"]]
    assert len(parts) >= 8
    with ThreadPoolExecutor(2) as pool:
        done = pool.map(
            lambda part: subprocess.run(
                [GCC, *options, "-w", "-fsyntax-only", generated / part],
                capture_output=True, text=True, check=False,
            ),
            parts,
        )  # fmt: skip
        assert [result.stderr for result in done if result.returncode] == []


@pytest.mark.slow
def test_a_library_is_built_and_loads_without_it(project):
    generated = next(iter((project.folder / "build").glob("generated/*")))
    manifest = json.loads((generated / "manifest.json").read_text())
    build = project.build(TORCHEXT_PRECOMPILED="0", **flags())
    assert build.status == 0, build.text
    assert len(build.compiled) >= len(manifest["sources"])
    code = "import torch, sample_ops; print(sample_ops.ops.shift(torch.ones(1), 2.0).item())"
    assert run([sys.executable, "-c", code], project.folder).text == "3.0\n"
