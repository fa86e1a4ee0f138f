# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "cuda_kernels_library",
    namespace="cuda_kernels",
    native_functions="native_functions.yaml",
    sources=["*.cu", "*.cpp"],
)
setup(name="cuda_kernels", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
