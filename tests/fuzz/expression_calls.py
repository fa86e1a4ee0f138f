# SPDX-License-Identifier: BSD-3-Clause
"""Calls of operators that are random expressions, beside torch's operators of the same expression.

Values and derivatives in float64 are torch's, but for what the last digits of the arguments decide.
Whatever the dtype, layout and path (kernels, vmap, torch.compile), what is computed is the same.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from every_path import PATHS
from torch import Tensor
from torch.func import jvp

sys.path.append(str(Path(__file__).parents[1] / "fused"))
from torch_values import value_of  # noqa: E402

from codegen.fused.extents import Extent, extent  # noqa: E402
from codegen.fused.functions import pieces  # noqa: E402

if TYPE_CHECKING:
    from expressions import Case

Given = dict[str, Any]
FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
# Of what is read, and which of the arguments are: the sizes of vectors and a rest, rows of one.
_SIZES = ((3, 37), (2, 1), (4, 64))
_MOST_SHOWN = 4
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, float("inf"), float("-inf"), float("nan"), 1e30, 100.0)


class Compared(NamedTuple):
    """What differs, each with the situation that it was in, the first few; and in how many the
    operator refuses to be called, since a result of integers stands beside floats."""

    differences: list[str]
    refused: int


def compared(ops, case: Case) -> Compared:
    own = getattr(ops, case.name)
    found: list[str] = []
    refused = 0
    for what, check in _situations(own, case):
        try:
            trouble = check()
        except Exception as error:
            trouble = f"{type(error).__name__}: {str(error)[:300]}"
            if isinstance(error, NotImplementedError) and "would be computed in" in trouble:
                refused += 1
                continue
        if trouble:
            found.append(f"{case.schema} = {case.expressions}: {what}: {trouble}")
        if len(found) == _MOST_SHOWN:
            break
    return Compared(found, refused)


def _situations(own: Callable, case: Case) -> Iterator[tuple[str, Callable[[], str | None]]]:
    for missing in (False, True) if "w" in case.arguments else (False,):
        about = "w is None" if missing else "all given"
        for size in _SIZES:
            given = _arguments(case, size, missing)
            yield f"value, {size}, {about}", functools.partial(_value, own, case, given)
            for name, change in _LAYOUTS.items():
                changed = {n: change(v) if isinstance(v, Tensor) else v for n, v in given.items()}
                check = functools.partial(_as_before, own, case, given, changed)
                yield f"{name}, {size}, {about}", check
            check = functools.partial(_as_before, own, case, given, _batched(given))
            yield f"in a batch, {size}, {about}", check
        given = _arguments(case, _SIZES[0], missing)
        for name in ("gradients", "tangents", "second"):
            check = functools.partial(globals()[f"_{name}"], own, case, given)
            yield f"{name}, {about}", check
        for dtype in (*FLOATS, torch.int64, torch.int32, torch.bool):
            for path in PATHS:
                check = functools.partial(_path, own, case, given, dtype, PATHS[path])
                yield f"{path}, {dtype}, {about}", check
        for dtype in FLOATS[2:]:
            check = functools.partial(_rounded_once, own, case, given, dtype)
            yield f"rounded once, {dtype}, {about}", check
        special = _arguments(case, _SIZES[0], missing, _SPECIAL)
        yield f"special values, {about}", functools.partial(_special, own, case, special)
        for path in ("vmap", "compiled"):
            check = functools.partial(_gradient_path, own, case, given, PATHS[path])
            yield f"gradients by {path}, {about}", check


def _arguments(case: Case, size: tuple, missing: bool, values: tuple = ()) -> Given:
    """Of each argument of a case; elements at random, or of some values."""
    generator = torch.Generator().manual_seed(len(case.expressions[0]))

    def made(*sizes: int) -> Tensor:
        if not values:
            return torch.randn(sizes, generator=generator, dtype=torch.float64)
        places = torch.randint(len(values), sizes, generator=generator)
        return torch.tensor(values, dtype=torch.float64)[places]

    *rows, n = size
    z = made(*rows, 2 * n) if "z[" in "".join(case.expressions) else made(*size)
    given = {
        "x": made(*size),
        "y": made(*size),
        "z": z,
        "s": made(*rows),
        "i": torch.randint(n, rows, generator=generator),
        "w": None if missing else made(n),
        "a": 0.7,
        "k": 2,
    }
    return {name: given[name] for name in case.arguments}


def _called(own: Callable, given: Given) -> tuple[Tensor, ...]:
    found = own(*given.values())
    return found if isinstance(found, tuple) else (found,)


def _torchs(case: Case, given: Given) -> tuple[Tensor, ...]:
    """The results in torch's operators, of the sizes that all arguments have together."""
    tensors = {n: v for n, v in given.items() if isinstance(v, Tensor)}
    if not case.is_of_rows:
        sizes = torch.broadcast_shapes(*(v.shape for v in tensors.values()))
        given = {**given, **{n: v.expand(sizes) for n, v in tensors.items()}}
        return tuple(value_of(tree, given) for tree in case.trees)
    first = next(tensors[n] for n in "xyz" if n in tensors)
    is_halved = "z[" in "".join(case.expressions)
    n = first.shape[-1] // (2 if first is tensors.get("z") and is_halved else 1)
    rows = torch.broadcast_shapes(
        *(v.shape if name in "si" else v.shape[:-1] for name, v in tensors.items())
    )
    given = {
        name: v.expand(rows if name in "si" else (*rows, v.shape[-1])) if name in tensors else v
        for name, v in given.items()
    }
    like = torch.empty((*rows, n), dtype=torch.float64)
    results = []
    for tree in case.trees:
        # the first of the tensors says how large those are that are made of numbers
        found = value_of(tree, {"like": like, **given, "n": n})
        if extent(tree, case.kinds) is Extent.ROW:
            results.append(found[..., 0].expand(like.shape[:-1]))
        else:
            results.append(found.expand(*like.shape[:-1], n * len(pieces(tree))))
    return tuple(results)


