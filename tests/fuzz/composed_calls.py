# SPDX-License-Identifier: BSD-3-Clause
"""A composed operator against its reference, in the situations in which calls of operators differ.

Both are functions of tensors that write to nothing that they are given: what an operator writes to
is a copy, and is returned behind its results. The reference runs eagerly where ours is compiled.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.autograd.forward_ad as forward_ad
from compositions import Composition
from torch.func import functionalize, grad, jvp, vmap

Tensors = tuple[torch.Tensor, ...]
Function = Callable[..., Tensors]


@dataclass(frozen=True)
class Call:
    """A call of an operator, as a function of its tensors."""

    name: str
    function: Function
    names: tuple[str, ...]  # of the tensors
    written: tuple[str, ...]


def pure(
    op: Callable, names: tuple[str, ...], written: tuple[str, ...], numbers: dict, to: str | None
) -> Function:
    """A call that writes to copies, and returns them too; `to` is what the reference of a form
    copies its result to."""
    takes = {argument.name for argument in op._schema.arguments}

    def function(*tensors: torch.Tensor) -> Tensors:
        given = {n: t.clone() if n in written else t for n, t in zip(names, tensors)}
        values = dict(zip(names, tensors)) if to is not None else given
        results = flat(op(**{n: t for n, t in values.items() if n in takes}, **numbers))
        if to is not None:
            results = [given[to].copy_(results[0])]
        return (*results, *(given[name] for name in written))

    return function


def flat(value: object) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, int):
        return [torch.tensor(value)]
    return [item for part in value or () for item in flat(part)]


# Calls


def tensor_of(index: int, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(index)
    return torch.randn(3, 4, dtype=dtype, generator=generator)


_VALUES = {"float": 0.5, "int": 2, "bool": False, "str": "other", "number": 0.75}


def pairs(ops, case: Composition, given: bool) -> Iterator[tuple[Call, Call]]:
    """The operator and its forms, each with its reference; `given` says whether the arguments that
    may be missing are there."""
    reference = getattr(ops, case.reference).default
    for name in filter(None, (case.name, case.inplace, case.out)):
        base, _, overload = name.partition(".")
        op = getattr(getattr(ops, base), overload or "default")
        names, written, numbers = [], [], {}
        for argument in op._schema.arguments:
            kind = str(argument.type)
            if kind == "Tensor" or (kind == "Optional[Tensor]" and given):
                names.append(argument.name)
                if argument.alias_info is not None and argument.alias_info.is_write:
                    written.append(argument.name)
            elif not argument.has_default_value():
                numbers[argument.name] = _VALUES.get(kind)
        rest = (tuple(names), tuple(written))
        to = {case.inplace: "x", case.out: "out"}.get(name)
        yield (
            Call(name, pure(op, *rest, numbers, None), *rest),
            Call(name, pure(reference, *rest, numbers, to), *rest),
        )


# Situations: a function of ours or the reference, the tensors, and which of them have a gradient


def weighed(results: Tensors) -> torch.Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for index, tensor in enumerate(results):
        product = (tensor * tensor_like(index + 90, tensor)).sum()
        total = total + (product.real + 2 * product.imag if product.is_complex() else product)
    return total


def tensor_like(index: int, tensor: torch.Tensor) -> torch.Tensor:
    """Other values; no random ones, which torch.vmap has its own way with."""
    values = torch.arange(tensor.numel(), dtype=torch.float64).reshape(tensor.shape)
    values = (values + index).sin()
    return torch.complex(values, values.cos()) if tensor.is_complex() else values


def _with_gradients(f: Function, tensors: Tensors, wanted: list[int]) -> tuple[Tensors, Tensors]:
    leaves = tuple(t.clone().requires_grad_(i in wanted) for i, t in enumerate(tensors))
    results = f(*leaves)
    inputs = [leaves[i] for i in wanted]
    return results, torch.autograd.grad(
        weighed(results), inputs, create_graph=True, allow_unused=True, materialize_grads=True
    )


def values(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    return f(*tensors)


def gradients(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    results, found = _with_gradients(f, tensors, wanted)
    return (*results, *found)


def second_gradients(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    leaves = tuple(t.clone().requires_grad_(i in wanted) for i, t in enumerate(tensors))
    inputs = [leaves[i] for i in wanted]
    found = torch.autograd.grad(
        weighed(f(*leaves)), inputs, create_graph=True, allow_unused=True, materialize_grads=True
    )
    if not any(g.requires_grad for g in found):
        return found
    return torch.autograd.grad(weighed(found), inputs, allow_unused=True, materialize_grads=True)


def tangents(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    with forward_ad.dual_level():
        duals = [
            forward_ad.make_dual(t, tensor_like(7 + i, t)) if i in wanted else t
            for i, t in enumerate(tensors)
        ]
        unpacked = [forward_ad.unpack_dual(r) for r in f(*duals)]
        return tuple(
            part if part is not None else torch.zeros_like(dual.primal)
            for dual in unpacked
            for part in dual
        )


def no_grad(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    with torch.no_grad():
        found = f(*(t.clone().requires_grad_(i in wanted) for i, t in enumerate(tensors)))
    return (*found, *(torch.tensor(t.requires_grad) for t in found))


def inference(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    with torch.inference_mode():
        return tuple(t.clone() for t in f(*tensors))


def strided(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    turned = [t.t().contiguous().t() if i % 2 else t[:, :2].repeat(1, 2) for i, t in
              enumerate(tensors)]  # fmt: skip
    return f(*turned)


def _batches(tensors: Tensors) -> Tensors:
    return tuple(torch.stack([t, t * 2, t - 1], 1) for t in tensors)


def batched(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    return vmap(f, in_dims=1)(*_batches(tensors))


def batched_gradients(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    loss = grad(lambda *given: weighed(f(*given)), argnums=tuple(wanted))
    return vmap(loss, in_dims=1)(*_batches(tensors))


def gradients_of_batched(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    batches = _batches(tensors)
    return gradients(lambda *given: vmap(f, in_dims=1)(*given), batches, wanted)


def batched_tangents(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    batches = _batches(tensors)

    def of_wanted(*given: torch.Tensor) -> Tensors:
        among = dict(zip(wanted, given))
        return vmap(f, in_dims=1)(*(among.get(i, batch) for i, batch in enumerate(batches)))

    primals = tuple(batches[i] for i in wanted)
    along = tuple(tensor_like(7 + i, batches[i]) for i in wanted)
    primal, tangent = jvp(of_wanted, primals, along)
    return (*primal, *tangent)


def functional(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    return functionalize(f, remove="mutations_and_views")(*tensors)


def gradients_alone(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    return _with_gradients(f, tensors, wanted)[1]


def functional_gradients(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    return functionalize(grad(lambda *given: weighed(f(*given)), tuple(wanted)))(*tensors)


def compiled(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    return _compiled(f)(*tensors)


def compiled_gradients(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    return gradients(_compiled(f), tensors, wanted)


def _compiled(f: Function) -> Function:
    torch._dynamo.reset()
    return torch.compile(f, backend="aot_eager", fullgraph=True)


def traced(f: Function, tensors: Tensors, wanted: list[int]) -> Tensors:
    program = torch.export.export(_Module(f), tensors, strict=False)
    return program.module()(*tensors)


class _Module(torch.nn.Module):
    def __init__(self, f: Function) -> None:
        super().__init__()
        self.f = f

    def forward(self, *tensors: torch.Tensor) -> Tensors:
        return self.f(*tensors)


# What each asks of the operator; the reference runs eagerly where the second function is given.
NEEDS_GRADIENT = {
    gradients, second_gradients, batched_gradients, gradients_of_batched, functional_gradients,
    compiled_gradients,
}  # fmt: skip
NEEDS_TANGENT = {tangents, batched_tangents}
EAGERLY = {
    functional: values, functional_gradients: gradients_alone, compiled: values, traced: values,
    compiled_gradients: gradients,
}  # fmt: skip
SITUATIONS = (
    values, gradients, second_gradients, tangents, no_grad, inference, strided, batched,
    batched_gradients, gradients_of_batched, batched_tangents, functional, functional_gradients,
    compiled, compiled_gradients, traced,
)  # fmt: skip


# The comparison


def differences(ops, case: Composition, dtype: torch.dtype) -> Iterator[str]:
    """Where the operator or one of its forms is not what its reference is."""
    has_optional = "Tensor?" in case.schema or "(a!)?" in case.schema
    for given in (True, False) if has_optional else (True,):
        for ours, reference in pairs(ops, case, given):
            tensors = tuple(tensor_of(i, dtype) for i, _ in enumerate(ours.names))
            is_out = ours.name == case.out
            differentiable = () if is_out else case.differentiable
            wanted = [i for i, name in enumerate(ours.names) if name in differentiable]
            for situation in SITUATIONS:
                what = _difference(situation, ours, reference, tensors, wanted, case)
                if what is not None:
                    yield f"{ours.name}, {situation.__name__}, {dtype}, given={given}: {what}"


def _difference(
    situation: Callable,
    ours: Call,
    reference: Call,
    tensors: Tensors,
    wanted: list[int],
    case: Composition,
) -> str | None:
    is_differentiated = situation in NEEDS_GRADIENT | NEEDS_TANGENT
    if is_differentiated and not wanted:
        return None
    has_it = case.has_tangent if situation in NEEDS_TANGENT else case.has_formula
    actual = _outcome(situation, ours.function, tensors, wanted)
    if (
        is_differentiated
        and not has_it
        and (isinstance(actual, Exception) or situation is not gradients_of_batched)
    ):
        is_said = isinstance(actual, Exception) and re.search(_REFUSED, str(actual))
        return None if is_said else f"without a formula it gives {actual}"
    if isinstance(actual, Exception) and _ONLY_TRACED in str(actual):
        return None
    expected = _outcome(EAGERLY.get(situation, situation), reference.function, tensors, wanted)
    if isinstance(actual, Exception) or isinstance(expected, Exception):
        is_refused = type(actual) is type(expected) and isinstance(actual, RuntimeError)
        if is_refused:
            return None
        return f"{type(actual).__name__}: {actual}, expected {expected}"[:2000]
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True)
    except AssertionError as error:
        return str(error)
    return None


# torch.func.functionalize takes none from outside that writes aside; torch.compile does.
_ONLY_TRACED = "We only support functionalizing operators whose outputs do not have alias"
_REFUSED = f"not implemented|[Tt]rying to use forward AD with|{_ONLY_TRACED}"


def _outcome(situation: Callable, f: Function, tensors: Tensors, wanted: list[int]):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = situation(f, tensors, wanted)
        except Exception as error:
            return error
        with torch.no_grad():
            return [t.detach().clone() for t in found]
