# SPDX-License-Identifier: BSD-3-Clause
"""Libraries that build and cannot be loaded, each for a reason of its own."""

from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

NAMES = ("other_schema", "unknown_operator", "hidden_parts", "late_failure")
libraries = [
    OpLibrary(
        name,
        namespace=name,
        native_functions=f"{name}.yaml",
        sources=[f"{name}.cpp"],
    )
    for name in NAMES
]
setup(name="refused", ext_modules=libraries, cmdclass={"build_ext": BuildExtension})