def _moved(given: Given, by: float = 4e-16) -> Given:
    """The arguments with other last digits."""
    return {
        n: v * (1 + by) if isinstance(v, Tensor) and v.is_floating_point() else v
        for n, v in given.items()
    }


def _far(found, expected, moved, relative=1e-9) -> str | None:
    """Where results are not what is expected, but for what the last digits decide."""
    for place, (own, torchs, other) in enumerate(zip(found, expected, moved, strict=True)):
        if own is None or torchs is None:
            rest = torchs if own is None else own
            if rest is not None and rest.nan_to_num().any():
                return f"result {place} is {own}, torch's {torchs}"
            continue
        if own.shape != torchs.shape:
            return f"result {place} has sizes {tuple(own.shape)}, torch's {tuple(torchs.shape)}"
        # what numbers alone decide on is computed in the default dtype
        digits = max(relative, 64 * torch.finfo(own.dtype).eps if own.is_floating_point() else 0)
        own, torchs, other = (v.detach().double() for v in (own, torchs, other))
        rounding = (torchs - other).abs()
        near = (own - torchs).abs() <= digits * (1 + torchs.abs()) + 1e4 * rounding
        same = own.isnan() & torchs.isnan() | (own == torchs)
        decided = ~rounding.isfinite() & ~(torchs == other) & ~(torchs.isnan() & other.isnan())
        bad = ~(near | same | decided)
        if bad.any():
            return f"result {place}: {own[bad][:4].tolist()}, torch's {torchs[bad][:4].tolist()}"
    return None


def _value(own, case, given):
    expected, moved = _torchs(case, given), _torchs(case, _moved(given))
    return _far(_called(own, given), expected, moved)


