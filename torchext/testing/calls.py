# SPDX-License-Identifier: BSD-3-Clause
"""One call of an operator as a value: its arguments, and the tensors in them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

_watch: Callable[[Call], None] | None = None


def watch_calls(watch: Callable[[Call], None] | None) -> None:
    """Have every call that follows told before it is made; None ends that."""
    global _watch
    _watch = watch


@dataclass(frozen=True)
class Call:
    """Arguments of one call, by name, in the order of the schema."""

    overload: torch._ops.OpOverload
    arguments: dict[str, Any]
    # names of arguments whose tensors never require grad
    without_gradient: frozenset[str] = frozenset()
    # names of arguments whose tensors have a dtype of their own
    fixed_dtypes: frozenset[str] = frozenset()
    # names of arguments whose tensors keep their values
    fixed_values: frozenset[str] = frozenset()

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments up to the first that is not given."""
        positional = [a.name for a in self.overload._schema.arguments if not a.kwarg_only]
        given = itertools.takewhile(lambda name: name in self.arguments, positional)
        return tuple(self.arguments[name] for name in given)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The other arguments, by name."""
        return dict(list(self.arguments.items())[len(self.args) :])

    def run(self) -> Any:
        """Call the operator."""
        self.announce()
        return self.overload(*self.args, **self.kwargs)

    def announce(self) -> None:
        """Tell who watches that the call follows."""
        if _watch is not None:
            _watch(self)

    def __str__(self) -> str:
        def shown(value: Any) -> str:
            if isinstance(value, torch.Tensor):
                dtype = str(value.dtype).removeprefix("torch.")
                return f"{dtype}{list(value.shape)}"
            if isinstance(value, (list, tuple)):
                return f"[{', '.join(map(shown, value))}]"
            return repr(value)

        arguments = (f"{name}={shown(value)}" for name, value in self.arguments.items())
        return f"{self.overload.name()}({', '.join(arguments)})"

    @property
    def named_tensors(self) -> list[tuple[str, torch.Tensor]]:
        """Every tensor, with the name of its argument; a list has several."""
        return [
            (name, leaf)
            for name, value in self.arguments.items()
            for leaf in pytree.tree_leaves(value)
            if isinstance(leaf, torch.Tensor)
        ]

    @property
    def tensors(self) -> list[torch.Tensor]:
        """Every tensor, in order."""
        return [tensor for _, tensor in self.named_tensors]

    def map_tensors(self, function: Callable[[torch.Tensor], torch.Tensor]) -> Call:
        """The same call on other tensors."""
        return self.map_named(lambda _, tensor: function(tensor))

    def map_named(self, function: Callable[[str, torch.Tensor], torch.Tensor]) -> Call:
        """The same call on other tensors, which may depend on the argument's name."""

        def converted(name: str, value: Any) -> Any:
            def convert(leaf: Any) -> Any:
                return function(name, leaf) if isinstance(leaf, torch.Tensor) else leaf

            return pytree.tree_map(convert, value)

        arguments = {name: converted(name, value) for name, value in self.arguments.items()}
        return self.with_arguments(arguments)

    def with_tensors(self, tensors: Iterable[torch.Tensor]) -> Call:
        """The same call on these tensors, in the order of `tensors`."""
        remaining = iter(tensors)
        return self.map_tensors(lambda _: next(remaining))

    def with_arguments(self, arguments: dict[str, Any]) -> Call:
        """The same call with other arguments."""
        return dataclasses.replace(self, arguments=arguments)

    def on(self, overload: torch._ops.OpOverload) -> Call:
        """The call of another form of the operator: with those of the arguments that it takes."""
        names = [a.name for a in overload._schema.arguments]
        kept = {name: self.arguments[name] for name in names if name in self.arguments}
        return dataclasses.replace(self, overload=overload, arguments=kept)


def is_traceable(call: Call) -> bool:
    """Whether torch.compile and pickle take the arguments: they take no generator."""
    return not any(isinstance(value, torch.Generator) for value in call.arguments.values())


