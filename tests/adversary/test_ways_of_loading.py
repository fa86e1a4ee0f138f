# SPDX-License-Identifier: BSD-3-Clause
"""An operator computes the same whichever way its library was loaded and under every backend."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from loading_calls import CALLS, WAYS

ROOT = Path(__file__).parents[2]


def run_calls(library: Path, way: str, *backends: str) -> str:
    script = Path(__file__).with_name("loading_calls.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script, library, way, *backends],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize("way", WAYS)
def test_calls_are_those_of_the_composites(way, loadingtest):
    backends = "eager", "aot_eager", "inductor"
    found = run_calls(loadingtest, way, *backends)
    compared = [f"compared {2 * len(CALLS)} calls under {backend}" for backend in backends]
    assert found.splitlines() == compared


@pytest.mark.parametrize("way", ["torchext", "torch.ops"])
@pytest.mark.parametrize("backend", ["inductor, dynamic", "export", "cpp wrapper", "AOTInductor"])
def test_programs_of_any_size_are_those_of_the_composites(backend, way, loadingtest):
    found = run_calls(loadingtest, way, backend)
    assert found.splitlines() == [f"compared {2 * len(CALLS)} calls under {backend}"]


TAGS = """
import sys, threading, torch
from loading_calls import WAYS
config = torch.compiler.config
way, path, thread, mine = sys.argv[1:]
if mine:
    config.cache_key_tag = mine

def load():
    WAYS[way](path)
    found.append(wait_for_tag())

def wait_for_tag():
    import time
    end = time.monotonic() + 30
    while "@" not in config.cache_key_tag and time.monotonic() < end:
        time.sleep(0.001)
    return config.cache_key_tag

found = []
if thread == "main":
    load()
else:
    worker = threading.Thread(target=load)
    worker.start()
    worker.join()
another = threading.Thread(target=lambda: found.append(config.cache_key_tag))
another.start()
another.join()
WAYS["torchext"](path)
found.append(config.cache_key_tag)
print(*found, sep="\\n")
"""


def tags(way: str, library: Path, thread: str, mine: str = "") -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", TAGS, way, library, thread, mine],
        cwd=Path(__file__).parent,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("thread", ["main", "another"])
@pytest.mark.parametrize("way", WAYS)
def test_compiled_code_belongs_to_the_build_in_every_thread(way, thread, loadingtest):
    found = tags(way, loadingtest, thread)
    assert len(found) == 3 and len(set(found)) == 1, found
    assert found[0].startswith("loadingtest@") and len(found[0].split()) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_tag_that_the_program_has_set_is_kept(way, loadingtest):
    here, elsewhere, again = tags(way, loadingtest, "main", mine="mine")
    assert here.split() == again.split() == [elsewhere, "mine"]
