# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "viewtest_library",
    namespace="viewtest",
    native_functions="native_functions.yaml",
    derivatives="derivatives.yaml",
    sources=["kernels.cpp"],
)
setup(name="viewtest", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
