# SPDX-License-Identifier: BSD-3-Clause
"""Libraries that build and cannot be loaded, each for a reason of its own."""

from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

MACROS = {
    "other_schema": (),
    "unknown_operator": ("TWO_ARGUMENTS",),
    "hidden_parts": ("TWO_ARGUMENTS",),
    "late_failure": ("FAILS_LATE",),
}
libraries = [
    OpLibrary(
        name,
        namespace=name,
        native_functions=f"{name}.yaml",
        sources=["kernels.cpp"],
        define_macros=[("LIBRARY", name), *((macro, None) for macro in macros)],
    )
    for name, macros in MACROS.items()
]
setup(name="refused", ext_modules=libraries, cmdclass={"build_ext": BuildExtension})
