# SPDX-License-Identifier: BSD-3-Clause
"""A process of its own that loads loadingtest in one way and calls it under some backends.

    python loading_calls.py LIBRARY WAY BACKEND...

Prints what differs from the composites of ATen's operators, a line each, and how many calls were
compared.
"""

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

import torch

WAYS = {
    "torchext": lambda path: __import__("torchext").load_library(path),
    "torch.ops": torch.ops.load_library,
    "torch.classes": torch.classes.load_library,
    "ctypes": lambda path: ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL),
}


@dataclass(frozen=True)
class Call:
    """A call of one operator, and what it must return."""

    ours: Callable
    expected: Callable
    tensors: int = 1
    has_gradient: bool = False


def _ops():
    return torch.ops.loadingtest


def _named(x, mode="plus", other=None):
    right = torch.ones_like(x) if other is None else other
    return x + right if mode == "plus" else x - right


def _rolled(x, by, dims=0):
    return torch.roll(x, by, dims)


CALLS = {
    "affine, weight": Call(lambda x, w: _ops().affine(x, w), lambda x, w: x * w, 2, True),
    "affine, bias": Call(lambda x, b: _ops().affine(x, None, b), lambda x, b: x + b, 2, True),
    "affine, bias by name": Call(
        lambda x, b: _ops().affine(x, bias=b), lambda x, b: x + b, 2, True
    ),
    "affine, both": Call(
        lambda x, w, b: _ops().affine(x, w, b), lambda x, w, b: x * w + b, 3, True
    ),
    "affine, none": Call(lambda x: _ops().affine(x), lambda x: x.clone(), 1, True),
    "middle, none": Call(lambda x, b: _ops().middle(x, None, b), lambda x, b: x + b, 2, True),
    "middle, all": Call(
        lambda x, w, b: _ops().middle(x, w, b), lambda x, w, b: x * w + b, 3, True
    ),
    "sloped": Call(lambda x: _ops().sloped(0.5, x), lambda x: x * 0.5, 1, True),
    "sloped, alpha": Call(lambda x: _ops().sloped(0.5, x, 3), lambda x: x * 1.5, 1, True),
    "scaled": Call(lambda x: _ops().scaled(x), lambda x: x * 2.0, 1, True),
    "scaled by name": Call(
        lambda x: _ops().scaled(x, shift=3, scale=0.5), lambda x: x * 0.5 + 3, 1, True
    ),
    "scaled, None": Call(lambda x: _ops().scaled(x, scale=3.0, shift=None), lambda x: x * 3.0),
    "summed": Call(lambda x, y: _ops().summed([x, y]), lambda x, y: x + 2 * y, 2),
    "summed, start": Call(
        lambda x, y, z: _ops().summed([x, y], z), lambda x, y, z: x + 2 * y + z, 3
    ),
    "chosen": Call(
        lambda x, y: _ops().chosen([None, x, None], y), lambda x, y: 3 * x + y, 2
    ),
    "chosen, none": Call(lambda y: _ops().chosen([None], y), lambda y: y.clone()),
    "rolled": Call(lambda x: _ops().rolled(x, [1]), lambda x: _rolled(x, [1])),
    "rolled, lists": Call(
        lambda x: _ops().rolled(x, [1, 2], [1, 0]), lambda x: _rolled(x, [1, 2], [1, 0])
    ),
    "rolled, a number": Call(lambda x: _ops().rolled(x, [2], 1), lambda x: _rolled(x, [2], 1)),
    "grown": Call(
        lambda x: _ops().grown(x, [2, x.shape[0]]),
        lambda x: torch.ones(2, x.shape[0]) * x.sum() + 1,
    ),
    "grown, more": Call(
        lambda x: _ops().grown(x, [x.shape[1] + 1], x.shape[0]),
        lambda x: torch.ones(x.shape[1] + 1) * x.sum() + x.shape[0],
    ),
    "named": Call(lambda x: _ops().named(x), _named),
    "named, mode": Call(lambda x: _ops().named(x, "minus"), lambda x: _named(x, "minus")),
    "named, other": Call(
        lambda x, y: _ops().named(x, other=y), lambda x, y: _named(x, other=y), 2
    ),
    "named, all": Call(
        lambda x, y: _ops().named(x, "minus", y), lambda x, y: _named(x, "minus", y), 2
    ),
    "clamped": Call(lambda x: _ops().clamped(x, 0.25), lambda x: x.clamp(min=0.25)),
    "clamped, high": Call(
        lambda x: _ops().clamped(x, high=0.75), lambda x: x.clamp(max=0.75)
    ),
    "clamped, flip": Call(
        lambda x: _ops().clamped(x, None, 1, True), lambda x: -x.clamp(max=1)
    ),
    "converted": Call(
        lambda x: _ops().converted(x, dtype=torch.float64), lambda x: x.to(torch.float64)
    ),
    "converted, like": Call(
        lambda x, y: _ops().converted(x, like=y), lambda x, y: x + y, 2
    ),
    "weighted": Call(
        lambda x: _ops().weighted(x, [2.0, 3.0], [True, False]), lambda x: x * 2 + 3
    ),
    "weighted, y": Call(
        lambda x, y: _ops().weighted(x, [2.0, 3.0], [False, True], y),
        lambda x, y: (x + 2) * 3 - y,
        2,
    ),
    "pair": Call(lambda x: _ops().pair(x), lambda x: (x * 2, x + 2)),
    "pair, n": Call(lambda x: _ops().pair(x, n=3), lambda x: (x * 3, x + 3)),
    "pair, y": Call(lambda x, y: _ops().pair(x, y, n=3), lambda x, y: (x * 3, x + y), 2),
    "turned": Call(
        lambda x, z: _ops().turned(3, x, None, z), lambda x, z: (x * 3 + z, z - x), 2
    ),
    "turned, y": Call(
        lambda x, y, z: _ops().turned(3, x, y, z), lambda x, y, z: (x * 3 + z, z - y), 3
    ),
    "pieces": Call(lambda x: _ops().pieces(x, 3), lambda x: [x, x + 1, x + 2]),
    "doubled": Call(lambda x: _ops().doubled(x), lambda x: x * 2),
    "doubled, by": Call(lambda x: _ops().doubled(x, by=3.5), lambda x: x * 3.5),
    "doubled.out": Call(
        lambda x: _ops().doubled(x, 3.0, out=torch.empty_like(x)), lambda x: x * 3
    ),
    "affine.out": Call(
        lambda x, b: _ops().affine(x, None, b, out=torch.empty_like(x)), lambda x, b: x + b, 2
    ),
    "pair.out": Call(
        lambda x: _ops().pair(x, None, n=3, out0=torch.empty_like(x), out1=torch.empty_like(x)),
        lambda x: (x * 3, x + 3),
    ),
    "shrink_": Call(
        lambda x, y: _ops().shrink_(x.clone(), 2.0, y), lambda x, y: x.clone() / 2 - y, 2
    ),
}  # fmt: skip


