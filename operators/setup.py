# SPDX-License-Identifier: BSD-3-Clause
"""The wheel of torchext's own operators: `torchext/_C.so` beside the Python of the tool's wheel.

It is built at the top level, where the operators are described and their sources are, with the
objects that a build in place leaves there.
"""

import contextlib
import os
import runpy
from collections.abc import Iterator
from pathlib import Path

from setuptools import setup

TOP = Path(__file__).resolve().parents[1]


@contextlib.contextmanager
def at_the_top() -> Iterator[None]:
    before = os.getcwd()
    os.chdir(TOP)
    try:
        yield
    finally:
        os.chdir(before)


with at_the_top():
    top = runpy.run_path("setup.py")  # which calls setup() as a program only

from torchext import __version__  # noqa: E402  the checkout's, which the setup.py has put on the path


class BuildExtension(top["BuildExtension"]):
    def run(self) -> None:
        self.build_lib = os.path.abspath(self.build_lib)
        with at_the_top():
            super().run()


setup(
    version=__version__,
    install_requires=[f"torchext=={__version__}"],
    ext_modules=[top["operators"]],
    cmdclass={"build_ext": BuildExtension},
)
