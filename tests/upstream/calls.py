# SPDX-License-Identifier: BSD-3-Clause
"""One call of an overload: its tensors made ready for reverse or forward mode, and its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.utils._pytree import tree_flatten, tree_unflatten

from .samples import Call, compact

SEED = 7
REFUSED = "a list of this length is refused"


class Raised(Exception):
    """An operator raised; two of these are equal whatever they say."""

    def __init__(self, error: Exception):
        super().__init__(str(error).partition("\n")[0][:200])
        self.type = type(error).__name__

    def __str__(self) -> str:
        return f"{self.type}: {self.args[0]}"


@dataclass(frozen=True)
class Prepared:
    """The arguments of one call, and the leaves among them."""

    args: tuple
    kwargs: dict
    values: list  # all arguments, flat
    leaves: list[torch.Tensor]

    def with_values(self, values: list) -> Prepared:
        """The same with other arguments."""
        _, spec = tree_flatten((self.args, self.kwargs))
        args, kwargs = tree_unflatten(values, spec)
        return Prepared(args, kwargs, values, self.leaves)


class Overload:
    """An overload of aten or of the mirror, on calls that are captured as they were made."""

    def __init__(self, packet: Any):
        self.function: Callable = packet
        self.schema = packet._schema

    def written(self, call: Call) -> set[int]:
        """The flat positions of tensors that the operator writes to."""
        return set(_positions(call, self.schema, lambda a: a.alias_info and a.alias_info.is_write))

    def takes_lists(self, call: Call) -> bool:
        """Whether each list of a fixed length has it, or one number, or a default's length; aten's
        kernels are left to look."""
        given = dict(zip((a.name for a in self.schema.arguments), call[0])) | call[1]
        for argument in self.schema.arguments:
            value, length, default = given.get(argument.name), argument.N, argument.default_value
            if isinstance(value, list) and length and length > 1:
                own = [default] if isinstance(default, list) else []
                if len(value) not in {length, 1, *map(len, own)}:
                    return False
        return True

    def prepare(self, call: Call, differentiable: Iterable[int] = ()) -> Prepared:
        """Copies of the arguments, of which those at some positions require grad."""
        values, spec = tree_flatten(call)
        wanted, written = set(differentiable), self.written(call)
        made, leaves = [], []
        for position, value in enumerate(values):
            if isinstance(value, torch.Tensor):
                value = compact(value)
                if position in wanted:
                    leaves.append(value.requires_grad_())
                    # what is written to must be no leaf
                    value = value.clone() if position in written else value
            made.append(value)
        args, kwargs = tree_unflatten(made, spec)
        return Prepared(args, kwargs, made, leaves)

    def run(self, prepared: Prepared) -> list:
        """The results, flat; raises Raised."""
        torch.manual_seed(SEED)
        with raising():
            return tree_flatten(self.function(*prepared.args, **prepared.kwargs))[0]


class raising:  # noqa: N801 (a context manager)
    """Turns whatever the block raises into Raised."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, Raised):
            raise Raised(error) from None


def _positions(call: Call, schema: Any, accepts: Callable[[Any], Any]) -> Iterator[int]:
    """The flat positions of the arguments whose schema is accepted."""
    args, kwargs = call
    by_name = {argument.name: argument for argument in schema.arguments}
    flat = 0
    pairs = [*zip(schema.arguments, args), *((by_name[k], v) for k, v in kwargs.items())]
    for argument, value in pairs:
        count = len(tree_flatten(value)[0])
        if accepts(argument):
            yield from range(flat, flat + count)
        flat += count


def differentiable(call: Call) -> list[int]:
    """The flat positions of floating-point and complex tensors."""
    values, _ = tree_flatten(call)
    return [n for n, v in enumerate(values) if isinstance(v, torch.Tensor) and is_float(v)]


def is_float(value: Any) -> bool:
    if not isinstance(value, torch.Tensor):
        return False
    return value.is_floating_point() or value.is_complex()


def random_like(value: torch.Tensor, seed: int) -> torch.Tensor:
    """The same random tensor for the same sizes, dtype and seed."""
    generator = torch.Generator().manual_seed(seed)
    dtype = torch.complex128 if value.is_complex() else torch.float64
    return torch.randn(value.shape, dtype=dtype, generator=generator).to(value.dtype)


def with_tangents(overload: Overload, call: Call, positions: Iterable[int]) -> list:
    """The tangents of the results, flat, None where there is none; raises Raised."""
    wanted, written = set(positions), overload.written(call)
    values, spec = tree_flatten(call)
    with forward_ad.dual_level():
        made = []
        for position, value in enumerate(values):
            if isinstance(value, torch.Tensor):
                value = compact(value)
                if position in wanted:
                    with raising():
                        value = forward_ad.make_dual(value, random_like(value, SEED + position))
                        value = value.clone() if position in written else value
            made.append(value)
        args, kwargs = tree_unflatten(made, spec)
        results = overload.run(Prepared(args, kwargs, made, []))
        found = []
        for result in [*results, *(made[p] for p in sorted(written))]:
            dual = isinstance(result, torch.Tensor) and is_float(result)
            found.append(_tangent(result) if dual else None)
        return found


def _tangent(value: torch.Tensor) -> torch.Tensor | None:
    tangent = forward_ad.unpack_dual(value).tangent
    return None if tangent is None else tangent.clone()