def _tensors(call: Call, rows: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(rows)
    return [
        torch.rand(rows, 4, generator=generator, requires_grad=call.has_gradient)
        for _ in range(call.tensors)
    ]


def _gradients(results, tensors: list[torch.Tensor]) -> tuple:
    return torch.autograd.grad((results * results).sum(), tensors, allow_unused=True)


def _compare(function: Callable, call: Call, rows: int) -> None:
    tensors = _tensors(call, rows)
    actual, expected = function(*tensors), call.expected(*tensors)
    torch.testing.assert_close(actual, expected)
    if call.has_gradient:
        torch.testing.assert_close(_gradients(actual, tensors), _gradients(expected, tensors))


def _compiled(backend: str, **options) -> Callable[[Callable, Call], Callable]:
    def run(function: Callable, _: Call) -> Callable:
        torch._dynamo.reset()
        return torch.compile(function, backend=backend, fullgraph=True, **options)

    return run


class _Module(torch.nn.Module):
    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return self.function(*tensors)


def _exported(function: Callable, call: Call) -> Callable:
    rows = torch.export.Dim("rows", min=2, max=64)
    shapes = (tuple({0: rows} for _ in range(call.tensors)),)
    example = tuple(t.detach() for t in _tensors(call, 5))
    program = torch.export.export(_Module(function), example, dynamic_shapes=shapes)
    module = program.run_decompositions().module()
    if not call.has_gradient:
        return module
    return torch.export.export(_Module(function), example, dynamic_shapes=shapes).module()


BACKENDS = {
    "eager": lambda function, _: function,
    "aot_eager": _compiled("aot_eager"),
    "inductor": _compiled("inductor"),
    "inductor, dynamic": _compiled("inductor", dynamic=True),
    "export": _exported,
}


def _all_at_once(names: list[str]) -> Callable:
    """A function of three tensors that makes every call."""

    def function(*tensors):
        return [CALLS[name].ours(*tensors[: CALLS[name].tensors]) for name in names]

    return function


def _in_cpp(backend: str):
    """One program of every call: each takes a compiler its time."""
    names = list(CALLS)
    function, three = _all_at_once(names), Call(len, len, tensors=3)
    tensors = [t.detach() for t in _tensors(three, 5)]
    if backend == "cpp wrapper":
        options = {"cpp_wrapper": True}
        return names, torch.compile(function, fullgraph=True, dynamic=True, options=options)
    rows = torch.export.Dim("rows", min=2, max=64)
    shapes = (tuple({0: rows} for _ in tensors),)
    program = torch.export.export(_Module(function), tuple(tensors), dynamic_shapes=shapes)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt2")
        torch._inductor.aoti_compile_and_package(program, package_path=path)
        return names, torch._inductor.aoti_load_package(path)


def _run_in_cpp(backend: str) -> int:
    names, function = _in_cpp(backend)
    for rows in (5, 7):
        tensors = [t.detach() for t in _tensors(Call(len, len, tensors=3), rows)]
        for name, actual in zip(names, function(*tensors), strict=True):
            expected = CALLS[name].expected(*tensors[: CALLS[name].tensors])
            _report(backend, name, lambda a=actual, e=expected: torch.testing.assert_close(a, e))
    return 2 * len(names)


def _run(backend: str) -> int:
    for name, call in CALLS.items():

        def compare(call=call):
            function = BACKENDS[backend](call.ours, call)
            for rows in (5, 7):
                _compare(function, call, rows)

        _report(backend, name, compare)
    return 2 * len(CALLS)


def _report(backend: str, name: str, compare: Callable) -> None:
    try:
        compare()
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        print(f"{backend} | {name} | {type(error).__name__}: {lines[0]}")


def main(path: str, way: str, *backends: str) -> None:
    WAYS[way](path)
    for backend in backends:
        count = _run(backend) if backend in BACKENDS else _run_in_cpp(backend)
        print(f"compared {count} calls under {backend}")


if __name__ == "__main__":
    main(*sys.argv[1:])
