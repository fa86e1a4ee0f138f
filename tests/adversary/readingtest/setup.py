# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "readingtest_library",
    namespace="readingtest",
    native_functions="native_functions.yaml",
    derivatives="derivatives.yaml",
    sources=["kernels.cpp"],
    include_dirs=["include"],
)
setup(name="readingtest", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
