# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "sample_ops._C",
    namespace="sample_ops",
    sources=["csrc/*.cpp"],
    native_functions="native_functions.yaml",
    derivatives="derivatives.yaml",
)
setup(
    name="sample-ops",
    version="1.0",
    packages=["sample_ops"],
    ext_modules=[library],
    cmdclass={"build_ext": BuildExtension},
)
