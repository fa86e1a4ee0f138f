# SPDX-License-Identifier: BSD-3-Clause
"""What all libraries have alike is compiled once: used where it is right, and never where not."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from sample_project import flags, run

from torchext.toolchain import cache, compiled_once, csrc, environment, platforms, precompiled

COMPILER = environment.find_compiler(platforms.current())
PARTS = sorted(compiled_once.PARTS)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """The parts, compiled in no time, and an empty cache."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(cache.SWITCH, raising=False)
    for part in (*PARTS, "include"):
        (tmp_path / part).mkdir()
    for part in PARTS:
        (tmp_path / part / "all.cpp").write_text('#include "own.h"\nint answer() { return OWN; }\n')
        (tmp_path / part / "own.h").write_text("#define OWN 1\n")
    monkeypatch.setattr(csrc, "folder", lambda part: tmp_path / part)
    monkeypatch.setattr(compiled_once.Compiler.with_flags.__globals__["cpp_extension"],
                        "include_paths", lambda: [])  # fmt: skip
    return tmp_path


def objects(*options, parts=PARTS, is_made=True):
    return compiled_once.objects(parts, precompiled.Headers(), COMPILER, options, is_made)


@pytest.mark.parametrize("part", PARTS)
def test_one_unit_has_every_source_of_its_folder(part):
    unit = Path(compiled_once.source(part))
    included = re.findall(r'#include "(\w+\.cpp)"', unit.read_text())
    assert included == sorted(path.name for path in unit.parent.glob("*.cpp") if path != unit)
    assert len(included) >= 2


def test_an_object_is_made_once_for_its_flags_and_sources(small):
    first = objects("-O0")
    assert sorted(first) == PARTS and all(os.path.getsize(path) for path in first.values())
    assert objects("-O0", "-Wextra") == first  # warnings change nothing
    assert objects("-O0", "-DOTHER") != first
    assert objects("-O0", parts=["boxed"]) == {"boxed": first["boxed"]}
    (small / "boxed" / "own.h").write_text("#define OWN 22\n")
    second = objects("-O0")
    assert second["boxed"] != first["boxed"] and second["python"] == first["python"]


def test_optimisation_of_a_library_is_not_theirs_and_none_is(small):
    assert objects("-O2") == objects("-O3") == objects("-O1") != objects("-O0")


def test_who_makes_none_finds_what_others_made(small):
    assert objects(is_made=False) == {}
    assert not (small / "cache").exists()
    made = objects()
    assert objects(is_made=False) == made != {}


def test_it_can_be_switched_off(small, monkeypatch):
    monkeypatch.setenv(cache.SWITCH, "0")
    assert objects() == {}
    assert not (small / "cache").exists()


def test_what_does_not_compile_is_said_and_left_to_the_library(small, capfd):
    (small / "python" / "own.h").write_text("no C++\n")
    assert list(objects()) == ["boxed", "runtime"]
    said = capfd.readouterr().err
    assert "building without the Python part of every library of the cache: " in said
    assert "own.h:1" in said


def test_the_bound_of_the_cache_is_one_for_each_kind(small):
    for index in range(cache.KEPT + 2):
        objects(f"-DINDEX={index}")
    kinds = [path.name.split("-")[0] for path in (small / "cache").iterdir() if path.is_dir()]
    assert sorted(kinds) == [part for part in PARTS for _ in range(cache.KEPT)]


@pytest.mark.slow
def test_a_library_without_the_cache_compiles_them_itself(project):
    build = project.build(TORCHEXT_PRECOMPILED="0", **flags())
    assert build.status == 0, build.text
    compiled = {"/".join(path.split("/")[-2:]) for path in build.compiled}
    assert {"boxed/all.cpp", "python/all.cpp"} <= compiled
    assert "runtime/all.cpp" not in compiled  # built in place, it calls no fallback
    code = "import torch, sample_ops; print(sample_ops.ops.shift(torch.ones(1), 2.0).item())"
    assert run([sys.executable, "-c", code], project.folder).text == "3.0\n"


def take_headers(folder: Path) -> None:
    """torch's headers, which take long to compile, out of the cache of all."""
    folder.mkdir()
    for path in Path(cache.folder()).glob("headers-*"):
        if path.is_dir():
            shutil.copytree(path, folder / path.name, copy_function=os.link)


@pytest.mark.slow
def test_a_library_keeps_what_it_was_linked_with(project, tmp_path):
    """Whatever becomes of the cache between a build and the next."""
    kept = tmp_path / "cache"
    take_headers(kept)
    build = project.build(TORCHEXT_CACHE_DIR=str(kept), **flags())
    assert build.status == 0, build.text
    assert "compiling the kernels of every library into" in build.text
    shutil.rmtree(kept)
    take_headers(kept)
    again = project.build(TORCHEXT_CACHE_DIR=str(kept), **flags())
    assert again.status == 0, again.text
    assert not again.compiled
