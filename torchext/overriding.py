# SPDX-License-Identifier: BSD-3-Clause
"""`torchext.override`: another kernel for an operator, for a block of code and its threads."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from .decorating import refuse_what_goes_on
from .program_makers import suspend_overrides_in_program_makers
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

    The override holds for the calling thread, all of its asyncio tasks and generators, from where
    it is entered to where it is left, in any order and on any thread; and for threads that work for
    this one: autograd's, and `torch.jit.fork`'s. Other threads do not see it. A backward runs under
    the overrides of its caller, and so does what `torch.utils.checkpoint` computes again there. In
    the kernel, a call of the operator reaches the override around this one, at last the kernel that
    was there before: there is no recursion. It runs below autograd, so the gradient is the
    operator's own. The same object can be entered again, on any thread, and serves as a decorator
    of functions that are over when they return.

    What makes programs runs without overrides: torch.compile and its backends, torch.export,
    AOTInductor, make_fx, torch.fx and torch.jit. Nothing that they compute, fold or cache comes of
    an override; and what they trace cannot enter one: that is a RuntimeError, but torch.compile
    ends its graph there. Wherever a program was made, the kernels that it calls are overridden
    where it is called within an override; not what the compiler made code for or computed itself,
    nor what AOTInductor and Inductor's C++ wrapper call past the dispatcher, as most of ATen's
    kernels, nor what a CUDA graph replays. TorchScript's functions are not optimised within one.

    The first override of an operator for a key registers a kernel that stays, and that calls the
    former one where nothing overrides it; the dispatcher does not let that operator be called on
    another thread meanwhile. The former one must stay registered. A kernel registered for the
    operator and key later stands above it, and below the overrides that are made then.

    Raises ValueError for an operator or key that is unknown or has no kernel, for an operator that
    is CompositeImplicitAutograd (it differentiates through the operators that it calls, which a
    kernel would hide), for a kernel with another schema and a function for an operator that returns
    a view; TypeError for what is no kernel.

    What a kernel returns wrongly is a RuntimeError where the operator is called: another number of
    results, or of other kinds; tensors of another size, dtype, layout or device than the operator's
    Meta kernel says, where it has one that can tell; an argument, its memory or the same memory
    twice; a tensor that requires grad, was made in inference mode, or is a subclass's; so is an
    argument that it should write to and has given other memory or sizes. Results with other strides
    are copied. A TypeError of a function is the cause of a RuntimeError: Python's operators take it
    for their own, and `==` would be False. Any other exception passes.
    """

    def __init__(self, op, kernel: Callable | str, *, dispatch_key: str = "CPU"):
        name = _operator_name(op)
        if name is None:
            raise TypeError(f"{op!r} is no operator with its overload, such as 'aten::add.Tensor'")
        self._override = _made(name, dispatch_key, kernel)

    def __call__(self, function):
        """The function, in this override; TypeError for one that goes on after it returns."""
        refuse_what_goes_on(function, "an override")
        return super().__call__(function)

    def __enter__(self) -> override:
        self._override.enter(id(sys._getframe(1)))  # which leaves it, with a `with`
        return self

    def __exit__(self, *error) -> None:
        self._override.exit(id(sys._getframe(1)))


def _made(name: tuple[str, str], dispatch_key: str, kernel):
    suspend_overrides_in_program_makers()
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
