# SPDX-License-Identifier: BSD-3-Clause
import sysconfig

from setuptools import setup

from torchext.build import BuildExtension, OpLibrary

setup(
    name="torchlpc",
    version="0.7.2+torchext",
    packages=["torchlpc"],
    install_requires=["torch>=2.11", "torchext", "numpy", "numba"],
    ext_modules=[
        OpLibrary(
            "torchlpc._C",
            namespace="torchlpc",
            native_functions="native_functions.yaml",
            derivatives="derivatives.yaml",
            sources=["original_cpu.cpp", "original_cuda.cu"],
            include_dirs=[".", "torchlpc/csrc", sysconfig.get_paths()["include"]],
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
