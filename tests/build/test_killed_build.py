# SPDX-License-Identifier: BSD-3-Clause
"""A build that is killed at any moment leaves a tree in which the next one succeeds.

TORCHEXT_KILLED_BUILDS is how many are killed at a step of Python's; "all" is one at each step that
changes a file or starts a program.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sample_project import COMMAND, Project, flags, python, run

from torchext.toolchain import environment, platforms
from torchext.toolchain.one_build import _builds

pytestmark = pytest.mark.slow

KILLS = os.environ.get("TORCHEXT_KILLED_BUILDS", "2")
HOOK = Path(__file__).parent / "killed"
# Files of the generated code are added, changed and taken away, and one kernel is compiled.
OLD, NEW = "square", "squared"
# Says that it compiles, and waits until it may.
SLOW_COMPILER = """\
#!/bin/sh
case "$*" in *" -c "*)
    touch "$PROJECT/compiler.$$"
    for _ in $(seq 1200); do test -e "$PROJECT/go" && break; sleep 0.1; done
esac
exec {} "$@"
"""
EDITS = (
    ("native_functions.yaml", "func: {}(Tensor self)"),
    ("csrc/square.cpp", "kernels/{}.h"),
)


def rename(project: Project, old: str, new: str) -> None:
    for path, text in EDITS:
        project.edit(path, text.format(old), text.format(new))


def check(project: Project, name: str, other: str, after: str) -> None:
    """The next build succeeds and is complete, and its library is that of the sources."""
    build = project.build()
    assert build.status == 0, f"{after}:\n{build.text}"
    program = (
        "import torch, sample_ops\n"
        f"assert sample_ops.ops.{name}(torch.ones(1) * 3).item() == 9\n"
        f"assert not hasattr(sample_ops.ops, '{other}')"
    )
    loaded = python(program, project.folder)
    assert loaded.status == 0, f"{after}:\n{loaded.text}"
    again = project.build()
    assert (again.compiled, again.linked) == ([], False), f"{after}:\n{again.text}"


def steps(project: Project, log: Path, kill_at: int = -1) -> list[str]:
    """The steps of a build, which ends at one of them."""
    log.unlink(missing_ok=True)
    path = os.pathsep.join(filter(None, [str(HOOK), os.environ.get("PYTHONPATH")]))
    build = run(
        COMMAND, project.folder, **flags(), PYTHONPATH=path,
        TORCHEXT_STEPS=str(log), TORCHEXT_KILL_AT=str(kill_at),
    )  # fmt: skip
    assert build.status == (0 if kill_at < 0 else -signal.SIGKILL), build.text
    return log.read_text().splitlines()


def test_killed_at_a_step(project, tmp_path):
    log, names = tmp_path / "steps", (OLD, NEW)
    rename(project, *names)
    count = len(steps(project, log))
    assert count > 20
    kills = count if KILLS == "all" else int(KILLS)
    for index in range(kills):
        names = names[::-1]
        rename(project, *names)
        after = steps(project, log, kill_at=count * (2 * index + 1) // (2 * kills))[-1]
        check(project, names[1], names[0], f"killed at step {after}")


def killed_after(project: Project, seconds: float, whole_group: bool) -> bool:
    """Whether a build that compiles all kernels was killed, and not done before."""
    touch_kernels(project)
    build = project.start()
    try:
        build.wait(seconds)
    except subprocess.TimeoutExpired:
        kill = os.killpg if whole_group else os.kill
        kill(build.pid, signal.SIGKILL)
    return build.wait() == -signal.SIGKILL


def touch_kernels(project: Project) -> None:
    for path in project.folder.glob("csrc/*.cpp"):
        os.utime(path)


@pytest.mark.parametrize("whole_group", [True, False], ids=["all_processes", "python_alone"])
def test_killed_after_a_time(project, whole_group):
    """Once all processes, as Ctrl-C and timeouts do; else Python alone, and ninja lives on."""
    chance = random.Random(whole_group)
    touch_kernels(project)
    began = time.monotonic()
    assert project.build().status == 0
    whole = time.monotonic() - began
    kills = killed = 20 if KILLS == "all" else 1
    for _ in range(5 * kills):
        seconds = chance.uniform(0.1, 0.9) * whole
        if killed_after(project, seconds, whole_group):
            killed -= 1
            check(project, OLD, NEW, f"killed after {seconds} s")
        else:
            whole *= 0.7  # the machine was slower before
        if killed == 0:
            return
    pytest.fail(f"{killed} of {kills} builds were done before their time")


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended may not have been waited for."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")


def test_compilers_are_found_through_a_symbolic_link(tmp_path):
    """Whose working directory is spelled without it."""
    (tmp_path / "real" / "objects").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    linked = str(tmp_path / "link" / "objects")
    command = [sys.executable, "-c", "import time; time.sleep(600)", "-o", "a.o"]
    with subprocess.Popen(command, cwd=linked) as compiler:
        deadline = time.monotonic() + 60  # a process that has just begun has no command line yet
        while not (found := _builds(str(compiler.pid), linked)) and time.monotonic() < deadline:
            time.sleep(0.01)
        other = _builds(str(compiler.pid), str(tmp_path / "other"))
        compiler.kill()
    assert found and not other


def test_compilers_that_outlive_ninja_are_waited_for(project, tmp_path):
    """Each is in a process group of its own, and would write an object after the next build has."""
    compiler = tmp_path / "slow_compiler"
    compiler.write_text(SLOW_COMPILER.format(environment.find_compiler(platforms.current())))
    compiler.chmod(0o755)
    # what is compiled for the cache is no object of the library, and ends with the build
    slow = {"CXX": str(compiler), "PROJECT": str(project.folder), "TORCHEXT_PRECOMPILED": "0"}
    build = project.start(**slow)
    try:
        while not (started := list(project.folder.glob("compiler.*"))):
            assert build.poll() is None, "the build is over, and ran no compiler"
            time.sleep(0.01)
        os.killpg(build.pid, signal.SIGKILL)
        build.wait()
        compilers = [int(path.suffix[1:]) for path in started]
        assert any(map(is_alive, compilers))
        after = project.start(stdout=subprocess.PIPE)
        text = b""
        while b"waiting for compilers" not in text and (line := after.stdout.readline()):
            text += line
    finally:
        (project.folder / "go").touch()
    text += after.communicate()[0]
    assert after.returncode == 0 and b"waiting for compilers" in text, text.decode()
    assert not any(map(is_alive, compilers))
    again = project.build()
    assert (again.compiled, again.linked) == ([], False), again.text