_LAYOUTS = {
    "transposed": lambda v: v.mT.contiguous().mT if v.dim() > 1 else v,
    "with steps": lambda v: v.repeat_interleave(2, -1)[..., ::2] if v.dim() else v,
    "behind an offset": lambda v: torch.cat([v[:1], v])[1:],
    "of one row": lambda v: v[:1].expand(v.shape) if v.dim() else v,
    "broadcast": lambda v: v[:1],
}


def _batched(given: Given) -> Given:
    """With a dimension more, but for what belongs to all rows."""
    return {
        n: torch.stack([v, v.flip(0)], 1) if isinstance(v, Tensor) and n != "w" else v
        for n, v in given.items()
    }


def _as_before(own, case, given, changed):
    expected, moved = _torchs(case, changed), _torchs(case, _moved(changed))
    return _far(_called(own, changed), expected, moved)


def _leaves(given: Given, wanted: list[str]) -> Given:
    return {n: v.clone().requires_grad_() if n in wanted else v for n, v in given.items()}


def _wanted(given: Given) -> list[str]:
    return [n for n, v in given.items() if isinstance(v, Tensor) and v.is_floating_point()]


def _gradients_of(function, given, wanted, create_graph=False):
    leaves = _leaves(given, wanted)
    results = [r for r in function(leaves) if r.requires_grad]
    outer = [torch.linspace(0.5, 1.5, r.numel()).to(r).reshape(r.shape) for r in results]
    inputs = [leaves[n] for n in wanted]
    if not results:
        return [None] * len(inputs), inputs
    found = torch.autograd.grad(
        results, inputs, outer, allow_unused=True, create_graph=create_graph
    )
    return found, inputs


def _subsets(wanted):
    yield wanted
    if len(wanted) > 1:
        yield wanted[:1]
        yield wanted[1:]


def _gradients(own, case, given):
    torchs = functools.partial(_torchs, case)
    for wanted in _subsets(_wanted(given)):
        mine, _ = _gradients_of(functools.partial(_called, own), given, wanted)
        expected, _ = _gradients_of(torchs, given, wanted)
        moved, _ = _gradients_of(torchs, _moved(given), wanted)
        trouble = _far(mine, expected, moved)
        if trouble:
            return f"along {wanted}: {trouble}"
    return None


def _second_of(function, given, wanted):
    first, inputs = _gradients_of(function, given, wanted, create_graph=True)
    used = [g for g in first if g is not None and g.requires_grad]
    if not used:
        return [None] * len(inputs)
    total = sum((g.nan_to_num() * torch.cos(g.detach() * 0 + 0.3)).sum() for g in used)
    return torch.autograd.grad(total, inputs, allow_unused=True)


def _second(own, case, given):
    torchs, wanted = functools.partial(_torchs, case), _wanted(given)
    return _far(
        _second_of(functools.partial(_called, own), given, wanted),
        _second_of(torchs, given, wanted),
        _second_of(torchs, _moved(given), wanted),
        1e-7,
    )


def _tangents_of(function, given, wanted):
    def of(*values):
        return tuple(function({**given, **dict(zip(wanted, values, strict=True))}))

    values = tuple(given[n] for n in wanted)
    return jvp(of, values, tuple(torch.sin(v * 3) for v in values))[1]


def _tangents(own, case, given):
    torchs = functools.partial(_torchs, case)
    for wanted in _subsets(_wanted(given)):
        trouble = _far(
            _tangents_of(functools.partial(_called, own), given, wanted),
            _tangents_of(torchs, given, wanted),
            _tangents_of(torchs, _moved(given), wanted),
        )
        if trouble:
            return f"along {wanted}: {trouble}"
    return None


def _of_dtype(given: Given, dtype) -> Given:
    return {
        n: (v * 2).to(dtype) if isinstance(v, Tensor) and v.is_floating_point() else v
        for n, v in given.items()
    }


