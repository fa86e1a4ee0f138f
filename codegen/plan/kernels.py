# SPDX-License-Identifier: BSD-3-Clause
"""The part of the Plan that is about an operator's kernels: their types, what is registered for
each dispatch key, and the classes of structured operators."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..cpp.signatures import Parameter, Signature
from .autograd import Tensors
from .calls import (
    DeclaredForm,
    DtypeCheck,
    Expected,
    LaidOut,
    LengthCheck,
    Returned,
    StructuredCall,
    home_of,
)  # fmt: skip
from .expressions import RuleCheck, RuledResult


@dataclass(frozen=True)
class AuthorKernel:
    """A function of the library's author, and what a generated one does around a call of it."""

    function: str  # qualified
    device_guard: tuple[str, ...] = ()  # of the first of these that is there the guard is
    laid_out: tuple[LaidOut, ...] = ()
    returned: Returned | None = None  # where what the kernel wrote to copies is written back
    optionals: tuple[str, ...] = ()  # parameters that hold optional tensors
    expected: Expected | None = None  # of a kernel that is not given its results
    viewed: tuple[str, ...] = ()  # parameters that the kernel's only result is a view of
    view_function: str = "distinct_view"  # what makes another tensor of such a result
    is_overloaded: bool = False  # other kernels of this name take other arguments
    is_declared: bool = True  # False: as the kernel of another key


@dataclass(frozen=True)
class WrittenMeta:
    """The Meta kernel of an operator that writes and makes nothing: it returns its arguments."""

    returned: Returned
    expected: Expected | None


@dataclass(frozen=True)
class Autocast:
    """The boxed kernel that casts the arguments as `autocast:` says."""

    policy: str
    device: str  # whose settings it follows


class Boxed(enum.Enum):
    """The boxed kernels that are the same for all operators."""

    CPU_FALLBACK = "runs the CPU kernel on copies of tensors of one device"
    CPU_FALLBACK_OF_ANY = "the same of tensors of any devices, which draws no random numbers"
    FALLTHROUGH = "none: the key is passed by"
    WITHOUT_BIT = "gives copies without the key's bit"


_FALLBACKS = (Boxed.CPU_FALLBACK, Boxed.CPU_FALLBACK_OF_ANY)


@dataclass(frozen=True)
class KernelPlan:
    """What is registered for one operator and one dispatch key."""

    key: str
    runs: AuthorKernel | StructuredCall | WrittenMeta | DeclaredForm | Autocast | Boxed
    signature: Signature | None = None  # of what is registered; None: a boxed kernel
    required: tuple[Tensors, ...] = ()  # those that must not be undefined
    lengths: tuple[LengthCheck, ...] = ()
    dtype_checks: tuple[DtypeCheck, ...] = ()
    device_checks: tuple[Tensors, ...] = ()  # those that must be on one device
    needs_cuda: bool = False  # compiled only where CUDA is
    speaks_for: bool = False  # errors of the private operators it calls are those of the operator

    @property
    def author(self) -> AuthorKernel | None:
        return self.runs if isinstance(self.runs, AuthorKernel) else None

    @property
    def structured(self) -> StructuredCall | None:
        return self.runs if isinstance(self.runs, StructuredCall) else None

    @property
    def declared_form(self) -> DeclaredForm | None:
        return self.runs if isinstance(self.runs, DeclaredForm) else None

    @property
    def expected(self) -> Expected | None:
        return self.runs.expected if isinstance(self.runs, (AuthorKernel, WrittenMeta)) else None

    @property
    def laid_out(self) -> tuple[LaidOut, ...]:
        is_given = isinstance(self.runs, (AuthorKernel, StructuredCall))
        return self.runs.laid_out if is_given else ()

    @property
    def device_guard(self) -> tuple[str, ...]:
        return self.author.device_guard if self.author else ()

    @property
    def falls_back(self) -> bool:
        return self.runs in _FALLBACKS

    @property
    def home(self) -> str:  # where its tensors live: a value of torchext::Home
        return home_of(self.key)

    @property
    def own(self) -> str | None:
        """The author's function or class that it runs, qualified; None where there is none."""
        if call := self.structured:
            return call.kernel_function if call.has_rule else call.meta_class
        return self.author.function if self.author else None

    @property
    def function(self) -> str | None:
        """The same where it is a function."""
        call = self.structured
        return call.kernel_function if call else self.own

    @property
    def asks_home(self) -> bool:
        """Whether what runs before the kernel depends on where its tensors live."""
        return bool(self.structured or self.device_checks or self.device_guard)

    @property
    def declared(self) -> Signature | None:
        """The type that the author's function is declared with."""
        if call := self.structured:
            return call.kernel_type or self.signature
        return self.signature

    @property
    def is_declared(self) -> bool:
        """Whether the header of kernels declares the function for this key."""
        if call := self.structured:
            return call.kernel_type is not None
        return self.author is not None and self.author.is_declared

    @property
    def is_overloaded(self) -> bool:
        """Whether other kernels of its function's name take other arguments."""
        is_own = isinstance(self.runs, (AuthorKernel, StructuredCall))
        return is_own and self.runs.is_overloaded

    @property
    def is_wrapped(self) -> bool:
        """Whether a generated function runs before the kernel."""
        if self.signature is None:
            return False
        if not isinstance(self.runs, AuthorKernel):
            return True
        checks = self.required or self.lengths or self.dtype_checks or self.device_checks
        changes = replace(self.runs, function="", is_overloaded=False, is_declared=True)
        return bool(checks or self.speaks_for or changes != AuthorKernel(""))


