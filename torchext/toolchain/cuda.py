# SPDX-License-Identifier: BSD-3-Clause
"""Decides whether CUDA kernels are compiled: by toolkit and torch, GPU or not."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass

DEFAULT_ARCHITECTURES = "9.0"  # where neither TORCH_CUDA_ARCH_LIST nor a GPU says


@dataclass(frozen=True)
class CudaBuild:
    """Whether CUDA kernels are built, and with what."""

    # the toolkit's folder; None: CUDA is not built
    home: str | None
    # why not, for the line that the build prints
    reason: str = ""


def decide(torch_cuda: str | None) -> CudaBuild:
    """Decide for a torch built with CUDA `torch_cuda`; TORCHEXT_CUDA=0 or 1 forces."""
    forced = os.environ.get("TORCHEXT_CUDA", "")
    if forced not in ("", "0", "1"):
        raise SystemExit(f"error: TORCHEXT_CUDA={forced!r}: 0 builds without CUDA, 1 insists on it")
    if forced == "0":
        return CudaBuild(None, "TORCHEXT_CUDA=0")
    home, reason = find_usable_toolkit(torch_cuda)
    if home is None and forced == "1":
        raise SystemExit(f"error: TORCHEXT_CUDA=1, but {reason}")
    return CudaBuild(home, reason)


def find_usable_toolkit(torch_cuda: str | None) -> tuple[str | None, str]:
    """Return the toolkit's folder, or None and what is missing."""
    if torch_cuda is None:
        return None, "the installed torch is built without CUDA; install a CUDA build of torch"
    home = find_toolkit()
    if home is None:
        return None, "there is no nvcc: install the CUDA toolkit and set CUDA_HOME to its folder"
    nvcc = os.path.join(home, "bin", "nvcc")
    if not os.access(nvcc, os.X_OK):
        return None, f"there is no {nvcc}: set CUDA_HOME to the folder of a CUDA toolkit"
    release = toolkit_release(nvcc)
    if release.split(".")[0] != torch_cuda.split(".")[0]:
        return None, f"{nvcc} is CUDA {release} and torch is built for CUDA {torch_cuda}"
    return home, ""


def find_toolkit() -> str | None:
    """Return the toolkit's folder: CUDA_HOME, else where the nvcc on PATH really lives."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home:
        return home
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        usual = "/usr/local/cuda"
        return os.path.realpath(usual) if os.path.exists(f"{usual}/bin/nvcc") else None
    # The nvcc on PATH may be a link or a script, so it is asked where its toolkit is.
    asked = subprocess.run([nvcc, "--dryrun", "-c", "x.cu"], capture_output=True, text=True)
    top = re.search(r"^#\$ TOP=(.+)$", asked.stdout + asked.stderr, re.MULTILINE)
    folder = top[1].strip() if top else os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    return os.path.realpath(folder)


def toolkit_release(nvcc: str) -> str:
    """Return nvcc's release ("13.0"), or "unknown"."""
    answer = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
    release = re.search(r"release (\d+\.\d+)", answer)
    return release[1] if release else "unknown"


def math_include_dirs(home: str) -> list[str]:
    """Return the folders with headers that ATen's CUDA headers want and a slim toolkit lacks.

    torch's CUDA wheels bring cublas, cusparse and their kin as packages below `nvidia/`.
    """
    if os.path.exists(os.path.join(home, "include", "cublas_v2.h")):
        return []
    packages = os.path.join(sysconfig.get_path("purelib"), "nvidia")
    return sorted(glob.glob(os.path.join(packages, "*", "include")))


def set_environment(build: CudaBuild, gpu_is_visible: bool) -> None:
    """Tell torch's build command, which reads these variables, about the decision."""
    if build.home is None:
        return
    os.environ["CUDA_HOME"] = build.home
    if not gpu_is_visible:
        os.environ.setdefault("TORCH_CUDA_ARCH_LIST", DEFAULT_ARCHITECTURES)