def tensors_of(result: Any) -> list[torch.Tensor]:
    """The tensors of what an operator returns; those that are None or undefined are left out."""
    return [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def others_of(result: Any) -> list[Any]:
    """What an operator returns beside tensors: numbers, and where a result is missing."""
    leaves = pytree.tree_leaves(result, is_leaf=lambda value: value is None)
    return ["a tensor" if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]


def cotangents(results: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """A gradient for each result: the same random numbers for the same sizes, on every device and
    in every width."""
    generator = torch.Generator().manual_seed(0)
    made = []
    for result in results:
        dtype = torch.complex128 if result.is_complex() else torch.float64
        random = torch.randn(result.shape, dtype=dtype, generator=generator, device="cpu")
        made.append(random.to(result.dtype).to(result.device))
    return made


def gradients(
    function: Callable[..., tuple[torch.Tensor, ...]],
    tensors: list[torch.Tensor],
    flags: list[bool],
    lay_out: Callable[[torch.Tensor], torch.Tensor] = lambda t: t,
) -> list[torch.Tensor]:
    """The gradients of the tensors that the flags name, for cotangents of the function's results
    that `lay_out` lays out; zeros where no result depends on a tensor."""
    leaves = [t.detach().requires_grad_(flag) for t, flag in zip(tensors, flags)]
    wanted = [leaf for leaf, flag in zip(leaves, flags) if flag]
    results = function(*leaves)
    pairs = [(r, lay_out(c)) for r, c in zip(results, cotangents(results)) if r.requires_grad]
    if not pairs:
        return [torch.zeros_like(leaf) for leaf in wanted]
    outputs, given = zip(*pairs)
    return list(torch.autograd.grad(outputs, wanted, given, materialize_grads=True))


def results_and_gradients(
    function: Callable[..., tuple[torch.Tensor, ...]],
    tensors: list[torch.Tensor],
    flags: list[bool],
) -> tuple[torch.Tensor, ...]:
    """What a function returns of tensors without gradients, and then the gradients of those that
    the flags name; what stands behind these, such as out= tensors, has none."""
    found = function(*(t.clone() for t in tensors))
    if not any(flags):
        return found
    flags = [*flags, *[False] * (len(tensors) - len(flags))]
    leaves = [t.clone().requires_grad_(flag) for t, flag in zip(tensors, flags)]
    results = [r for r in function(*leaves) if r.requires_grad]
    wanted = [leaf for leaf, flag in zip(leaves, flags) if flag]
    if not results:
        return found
    given = torch.autograd.grad(results, wanted, cotangents(results), materialize_grads=True)
    return (*found, *given)


def largest(tensors: Iterable[torch.Tensor]) -> float:
    """The largest finite absolute value of a floating-point or complex number; 0 without one."""
    # on the CPU, in a dtype of which torch has everything
    wide = [
        t.detach().cpu().to(torch.complex128 if t.is_complex() else torch.float64).abs()
        for t in tensors
        if t.is_floating_point() or t.is_complex()
    ]
    finite = [t[t.isfinite()] for t in wide]
    return max((t.max().item() for t in finite if t.numel()), default=0.0)


def assert_same_others(found: Any, expected: Any, what: str) -> None:
    """What two calls return beside tensors is the same, numbers within torch's tolerance."""
    pair = others_of(found), others_of(expected)
    says = f"{what}: results {pair[0]}, not {pair[1]}"
    numbers = [[x for x in others if isinstance(x, _NUMBERS)] for others in pair]
    rest = [[x for x in others if not isinstance(x, _NUMBERS)] for others in pair]
    assert rest[0] == rest[1] and len(numbers[0]) == len(numbers[1]), says
    torch.testing.assert_close(*numbers, equal_nan=True, msg=says)


_NUMBERS = (bool, int, float, complex)


def strided_copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, other elements between its own included, that begins at the
    same place of its storage."""
    if not tensor.numel():
        return tensor.clone()
    begin = tensor.storage_offset()
    last = begin + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))
    made = torch.empty(last + 1, dtype=tensor.dtype, device=tensor.device)
    return made.as_strided(tensor.shape, tensor.stride(), begin).copy_(tensor)


def written_arguments(overload: torch._ops.OpOverload) -> list[torch._C.Argument]:
    """The arguments that the operator writes to."""
    arguments = overload._schema.arguments
    return [a for a in arguments if a.alias_info is not None and a.alias_info.is_write]


def out_arguments(overload: torch._ops.OpOverload) -> list[torch._C.Argument]:
    """The keyword-only ones among them that are always given: those of an out= form."""
    written = written_arguments(overload)
    return [a for a in written if a.kwarg_only and not str(a.type).startswith("Optional")]
