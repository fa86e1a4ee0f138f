# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

library = OpLibrary(
    "guard_ops_library",
    namespace="guard_ops",
    native_functions="native_functions.yaml",
    sources=["guard.cpp"],
)
setup(name="guard_ops", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
