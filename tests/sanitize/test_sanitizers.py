# SPDX-License-Identifier: BSD-3-Clause
"""`make sanitize` runs nothing that is built without the sanitizer."""

import subprocess

import pytest
from run import FLAGS, Sanitizer

from torchext.toolchain import environment, platforms

TABLE = 'int table[4];\nextern "C" int read(int i) { return table[i]; }\n'


@pytest.fixture
def sanitizer(request, tmp_path):
    """One of a folder whose only library, an object will do, is compiled with its flags."""
    made = Sanitizer(request.param)
    made.folder = tmp_path
    (tmp_path / "torchext").mkdir()
    compiled(tmp_path / "torchext" / "_C.so", FLAGS[made.kind])
    return made


def compiled(library, flags):
    library.parent.mkdir(parents=True, exist_ok=True)
    compiler = environment.find_compiler(platforms.current())
    command = [compiler, "-x", "c++", "-", *flags.split()]
    command += ["-c", "-o", str(library)]
    subprocess.run(command, input=TABLE, text=True, check=True)


@pytest.mark.parametrize("sanitizer", FLAGS, indirect=True)
def test_a_library_without_the_sanitizer_is_refused(sanitizer):
    sanitizer.check_instrumented()
    compiled(sanitizer.folder / "build" / "testing" / "device.so", "-O1")
    with pytest.raises(SystemExit, match=rf"device.so is built without the {sanitizer.kind} san"):
        sanitizer.check_instrumented()


def test_a_library_with_another_sanitizer_is_refused(tmp_path):
    address = Sanitizer("address")
    address.folder = tmp_path
    compiled(tmp_path / "torchext" / "_C.so", FLAGS["thread"])
    with pytest.raises(SystemExit, match="_C.so is built without the address sanitizer"):
        address.check_instrumented()
