# SPDX-License-Identifier: BSD-3-Clause
"""Where a built operator library is, and whether it fits the torch that is installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shlex
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import torchext

from .toolchain import record
from .toolchain.record import BuildRecord


def find_library(name: str) -> str:
    """Return the path of the shared object that a package name or a path means, without opening it.

    C++ programs open it themselves. Raises ImportError where there is none, or more than one.
    """
    if os.sep in name or os.path.exists(name) and name.endswith(".so"):
        folders, given = ([name], None) if os.path.isdir(name) else ([], name)
    else:
        folders, given = _package_folders(name), None
    if given is not None:
        if not os.path.isfile(given):
            raise ImportError(f"there is no library {given}. {build_it(given)}")
        return os.path.abspath(given)
    found = [str(path) for folder in folders for path in sorted(Path(folder).glob("*.so"))]
    # A package may hold Python extension modules as well: a library has a record, or is `_C`.
    ours = [path for path in found if os.path.exists(record.record_path(path))] or [
        path for path in found if Path(path).stem == "_C"
    ]
    preferred = [path for path in ours if Path(path).stem == "_C"] or ours
    if len(preferred) == 1:
        return os.path.abspath(preferred[0])
    if not preferred:
        raise ImportError(f"{name} holds no built operator library. {build_it(folders[0])}")
    raise ImportError(f"{name} holds several libraries, load one by its path: {preferred}")


def _package_folders(name: str) -> list[str]:
    package = name.removesuffix("._C")
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise ImportError(f"there is no package {package!r} to load an operator library from")
    return list(spec.submodule_search_locations or [os.path.dirname(spec.origin or "")])


def _require_torch() -> None:
    try:
        import torch  # noqa: F401  # also brings torch's libraries into the process
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError("torch is not installed, and an operator library needs it") from None


def require_fit(path: str) -> BuildRecord:
    """Return what the library at `path` was built for; ImportError where that is not installed."""
    try:
        built_for = BuildRecord.read(record.record_path(path))
    except (OSError, ValueError) as error:
        reason = f"{path} has no usable build record ({error})"
        raise ImportError(f"{reason}. {build_it(path)}") from None
    _require_torch()
    installed = record.of_installed_torch(
        built_for.namespace, torchext.__version__, False, built_for.python is not None
    )
    if not built_for.fits(installed):
        raise ImportError(
            f"{path} was built for {built_for.describe()}, but {installed.describe()} is "
            f"installed. {build_it(path)}"
        )
    return built_for


def build_it(path: str) -> str:
    """Return the sentence with the command that builds the library at `path` (again)."""
    pip = "python -m pip install --no-build-isolation --no-deps --force-reinstall --no-cache-dir"
    folder = Path(path) if os.path.isdir(path) else Path(path).parent
    source = _source(folder)
    where = "" if source else ", in the folder of its sources,"
    here = "./operators" if _is_own(folder) else "."
    return f"Build it for this torch{where} with\n    {pip} {source or here}"


def _is_own(folder: Path) -> bool:
    """Whether the library is that of torchext's own operators."""
    return folder.resolve() == Path(__file__).resolve().parent


def _owner(folder: Path) -> str | None:
    """Return the distribution that the library in a folder is of, if it is installed."""
    owners = importlib.metadata.packages_distributions().get(folder.name, [])
    if _is_own(folder):  # a distribution beside that of the package
        owners = [owner for owner in owners if owner == "torchext-operators"]
    return owners[0] if owners else None


def _source(folder: Path) -> str | None:
    """Return what pip builds the library in a folder from; None where nobody has noted it.

    The origin of a distribution is in its direct_url.json (PEP 610); what has none is an index's.
    """
    for parent in [folder, *folder.parents][:3]:
        if (parent / "setup.py").exists():
            return f"-e {shlex.quote(str(parent))}"
    owner = _owner(folder)
    if owner is None:
        return None
    noted = importlib.metadata.distribution(owner).read_text("direct_url.json")
    if noted is None:
        return f"--no-binary {owner} {owner}"
    origin = json.loads(noted)
    url = origin["url"]
    if vcs := origin.get("vcs_info"):
        inside = f"#subdirectory={part}" if (part := origin.get("subdirectory")) else ""
        return shlex.quote(f"{vcs['vcs']}+{url}@{vcs['commit_id']}{inside}")
    if url.endswith(".whl"):
        return None
    local = url.startswith("file:")
    return shlex.quote(url2pathname(urlsplit(url).path) if local else url)
