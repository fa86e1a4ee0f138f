# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "agtest_library",
    namespace="agtest",
    native_functions="native_functions.yaml",
    derivatives="derivatives.yaml",
    sources=["kernels.cpp", "tangent_kernels.cpp"],
)
setup(name="agtest", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
