# SPDX-License-Identifier: BSD-3-Clause
"""Ends a build at one of its steps: a file that is opened to be written, is renamed, removed or
copied, or a program that is started.

On the path of a build, it lists the steps in TORCHEXT_STEPS, and at number TORCHEXT_KILL_AT the
process is gone, as if by the power; a file that it was to write is there, and empty.
"""

import os
import signal
import sys

_EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "shutil.copyfile", "subprocess.Popen")
_WRITES = os.O_WRONLY | os.O_RDWR
_log = os.environ.get("TORCHEXT_STEPS")
_last = int(os.environ.get("TORCHEXT_KILL_AT", "-1"))
_folder = os.getcwd() + os.sep
_steps = 0
_is_ours = True  # not an event of this hook


def _step(event, arguments):
    global _steps, _is_ours
    if event not in _EVENTS or not _is_ours:
        return
    path, writes = arguments[0], event == "open" and arguments[2] & _WRITES
    if event == "open" and not writes:
        return
    if not isinstance(path, (str, bytes, os.PathLike)):
        return
    path = os.path.abspath(os.fsdecode(path))
    if event != "subprocess.Popen" and not path.startswith(_folder):
        return
    _is_ours = False
    with open(_log, "a") as log:
        log.write(f"{_steps} {event} {path}\n")
    if _steps == _last:
        if writes:
            open(path, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    _steps += 1
    _is_ours = True


if _log and "setup.py" in sys.orig_argv:
    sys.addaudithook(_step)
