# SPDX-License-Identifier: BSD-3-Clause
"""examples/aoti_cpp: built and run as its README says, and without Python in the process."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from aoti_program import ARTEFACTS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        torch.version.cuda is not None and shutil.which("nvcc") is None,
        reason="find_package(Torch) of a CUDA build of torch needs the CUDA toolkit",
    ),
]


def test_the_program_gives_the_results_of_python_for_both_batches(program):
    done = program.run(program.artefacts)
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"batch of (\d+): largest difference (\S+)", done.stdout)
    assert [batch for batch, _ in lines] == ["1", "7"]
    assert all(float(difference) < 1e-5 for _, difference in lines)
    assert done.stderr == ""


def test_the_folder_can_be_moved(program, tmp_path):
    done = program.run(program.copy_artefacts(tmp_path))
    assert done.returncode == 0, done.stderr


# ---- no Python


@pytest.fixture(scope="module")
def maps_at_exit(tmp_path_factory) -> Path:
    library = tmp_path_factory.mktemp("maps") / "maps_at_exit.so"
    source = Path(__file__).with_name("maps_at_exit.c")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    return library


def mapped_files(maps: Path) -> set:
    """Names of the files that a process had mapped, without their folders."""
    found = (re.search(r"(/.*)$", line) for line in maps.read_text().splitlines())
    return {Path(match[1]).name for match in found if match}


def python_libraries(names: set) -> list:
    return [name for name in names if re.match(r"libpython|libtorch_python", name)]


def test_no_python_is_in_the_process(program, maps_at_exit, tmp_path):
    maps = tmp_path / "maps"
    done = program.run(program.artefacts, LD_PRELOAD=str(maps_at_exit), MAPS=str(maps))
    assert done.returncode == 0, done.stderr
    names = mapped_files(maps)
    assert {"run_model", "operators.so", "libtorch_cpu.so"} <= names
    assert python_libraries(names) == []


def test_python_would_be_seen(maps_at_exit, tmp_path):
    environment = {"LD_PRELOAD": str(maps_at_exit), "MAPS": str(tmp_path / "maps")}
    subprocess.run([sys.executable, "-c", "import torch"], env=environment, check=True)
    assert "libtorch_python.so" in python_libraries(mapped_files(tmp_path / "maps"))


def test_the_executable_and_the_operators_link_no_python(program):
    for file in (program.executable, program.artefacts / "operators.so"):
        linked = subprocess.run(["ldd", file], check=True, capture_output=True, text=True).stdout
        names = {Path(line.split()[0]).name for line in linked.splitlines()}
        assert "libtorch_cpu.so" in names
        assert python_libraries(names) == []


# ---- what goes wrong


@pytest.mark.parametrize("name", ARTEFACTS)
def test_a_missing_file_is_named(program, tmp_path, name):
    (program.copy_artefacts(tmp_path) / name).unlink()
    done = program.run(tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: there is no file {tmp_path / name}")


def test_a_result_that_differs_is_an_error(program, tmp_path):
    calls = torch.load(program.copy_artefacts(tmp_path) / "calls.pt")
    calls[1]["probabilities"][3, 5] += 1e-3
    torch.save(calls, tmp_path / "calls.pt")
    done = program.run(tmp_path)
    assert done.returncode == 1
    assert re.search(r"batch of 7: largest difference 0\.00[01]", done.stdout)
    assert done.stderr == "error: the results differ from those of Python\n"


def test_another_library_in_the_place_of_the_operators_is_refused(program, maps_at_exit, tmp_path):
    shutil.copyfile(maps_at_exit, program.copy_artefacts(tmp_path) / "operators.so")
    done = program.run(tmp_path, MAPS="/dev/null")
    assert done.returncode == 1
    assert f"{tmp_path / 'operators.so'} is not the torchext library of myns" in done.stderr
