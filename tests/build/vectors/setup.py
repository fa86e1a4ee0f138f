# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that are compiled for each instruction set."""

from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "vectors",
    namespace="vectors",
    native_functions="native_functions.yaml",
    sources=["*.cpp"],
    cpu_capabilities=["*_loops.cpp"],
)
setup(name="vectors", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
