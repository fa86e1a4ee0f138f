# SPDX-License-Identifier: BSD-3-Clause
"""Builds torchext, and in place its own operator library, by the path that a user's library takes.

The wheel is the tool alone, and pure: of its C++ a library brings what it needs, and its tests
compile the rest. The operators are a distribution of their own, operators/.
"""

import os
import shutil
import sys
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel

# A bare checkout builds itself: its own torchext.build, and the generator, which stands at the top
# level here and is installed as torchext.codegen.
sys.path.insert(0, str(Path(__file__).resolve().parent))
import codegen  # noqa: E402

sys.modules["torchext.codegen"] = codegen
from torchext.build import BuildExtension, OpLibrary  # noqa: E402


class ToolWheel(bdist_wheel):
    """The wheel, in which the operators are not, nor anything that an earlier build left."""

    def run(self) -> None:
        self.distribution.ext_modules = None
        self.root_is_pure = True
        build = self.reinitialize_command("build", reinit_subcommands=True)
        build.build_lib = os.path.join("build", "tool")
        shutil.rmtree(build.build_lib, ignore_errors=True)
        super().run()


operators = OpLibrary(
    "torchext._C",
    namespace="myns",
    native_functions="native_functions.yaml",
    derivatives="derivatives.yaml",
    sources=["csrc/meta/*.cpp", "csrc/cpu/*.cpp", "csrc/cuda/*.cu"],
    include_dirs=["csrc"],  # for ufunc/*.h
)
generator = [f"torchext.{package}" for package in find_packages(include=["codegen", "codegen.*"])]

if __name__ == "__main__":
    setup(
        packages=[*find_packages(include=["torchext", "torchext.*"]), *generator, "torchext.csrc"],
        package_dir={"torchext.codegen": "codegen", "torchext.csrc": "csrc"},
        package_data={
            "torchext": ["py.typed"],
            "torchext.codegen": ["fused/*.yaml"],
            # for the libraries of users: headers of generated code, what all libraries have alike,
            # and the test device
            "torchext.csrc": [
                "include/**/*.h",
                "include/**/*.cuh",
                "include/**/*.hpp",
                "boxed/*",
                "python/*",
                "runtime/*",
                "testing/**/*",
            ],
        },  # fmt: skip
        ext_modules=[operators],
        cmdclass={"build_ext": BuildExtension, "bdist_wheel": ToolWheel},
    )
