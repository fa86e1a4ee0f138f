# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "fused_on_cuda", namespace="fused_on_cuda", native_functions="native_functions.yaml"
)
setup(name="fused_on_cuda", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
