# SPDX-License-Identifier: BSD-3-Clause
"""The part of the Plan that is about an operator's kernels: their types, what is registered for
each dispatch key, and the classes of structured operators."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

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


class Fallback(enum.Enum):
    """What `cpu_fallback` asks of the arguments' devices."""

    ONE_DEVICE = enum.auto()
    NOTHING = enum.auto()


@dataclass(frozen=True)
class KernelPlan:
    """What is registered for one operator and one dispatch key."""

    key: str
    function: str  # qualified C++ name; empty for fallbacks and kernels that are classes
    signature: Signature | None  # of what is registered; None: a boxed kernel
    required: tuple[Tensors, ...] = ()  # those that must not be undefined
    lengths: tuple[LengthCheck, ...] = ()
    dtype_checks: tuple[DtypeCheck, ...] = ()
    device_checks: tuple[Tensors, ...] = ()  # those that must be on one device
    device_guard: tuple[str, ...] = ()  # of the first of these that is there the guard is
    needs_cuda: bool = False  # compiled only where CUDA is
    is_overloaded: bool = False  # other kernels of this name take other arguments
    is_declared: bool = True  # False: as the kernel of another key
    structured: StructuredCall | None = None
    declared_form: DeclaredForm | None = None
    autocast: tuple[str, str] | None = None  # an autocast kernel's policy, and device type
    fallback: Fallback | None = None  # it is the boxed kernel that runs the CPU kernel on copies
    takes_results: Signature | None = None  # the kernel's own type, where it is given its results
    laid_out: tuple[LaidOut, ...] = ()
    returned: Returned | None = None  # where what the kernel wrote to copies is written back
    optionals: tuple[str, ...] = ()  # parameters that hold optional tensors
    is_fallthrough: bool = False  # the key is passed by
    is_without_bit: bool = False  # the boxed kernel that gives copies without the key's bit
    expected: Expected | None = None  # of a kernel that is not given its results
    viewed: tuple[str, ...] = ()  # parameters that the kernel's only result is a view of
    view_function: str = "distinct_view"  # what makes another tensor of such a result
    speaks_for: bool = False  # errors of the private operators it calls are those of the operator

    @property
    def home(self) -> str:  # where its tensors live: a value of torchext::Home
        return home_of(self.key)

    @property
    def runs(self) -> str | None:
        """The author's function or class that it runs, qualified; None where there is none."""
        call = self.structured
        if call and not call.has_rule:
            return call.meta_class
        return (call.kernel_function if call else self.function) or None

    @property
    def asks_home(self) -> bool:
        """Whether what runs before the kernel depends on where its tensors live."""
        return bool(self.structured or self.device_checks or self.device_guard)

    @property
    def declared(self) -> Signature | None:
        """The type that the kernel is declared with."""
        return self.takes_results or self.signature

    @property
    def is_wrapped(self) -> bool:
        """Whether a generated function runs before the kernel."""
        checks = self.required or self.lengths or self.dtype_checks or self.device_checks
        changes = self.laid_out or self.optionals or self.viewed or self.expected or self.speaks_for
        changes = changes or (not self.function and self.returned)
        return bool(checks or changes or self.device_guard)


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
        return len({kernel.runs for kernel in self.kernels}) > 1

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
