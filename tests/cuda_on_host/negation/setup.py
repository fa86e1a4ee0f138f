# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "negation_library",
    namespace="negation",
    native_functions="native_functions.yaml",
    sources=["kernels.cpp", "kernels.cu"],
)
setup(name="negation", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
