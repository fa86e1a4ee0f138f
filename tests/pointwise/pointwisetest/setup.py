# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "pointwisetest_library",
    namespace="pointwisetest",
    native_functions="native_functions.yaml",
    derivatives="derivatives.yaml",
)
setup(name="pointwisetest", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
