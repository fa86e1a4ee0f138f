# SPDX-License-Identifier: BSD-3-Clause
"""The calls of aten overloads that PyTorch's OpInfo samples make below autograd.

Each OpInfo runs forward, backward and double backward on its samples under a dispatch mode, and
once more below autograd, where composite operators are still whole. Up to eight calls are kept of
an overload, such that their arguments differ in kind.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import itertools
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.opinfo import core
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

CALLS = 8  # kept of an overload
_CANDIDATES = 64  # different structures looked at
_SAMPLES = 48  # of an OpInfo and dtype
_LARGE = 100_000  # elements of a tensor
DTYPES = (torch.float64, torch.complex128)
_DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}

Call = tuple[tuple, dict]


def compact(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same sizes and strides, whose storage holds no more than it needs."""
    tensor = tensor.detach()
    if tensor.layout != torch.strided or tensor.numel() == 0:
        return tensor.clone()
    spans = [(size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())]
    flat = tensor.as_strided((sum(spans) + 1,), (1,), tensor.storage_offset())
    return flat.clone().as_strided(tensor.shape, tensor.stride())


class Recorder(TorchDispatchMode):
    """Keeps copies of the arguments of the overloads that are wanted."""

    def __init__(self, wanted: Iterable[str]):
        super().__init__()
        self.wanted = set(wanted)
        self.calls: dict[str, dict[tuple, Call]] = {}
        self.origins: dict[str, dict[tuple, str]] = {}
        self.opinfo = ""  # whose samples are running

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        name += f".{func._schema.overload_name}" if func._schema.overload_name else ""
        if name in self.wanted and func.namespace == "aten":
            self._keep(name, _with_tensors(func._schema, args), kwargs)
        return func(*args, **kwargs)

    def _keep(self, name: str, args: tuple, kwargs: dict) -> None:
        found = self.calls.setdefault(name, {})
        key = structure(args, kwargs)
        if key in found or len(found) >= _CANDIDATES:
            return
        values, _ = tree_flatten((args, kwargs))
        if any(isinstance(value, torch.Generator) for value in values):
            return
        found[key] = tree_map(lambda v: compact(v) if _is_tensor(v) else v, (args, kwargs))
        self.origins.setdefault(name, {})[key] = self.opinfo


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _with_tensors(schema: Any, args: tuple) -> tuple:
    """The arguments with tensors in place of numbers, which only aten takes for tensors."""
    return tuple(
        torch.scalar_tensor(value, dtype=_DTYPES[type(value)])
        if type(value) in _DTYPES and argument.type.kind() == "TensorType"
        else value
        for argument, value in zip(schema.arguments, args)
    )


def structure(args: tuple, kwargs: dict) -> tuple:
    """What makes a call another case than one seen already: kinds of arguments, not values."""
    values, spec = tree_flatten((args, kwargs))
    return (str(spec), *map(_kind, values))


def _kind(value: Any) -> object:
    if _is_tensor(value):
        return (str(value.dtype), value.dim(), value.is_contiguous(), value.numel() == 0,
                1 in value.shape, value.numel() > _LARGE)  # fmt: skip
    if isinstance(value, (bool, str, torch.dtype, torch.layout, type(None))):
        return str(value)
    if isinstance(value, int):
        return ("int", (value > 0) - (value < 0))
    if isinstance(value, float):
        return ("float", (value > 0) - (value < 0), value == int(value) if abs(value) < 1e9 else 0)
    return type(value).__name__


def chosen(calls: Iterable[tuple]) -> list[tuple]:
    """Up to eight structures that show the most different kinds of arguments, none large."""
    rest = list(calls)
    if small := [key for key in rest if not _is_large(key)]:
        rest = small
    kept: list[tuple] = []
    seen: set[tuple[int, object]] = set()
    while rest and len(kept) < CALLS:
        best = max(rest, key=lambda key: len(set(enumerate(key)) - seen))
        rest.remove(best)
        kept.append(best)
        seen |= set(enumerate(best))
    return kept


def _is_large(key: tuple) -> bool:
    return any(isinstance(kind, tuple) and len(kind) == 6 and kind[5] for kind in key)