@dataclass(frozen=True)
class WrapperPlan:
    """A generated function, and the kernels in whose places it stands: they differ in the author's
    function or class and in where their tensors live, and one may be Meta's, which runs none."""

    name: str
    kernels: tuple[KernelPlan, ...]

    @property
    def kernel(self) -> KernelPlan:
        """The one that does all that the others do."""
        return self.kernels[0]

    @property
    def is_shared(self) -> bool:
        return len(self.kernels) > 1

    @property
    def differs_in_kernel(self) -> bool:
        return len({kernel.own for kernel in self.kernels}) > 1

    @property
    def differs_in_home(self) -> bool:
        return self.kernel.asks_home and len({kernel.home for kernel in self.kernels}) > 1

    @property
    def serves_meta(self) -> bool:
        """Whether what the author's kernel needs is left out for one of the kernels."""
        return self.is_shared and any(k.key == "Meta" and k.structured for k in self.kernels)


@dataclass(frozen=True)
class RulePlan:
    """The class whose meta function is generated from an entry's `meta:`."""

    name: str  # qualified
    meta: Signature
    operator: str  # in errors
    checks: tuple[RuleCheck, ...]
    results: tuple[RuledResult, ...]
    is_dynamic: bool = False  # values tell a size of a result


@dataclass(frozen=True)
class UfuncPlan:
    """The loops that are generated for one structured operator from scalar functions."""

    cpu: tuple[tuple[str, str], ...]  # dtype and scalar function
    cuda: tuple[tuple[str, str], ...]
    tensors: tuple[str, ...]  # the parameters that are operands
    scalars: tuple[tuple[str, bool], ...]  # the others, and whether they are an at::Scalar


@dataclass(frozen=True)
class StructuredKernel:
    """The class whose `impl` runs for one or several dispatch keys."""

    name: str  # qualified
    keys: tuple[str, ...]
    is_generated: bool = False  # its `impl` is a loop over a scalar function


@dataclass(frozen=True)
class StructuredPlan:
    """The classes of one structured operator: one meta function, one kernel per device."""

    meta_class: str  # qualified
    is_iterator: bool  # it derives from TensorIteratorBase
    meta: Signature
    impl: Signature
    precomputed: tuple[Parameter, ...]
    kernels: tuple[StructuredKernel, ...]
    ufunc: UfuncPlan | None = None
    iterator: tuple[str, tuple[str, ...]] | None = None  # what sets it up, and of which parameters

    def functions(self) -> Iterator[tuple[str, str, Signature, str]]:
        """The functions that the library's author defines: class, name, type and dispatch keys."""
        if self.iterator is None:
            yield self.meta_class, "meta", self.meta, "Meta"
        for kernel in self.kernels:
            if not kernel.is_generated:
                yield kernel.name, "impl", self.impl, ", ".join(kernel.keys)
