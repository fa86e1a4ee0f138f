# SPDX-License-Identifier: BSD-3-Clause
"""Builds torchext and its own operator library, by the path that a user's library takes."""

import sys
from pathlib import Path

from setuptools import find_packages, setup

# A bare checkout builds itself: its own torchext.build, and the generator, which stands at the top
# level here and is installed as torchext.codegen.
sys.path.insert(0, str(Path(__file__).resolve().parent))
import codegen  # noqa: E402

sys.modules["torchext.codegen"] = codegen
from torchext.build import BuildExtension, OpLibrary  # noqa: E402
from torchext.toolchain.op_library import PythonModule  # noqa: E402

generator = [f"torchext.{package}" for package in find_packages(include=["codegen", "codegen.*"])]

setup(
    packages=[*find_packages(include=["torchext", "torchext.*"]), *generator, "torchext.csrc"],
    package_dir={"torchext.codegen": "codegen", "torchext.csrc": "csrc"},
    package_data={
        "torchext": ["py.typed"],
        # for the libraries of users: headers of generated code, what all libraries have alike, and
        # the test device
        "torchext.csrc": [
            "include/**/*.h",
            "include/**/*.hpp",
            "boxed/*",
            "python/*",
            "testing/**/*",
        ],
    },  # fmt: skip
    ext_modules=[
        OpLibrary(
            "torchext._C",
            namespace="myns",
            native_functions="native_functions.yaml",
            derivatives="derivatives.yaml",
            sources=["csrc/meta/*.cpp", "csrc/cpu/*.cpp", "csrc/cuda/*.cu"],
            include_dirs=["csrc"],  # for ufunc/*.h
        ),
        PythonModule(
            "torchext._runtime",
            sources=["csrc/runtime/*.cpp"],
            include_dirs=["csrc/include", "csrc/include/torchext/replacements"],
        ),
    ],
    cmdclass={"build_ext": BuildExtension},
)
