# SPDX-License-Identifier: BSD-3-Clause
"""`torchext.override`: another kernel for an operator, for a block of code and its threads."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from .runtime import runtime


class override(contextlib.ContextDecorator):  # noqa: N801  a context manager is written so
    """Run `kernel` in place of the kernel that operator `op` has for a backend.

        def twice(self, other, *, alpha=1):
            return torch.add(self, other, alpha=alpha) * 2  # add is the kernel from before here

        with torchext.override("aten::add.Tensor", twice):
            a + b

    `op` is the name of an operator with its overload, or the operator: `torch.ops.aten.add.Tensor`.
    `kernel` is another operator, with the same arguments and results, which runs without Python's
    lock; or a function, which is called like the operator, without the arguments that have their
    default. It returns new tensors, or None for one that an `output_mask` leaves out; that of an
    in-place or out= form writes to the argument, and returns it or None. `dispatch_key` names a
    backend: `CPU`, `CUDA`, `SparseCPU`...

    The override holds for the calling thread and for those that work for it: autograd's, and
    `torch.jit.fork`'s; other threads do not see it. In the kernel, a call of the operator reaches
    the override around this one, at last the kernel that was there before: there is no recursion.
    It runs below autograd, so the gradient is the operator's own, and below torch.compile: what
    Inductor makes code for is not overridden. The same object can be entered again, on any thread,
    and serves as a decorator.

    The first override of an operator for a key registers a kernel that stays, and that calls the
    former one where nothing overrides it; the dispatcher does not let that operator be called on
    another thread meanwhile. The former one must stay registered. A kernel registered for the
    operator and key later stands above it, and below the overrides that are made then.

    Raises ValueError for an operator or key that is unknown or has no kernel, for an operator that
    is CompositeImplicitAutograd (it differentiates through the operators that it calls, which a
    kernel would hide), for a kernel with another schema and a function for an operator that returns
    a view; TypeError for what is no kernel. What a function returns wrongly is a RuntimeError.
    """

    def __init__(self, op, kernel: Callable | str, *, dispatch_key: str = "CPU"):
        name = _operator_name(op)
        if name is None:
            raise TypeError(f"{op!r} is no operator with its overload, such as 'aten::add.Tensor'")
        self._override = _made(name, dispatch_key, kernel)

    def __enter__(self) -> override:
        self._override.enter()
        return self

    def __exit__(self, *error) -> None:
        self._override.exit()


def _made(name: tuple[str, str], dispatch_key: str, kernel):
    target = _operator_name(kernel)
    if target is not None:
        return runtime().override_by_operator(name, dispatch_key, target)
    if callable(kernel):
        return runtime().override_by_function(name, dispatch_key, kernel)
    raise TypeError(f"{kernel!r} is neither a function nor the name of an operator")


# What torch.compiler.disable would mark, without importing the compiler for it: Dynamo ends its
# graph here, and does not warn that it cannot trace what is below.
_made._torchdynamo_disable = True


def _operator_name(op) -> tuple[str, str] | None:
    """Return name and overload, or None for what is no operator."""
    from torch._ops import OpOverload

    if isinstance(op, OpOverload):
        op = op.name()
    if not isinstance(op, str):
        return None
    name, _, overload = op.partition(".")
    return name, overload
