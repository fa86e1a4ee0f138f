# SPDX-License-Identifier: BSD-3-Clause
"""What a setup.py imports: `OpLibrary` describes an operator library, `BuildExtension` builds it.

    from setuptools import setup
    from torchext.build import BuildExtension, OpLibrary

    library = OpLibrary("my_ops._C", namespace="my_ops", sources=["csrc/*.cpp", "csrc/*.cu"],
                        native_functions="native_functions.yaml", derivatives="derivatives.yaml")
    setup(packages=["my_ops"], ext_modules=[library], cmdclass={"build_ext": BuildExtension})

The parts are in `torchext/toolchain/`, one module a concern.
"""

from .toolchain.op_library import OpLibrary

__all__ = ["BuildExtension", "OpLibrary"]  # noqa: F822  the first is below


def __getattr__(name: str):
    # BuildExtension derives from torch's; metadata and source distributions must not need torch.
    if name != "BuildExtension":
        raise AttributeError(f"module 'torchext.build' has no attribute {name!r}")
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from .toolchain.without_torch import BuildExtension
    else:
        from .toolchain.command import BuildExtension
    return BuildExtension
