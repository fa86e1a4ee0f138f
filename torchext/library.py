# SPDX-License-Identifier: BSD-3-Clause
"""Opens built operator libraries, after checking that they fit the torch that is installed."""

from __future__ import annotations

import contextlib
import ctypes
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

# namespace -> the shared object that was loaded for it first
_LOADED: dict[str, str] = {}


def load_library(name_or_path: str | os.PathLike):
    """Load an operator library and return its namespace, the same object as `torch.ops.<ns>`.

    `name_or_path` is the name of the package that holds the library, or the path of the shared
    object or of its folder. Raises ImportError where it is missing, was built for another torch, or
    could not register its operators; the process can go on then. Loading twice is harmless.
    """
    name = os.fspath(name_or_path)
    path = find_library(name)
    built_for = require_fit(path)
    _open(path, built_for.namespace)
    _LOADED.setdefault(built_for.namespace, path)
    if built_for.python is not None:
        _open_python_part(record.python_part_path(path), built_for.namespace)
    _use_python_warnings()
    import torch

    return getattr(torch.ops, built_for.namespace)


def loaded_path(library: str | os.PathLike) -> str:
    """Return the path of a library that is loaded, by its namespace, or load it by what
    `load_library` takes."""
    name = os.fspath(library)
    if name not in _LOADED and name == "myns":
        from . import ops  # noqa: F401  # torchext's own operators
    if name not in _LOADED:
        load_library(name)
        return find_library(name)
    return _LOADED[name]


def loaded_paths() -> list[str]:
    """The paths of the libraries that are loaded, in that order."""
    return list(_LOADED.values())


def _use_python_warnings() -> None:
    """Let fallbacks warn in Python; without torchext's own module they do so on stderr."""
    from .runtime import runtime

    with contextlib.suppress(ImportError):
        runtime()


def require_fit(path: str) -> BuildRecord:
    """Return what the library at `path` was built for; ImportError where that is not installed."""
    try:
        built_for = BuildRecord.read(record.record_path(path))
    except (OSError, ValueError) as error:
        reason = f"{path} has no usable build record ({error})"
        raise ImportError(f"{reason}. {_build_it(path)}") from None
    _require_torch()
    installed = record.of_installed_torch(
        built_for.namespace, torchext.__version__, False, built_for.python is not None
    )
    if not built_for.fits(installed):
        raise ImportError(
            f"{path} was built for {built_for.describe()}, but {installed.describe()} is "
            f"installed. {_build_it(path)}"
        )
    return built_for


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
            raise ImportError(f"there is no library {given}. {_build_it(given)}")
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
        raise ImportError(f"{name} holds no built operator library. {_build_it(folders[0])}")
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


def _open(path: str, namespace: str) -> None:
    try:
        library = ctypes.CDLL(path)
        error_of = getattr(library, f"torchext_library_error_{namespace}")
    except OSError as error:
        raise ImportError(f"{path} cannot be opened: {error}. {_build_it(path)}") from None
    except AttributeError:
        raise ImportError(f"{path} is not the torchext library of {namespace!r}") from None
    error_of.restype = ctypes.c_char_p
    error = error_of()
    if error is not None:
        raise ImportError(error.decode())
    from . import dynamic_sizes  # noqa: F401  # which the library's Meta kernels call

    # with Python's lock; the library does so by itself as well, but after a moment
    getattr(ctypes.PyDLL(path), f"torchext_tag_compile_cache_{namespace}")()


def _open_python_part(path: str, namespace: str) -> None:
    """Register the classes of the library's backward nodes, so that grad_fn shows them."""
    import torch

    try:
        # PyDLL: it runs with Python's lock, and raises what Python raises
        node_classes = getattr(ctypes.PyDLL(path), f"torchext_python_library_{namespace}")
    except OSError as error:
        raise ImportError(f"{path} cannot be opened: {error}. {_build_it(path)}") from None
    except AttributeError:
        raise ImportError(f"{path} is not the Python part of {namespace!r}") from None
    node_classes.restype = ctypes.py_object
    try:
        classes = node_classes()
    except Exception as error:
        raise ImportError(f"{path} cannot register its grad_fn classes: {error}") from error
    for node_class in classes.values():
        torch.autograd.graph.Node.register(node_class)


def _build_it(path: str) -> str:
    """Return the sentence with the command that builds the library at `path` (again)."""
    pip = "python -m pip install --no-build-isolation --no-deps --force-reinstall --no-cache-dir"
    source = _source(Path(path))
    where = "" if source else ", in the folder of its sources,"
    return f"Build it for this torch{where} with\n    {pip} {source or '.'}"


def _source(path: Path) -> str | None:
    """Return what pip builds the library from; None where nobody has noted it.

    The origin of a distribution is in its direct_url.json (PEP 610); what has none is an index's.
    """
    folder = path if path.is_dir() else path.parent
    for parent in [folder, *folder.parents][:3]:
        if (parent / "setup.py").exists():
            return f"-e {shlex.quote(str(parent))}"
    owners = importlib.metadata.packages_distributions().get(folder.name)
    if not owners:
        return None
    noted = importlib.metadata.distribution(owners[0]).read_text("direct_url.json")
    if noted is None:
        return f"--no-binary {owners[0]} {owners[0]}"
    origin = json.loads(noted)
    url = origin["url"]
    if vcs := origin.get("vcs_info"):
        return shlex.quote(f"{vcs['vcs']}+{url}@{vcs['commit_id']}")
    if url.endswith(".whl"):
        return None
    local = url.startswith("file:")
    return shlex.quote(url2pathname(urlsplit(url).path) if local else url)
