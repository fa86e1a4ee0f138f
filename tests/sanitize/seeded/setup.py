# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "seeded_library",
    namespace="seeded",
    native_functions="native_functions.yaml",
    sources=["kernels.cpp"],
)
setup(name="seeded", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
