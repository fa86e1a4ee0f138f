# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "rowstest_library", namespace="rowstest", native_functions="native_functions.yaml",
    derivatives="derivatives.yaml",
)  # fmt: skip
setup(name="rowstest", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