def collect(wanted: Iterable[str], folder: Path, only: Iterable[str] = ()) -> dict[str, list[str]]:
    """Write the calls of each overload to `folder`, unless they are there.

    Returns for each overload the OpInfos that its calls are from; `only` these are run.
    """
    index, wanted, only = folder / "index.json", sorted(wanted), sorted(only)
    if index.exists() and index.stat().st_mtime > Path(__file__).stat().st_mtime:
        found = json.loads(index.read_text(encoding="utf-8"))
        if (found["wanted"], found["only"]) == (wanted, only):
            return found["origins"]
    recorder = Recorder(wanted)
    for opinfo in _opinfos(set(only)):
        print(f"samples of {opinfo.name}", file=sys.stderr, flush=True)
        recorder.opinfo = opinfo.name
        for dtype in DTYPES:
            _record(recorder, opinfo, dtype)
        gc.collect()
    folder.mkdir(parents=True, exist_ok=True)
    origins = {}
    for name in sorted(recorder.calls):
        keys = chosen(recorder.calls[name])
        if not keys:
            continue  # none that can be kept: sparse tensors, a generator
        origins[name] = sorted({recorder.origins[name][key] for key in keys})
        calls = [recorder.calls[name][key] for key in keys]
        torch.save(tree_map(_pickled, calls), folder / f"{name}.pt")
    content = {"wanted": wanted, "only": only, "origins": origins}
    index.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return origins


def load(folder: Path, name: str) -> list[Call]:
    """The calls of an overload that were collected."""
    calls = torch.load(folder / f"{name}.pt", weights_only=False)
    return tree_map(lambda v: getattr(torch, v.name) if isinstance(v, _MemoryFormat) else v, calls)


@dataclass(frozen=True)
class _MemoryFormat:
    """A torch.memory_format, which pickle does not take."""

    name: str


def _pickled(value: Any) -> Any:
    if isinstance(value, torch.memory_format):
        return _MemoryFormat(str(value).removeprefix("torch."))
    return value


def _opinfos(only: set[str]) -> Iterator[Any]:
    from torch.testing._internal import common_methods_invocations as opinfos

    foreach = (
        opinfos.foreach_unary_op_db, opinfos.foreach_binary_op_db, opinfos.foreach_pointwise_op_db,
        opinfos.foreach_reduce_op_db, opinfos.foreach_other_op_db,
    )  # fmt: skip
    found = itertools.chain(opinfos.op_db, *foreach)
    return (op for op in found if not only or op.name in only)


def _record(recorder: Recorder, opinfo: Any, dtype: torch.dtype) -> None:
    """Run one OpInfo's samples of one dtype under the recorder."""
    if dtype not in opinfo.supported_dtypes("cpu"):
        return
    differentiable = dtype in opinfo.supported_backward_dtypes("cpu") and opinfo.supports_autograd
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for grad in (True, False) if differentiable else (False,):
            for sample in _samples(opinfo, dtype, grad):
                for function, is_inplace in _functions(opinfo):
                    _run(recorder, function, sample, grad, is_inplace)


def _samples(opinfo: Any, dtype: torch.dtype, grad: bool) -> list[Any]:
    """The first samples of an OpInfo, and those with Python scalars where it is a binary ufunc."""
    makers = [opinfo.sample_inputs]
    if isinstance(opinfo, core.BinaryUfuncInfo):
        makers.append(partial(core.generate_elementwise_binary_with_scalar_samples, opinfo))
    found = []
    for make in makers:
        # some samples cannot be made by this build of torch
        with contextlib.suppress(Exception):
            made = make(device="cpu", dtype=dtype, requires_grad=grad)
            found += itertools.islice(made, _SAMPLES)
    return found


def _functions(opinfo: Any) -> list[tuple[Callable, bool]]:
    """What the OpInfo calls, and whether it writes to its input."""
    found = [(opinfo.op, False)]
    if (inplace := opinfo.get_inplace()) is not None:
        found.append((inplace, True))
    elif "inplace" in _parameters(opinfo.op):
        found.append((partial(opinfo.op, inplace=True), True))
    return found


def _parameters(function: Callable) -> Iterable[str]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()


def _run(recorder: Recorder, function: Callable, sample: Any, grad: bool, inplace: bool) -> None:
    """One sample: with its backward and double backward, or below autograd without."""
    value = sample.input
    try:
        if inplace:
            value = tree_map(lambda v: v.clone() if _is_tensor(v) else v, value)
        if grad:
            with recorder:
                result = function(value, *sample.args, **sample.kwargs)
                _backward(sample, result)
        else:
            with torch._C._AutoDispatchBelowAutograd(), recorder:
                function(value, *sample.args, **sample.kwargs)
    except Exception:
        pass  # what was recorded before the sample failed is as good as any


def _backward(sample: Any, result: Any) -> None:
    leaves = [v for v in tree_flatten((sample.input, sample.args, sample.kwargs))[0]
              if _is_tensor(v) and v.requires_grad]  # fmt: skip
    outputs = [v for v in tree_flatten(result)[0] if _is_tensor(v) and v.requires_grad]
    for _ in range(2):
        if not outputs or not leaves:
            return
        weights = [torch.randn_like(output).requires_grad_() for output in outputs]
        grads = torch.autograd.grad(outputs, leaves, weights, create_graph=True, allow_unused=True)
        outputs = [grad for grad in grads if grad is not None and grad.requires_grad]
        leaves = leaves + weights
