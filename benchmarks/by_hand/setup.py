# SPDX-License-Identifier: BSD-3-Clause
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="by_hand",
    version="0.1",
    py_modules=[],
    ext_modules=[CppExtension("by_hand", ["ops.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