def _path(own, case, given, dtype, path):
    """Dtype and values are the kernel's, which are those of the wide numbers where those are."""
    given = _of_dtype(given, dtype)
    tensors = [n for n, v in given.items() if isinstance(v, Tensor)]

    def of(*values):
        return _called(own, {**given, **dict(zip(tensors, values, strict=True))})

    values = [given[n] for n in tensors]
    try:
        expected = of(*values)
    except RuntimeError as error:  # a dtype that the expression is not served in
        if "INTERNAL ASSERT" in str(error):
            raise
        expected = error
    try:
        found = path(of)(*values)
    except Exception as error:
        return None if isinstance(expected, RuntimeError) else f"{type(error).__name__}: {error}"
    if isinstance(expected, RuntimeError):
        return f"computed, where the kernel says: {str(expected)[:200]}"
    dtypes, others = ([r.dtype for r in results] for results in (found, expected))
    if dtypes != others:
        return f"dtypes {dtypes}, the kernel's {others}"
    wide = torch.promote_types(dtype, torch.float32)
    digits = torch.finfo(wide).eps if dtype.is_floating_point else 1e-6
    moved = _called(own, _moved({n: _wide(v) for n, v in given.items()}, digits))
    plain = _called(own, {n: _wide(v) for n, v in given.items()})
    steps = [torch.finfo(r.dtype).eps if r.is_floating_point() else 0 for r in expected]
    rounded = [e.double() + (m - p).abs() for e, m, p in zip(expected, moved, plain, strict=True)]
    for own_, torchs, other, step in zip(found, expected, rounded, steps, strict=True):
        trouble = _far([own_], [torchs], [other], max(4 * step, 64 * digits if step else 0))
        if trouble:
            return trouble
    return None


def _wide(value):
    is_tensor = isinstance(value, Tensor) and value.dtype != torch.int64
    return value.double() if is_tensor else value


def _rounded_once(own, case, given, dtype):
    """Of 16 bits, what float32 makes of the same numbers, rounded."""
    short = _of_dtype(given, dtype)
    wide = {n: v.float() if isinstance(v, Tensor) and n != "i" else v for n, v in short.items()}
    for place, (mine, other) in enumerate(
        zip(_called(own, short), _called(own, wide), strict=True)
    ):
        expected = other.to(mine.dtype)
        bad = ~((mine == expected) | mine.isnan() & expected.isnan())
        if bad.any():
            values = mine[bad][:4].tolist(), expected[bad][:4].tolist()
            return f"result {place}: {values[0]}, of float32 {values[1]}"
    return None


def _special(own, case, given):
    """Of zeros, infinities and NaN: what torch has."""
    return _far(_called(own, given), _torchs(case, given), _torchs(case, _moved(given)))


def _gradient_path(own, case, given, path):
    tensors = [n for n, v in given.items() if isinstance(v, Tensor)]
    wanted = _wanted(given)

    def of(*values):
        now = {**given, **dict(zip(tensors, values, strict=True))}
        found = _called(own, now)
        total = sum((r.double() * 0.7).sum() for r in found if r.requires_grad)
        inputs = [now[n] for n in wanted]
        if isinstance(total, int):
            return tuple(map(torch.zeros_like, inputs))
        grads = torch.autograd.grad(total, inputs, allow_unused=True)
        return tuple(
            torch.zeros_like(v) if g is None else g for g, v in zip(grads, inputs, strict=True)
        )

    def by_func(*values):
        """Under vmap, where no leaf may ask for gradients."""
        now = dict(zip(tensors, values, strict=True))

        def total(*inputs):
            results = _called(own, {**given, **now, **dict(zip(wanted, inputs, strict=True))})
            return sum((r.double() * 0.7).sum() for r in results if r.is_floating_point())

        return torch.func.grad(total, tuple(range(len(wanted))))(*(now[n] for n in wanted))

    values = [given[n].clone().requires_grad_(n in wanted) for n in tensors]
    expected = of(*values)
    plain = [v.detach() for v in values]
    found = path(by_func)(*plain)
    moved = _moved(given)
    other = of(*[moved[n].clone().requires_grad_(n in wanted) for n in tensors])
    return _far(found, expected, other)
