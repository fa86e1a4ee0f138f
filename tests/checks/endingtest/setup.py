# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "endingtest_library",
    namespace="endingtest",
    native_functions="native_functions.yaml",
    derivatives="derivatives.yaml",
    sources=["kernels.cpp"],
)
setup(name="endingtest", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
