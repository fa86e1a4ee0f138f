# SPDX-License-Identifier: BSD-3-Clause
"""Opens built operator libraries, after checking that they fit the torch that is installed."""

from __future__ import annotations

import ctypes
import os

from .built_library import build_it, find_library, require_fit
from .composites import show_inductor
from .runtime import load_beside
from .toolchain import record

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
    load_beside(path)  # by which fallbacks warn in Python, else on stderr
    show_inductor(built_for.namespace)
    import torch

    return getattr(torch.ops, built_for.namespace)


def loaded_path(library: str | os.PathLike) -> str:
    """Return the path of a library that is loaded, by its namespace, or load it by what
    `load_library` takes."""
    name = os.fspath(library)
    if name not in _LOADED:
        package = "torchext" if name == "myns" else name  # of torchext's own operators
        load_library(package)
        return find_library(package)
    return _LOADED[name]


def loaded_paths() -> list[str]:
    """The paths of the libraries that are loaded, in that order."""
    return list(_LOADED.values())


def _open(path: str, namespace: str) -> None:
    try:
        library = ctypes.CDLL(path)
        error_of = getattr(library, f"torchext_library_error_{namespace}")
    except OSError as error:
        raise ImportError(f"{path} cannot be opened: {error}. {build_it(path)}") from None
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
        raise ImportError(f"{path} cannot be opened: {error}. {build_it(path)}") from None
    except AttributeError:
        raise ImportError(f"{path} is not the Python part of {namespace!r}") from None
    node_classes.restype = ctypes.py_object
    try:
        classes = node_classes()
    except Exception as error:
        raise ImportError(f"{path} cannot register its grad_fn classes: {error}") from error
    for node_class in classes.values():
        torch.autograd.graph.Node.register(node_class)
