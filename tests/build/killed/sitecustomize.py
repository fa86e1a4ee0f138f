# SPDX-License-Identifier: BSD-3-Clause
"""Ends a build at one of its steps: a file or folder is made, opened to be written, renamed,
removed, copied or given a time, or a program is started.

On the path of a build, it lists the steps in TORCHEXT_STEPS, and at number TORCHEXT_KILL_AT the
process is gone, as if by the power; a file that it was to write is there, and empty.
"""

import os
import signal
import sys

_EVENTS = ("open", "os.mkdir", "os.remove", "os.rename", "os.symlink", "os.truncate", "os.utime",
           "shutil.copyfile", "subprocess.Popen")  # fmt: skip
_WRITES = os.O_WRONLY | os.O_RDWR
_log = os.environ.get("TORCHEXT_STEPS")
_last = int(os.environ.get("TORCHEXT_KILL_AT", "-1"))
_folder = os.getcwd() + os.sep
_steps = 0
_is_inside = False  # this hook, whose own events are none


def _step(event, arguments):
    global _steps, _is_inside
    if event not in _EVENTS or _is_inside:
        return
    writes = event == "open" and arguments[2] & _WRITES
    if event == "open" and not writes:
        return
    # of a link, the second: what is linked to is given as it stands in the link
    path = arguments[1 if event == "os.symlink" else 0]
    if isinstance(path, int):
        path = os.readlink(f"/proc/self/fd/{path}")
    elif not isinstance(path, (str, bytes, os.PathLike)):
        return
    path = os.path.abspath(os.fsdecode(path))
    if event != "subprocess.Popen" and not path.startswith(_folder):
        return
    _is_inside = True
    with open(_log, "a") as log:
        log.write(f"{_steps} {event} {path}\n")
    if _steps == _last:
        if writes:
            open(path, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    _steps += 1
    _is_inside = False


if _log and "setup.py" in sys.orig_argv:
    sys.addaudithook(_step)
