# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "vmaptest_library",
    namespace="vmaptest",
    native_functions="native_functions.yaml",
    derivatives="derivatives.yaml",
    sources=["kernels.cpp"],
)
setup(name="vmaptest", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
