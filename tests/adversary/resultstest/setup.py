# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "resultstest_library",
    namespace="resultstest",
    native_functions="native_functions.yaml",
    derivatives="derivatives.yaml",
    sources=["kernels.cpp"],
)
setup(name="resultstest", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
