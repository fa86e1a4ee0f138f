# SPDX-License-Identifier: BSD-3-Clause
"""What makes programs runs without `torchext.override`.

A compiler runs operators too: it folds constants, and what a trace computes besides its inputs
stays in it. Programs and their caches, some on disk, outlive an override and are used by threads
that are in none. So while one is made no override holds, and none can be entered: every program is
that of no override, and its kernels are overridden when it is called.

PyTorch has no hook for that: the functions below are replaced, in modules that are imported later
as soon as they are.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import importlib
import importlib.abc
import inspect
import os
import sys
import threading
import types
from collections.abc import Callable

from .runtime import runtime

# module -> its functions and methods that make programs; a name may be a pattern
_MAKERS = {
    # what Dynamo, AOTAutograd's compiled backward, Inductor and export set up, each for its run
    "torch._guards": ["tracing"],
    # a frame, a backward that is compiled when it is first called, the recording of a CUDA graph
    "torch._dynamo.callback": ["CompilationCallbackHandler.install_callbacks"],
    "torch._functorch.aot_autograd": [
        "create_aot_state",
        "aot_stage1_graph_capture",
        "aot_stage2_compile",
    ],
    "torch._inductor.compile_fx": ["compile_fx", "compile_fx_inner", "compile_fx_aot"],
    "torch._inductor.constant_folding": ["ConstantFolder.run"],
    "torch.export._trace": ["_export"],
    "torch._export.passes.constant_folding": ["ConstantFolder.run"],
    # symbolic_trace, make_fx and what is built on it
    "torch.fx._symbolic_trace": ["Tracer.trace"],
    "torch.fx.experimental.const_fold": ["FoldedGraphModule.run_folding"],
    # what it finds out of a call it keeps for the next one, of constants their value
    "torch._subclasses.fake_tensor": ["FakeTensorMode.dispatch"],
    # TorchScript, and ONNX where that is made of it
    "torch._C": [
        "_create_*_from_trace*",
        "ScriptModule._create_*_from_trace*",
        "_create_graph_by_tracing",
        "_freeze_module",
        "_jit_pass_*",
    ],
    "torch.jit._trace": ["_check_trace"],
}

_lock = threading.Lock()
_missing: set[str] = set()  # of the modules, those that are not imported yet
_is_watching = False
# A child must not find the lock held by a thread that it has not.
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


def suspend_overrides_in_program_makers() -> None:
    """See to it, before anything is overridden."""
    global _is_watching
    if _is_watching and not _missing & sys.modules.keys():
        return
    with _lock:
        if not _is_watching:
            _missing.update(_MAKERS)
            if _finder not in sys.meta_path:
                sys.meta_path.insert(0, _finder)
        # and what another thread was about to import when this was asked first
        for name in _missing & sys.modules.keys():
            _replace_makers(importlib.import_module(name))  # waits where it is being imported
        _is_watching = True


class _Finder(importlib.abc.MetaPathFinder):
    """Replaces the functions of a module as soon as it has been imported."""

    def find_spec(self, name, path=None, target=None):
        if name not in _missing or getattr(_asked, "name", None) == name:
            return None
        _asked.name = name  # by a finder that asks all the others
        try:
            for finder in sys.meta_path:
                find = None if finder is self else getattr(finder, "find_spec", None)
                spec = find(name, path, target) if find is not None else None
                if spec is not None:
                    spec.loader.exec_module = functools.partial(_execute, spec.loader.exec_module)
                    return spec
        finally:
            _asked.name = None
        return None


_finder = _Finder()
_asked = threading.local()  # the module that this thread looks for


def _execute(execute, module: types.ModuleType) -> None:
    execute(module)
    _replace_makers(module)


def _replace_makers(module: types.ModuleType) -> None:
    if module.__name__ not in _missing:
        return
    _missing.discard(module.__name__)
    replaced = {}
    for path in _MAKERS[module.__name__]:
        *owners, pattern = path.split(".")
        owner = functools.reduce(getattr, owners, module)
        found = fnmatch.filter(vars(owner), pattern)
        if not found:
            raise RuntimeError(f"{module.__name__} has no {path}: which torch is this?")
        for name in found:
            made = _without_overrides(getattr(owner, name))
            if owner is module:
                replaced[id(getattr(owner, name))] = made
            setattr(owner, name, made)
    _replace_where_imported(replaced)


def _replace_where_imported(replaced: dict[int, Callable]) -> None:
    """In the modules that have imported a function by its name before."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        for name, value in list(names.items()):
            if id(value) in replaced and value is not replaced[id(value)]:
                names[name] = replaced[id(value)]


def _without_overrides(function):
    """The function, during which no override holds on its thread; as a context, while entered."""
    if inspect.isgeneratorfunction(inspect.unwrap(function)):

        @functools.wraps(function)
        @contextlib.contextmanager
        def make(*args, **kwargs):
            with runtime().SuspendedOverrides(), function(*args, **kwargs) as value:
                yield value
    else:

        @functools.wraps(function)
        def make(*args, **kwargs):
            with runtime().SuspendedOverrides():
                return function(*args, **kwargs)

    return make
