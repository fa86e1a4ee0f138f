# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "code_of_rows", namespace="code_of_rows", native_functions="native_functions.yaml"
)
setup(name="code_of_rows", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
