# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "rulestest_library",
    namespace="rulestest",
    native_functions="native_functions.yaml",
    sources=["kernels.cpp"],
)
setup(name="rulestest", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
