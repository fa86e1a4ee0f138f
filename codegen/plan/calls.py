# SPDX-License-Identifier: BSD-3-Clause
"""The part of the Plan that is about calls: what kernels are given and return, and which form of an
operator calls another."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ..cpp.signatures import Signature
from ..schema.schema import OperatorName

_HOMES = {"CPU": "kCPU", "CUDA": "kCUDA", "Meta": "kMeta"}


def home_of(key: str) -> str:
    """Where the tensors of a dispatch key's kernel live: a value of torchext::Home."""
    return _HOMES.get(key, "kOther")


@dataclass(frozen=True)
class LaidOut:
    """An argument that a kernel is given in a layout of `layout:`."""

    parameter: str
    layout: str  # a value of torchext::StridesOf
    is_written: bool = False
    argument: str = ""  # in messages
    apart: tuple[str, ...] = ()  # parameters with which a copied one must share no memory
    is_list: bool = False

    @property
    def name(self) -> str:
        """What the kernel is given."""
        return f"{self.parameter}_laid_out"


@dataclass(frozen=True)
class ReturnedValue:
    """One of the results that a wrapper returns."""

    parameter: str | None  # that it is; None: what the kernel returns
    may_be_missing: bool  # then it is what the kernel returns

    @property
    def is_kernels(self) -> bool:
        """Whether what the kernel returns is looked at."""
        return self.parameter is None or self.may_be_missing


@dataclass(frozen=True)
class Returned:
    """What a wrapper returns after its kernel has run."""

    values: tuple[ReturnedValue, ...]
    result: str  # what it calls what the kernel returns, where it looks at that


class Passed(enum.Enum):
    """How a parameter is passed on."""

    AS_IT_IS = enum.auto()
    CONVERTED = enum.auto()  # to the type that authors' functions take
    OR_MISSING = enum.auto()  # an optional of an undefined tensor has no value
    PRECOMPUTED = enum.auto()  # in its place stands what the meta function made


@dataclass(frozen=True)
class GivenArgument:
    """An argument of a meta function or kernel."""

    name: str
    passed: Passed = Passed.AS_IT_IS


@dataclass(frozen=True)
class DtypeCheck:
    """The dtypes that a kernel takes of an argument."""

    argument: str
    parameter: str
    dtypes: tuple[str, ...]  # as c10 names them


@dataclass(frozen=True)
class LengthCheck:
    """The lengths that a list may have: that of its type first."""

    argument: str
    parameter: str
    lengths: tuple[int, ...]
    takes_one: bool = False  # which stands for all


@dataclass(frozen=True)
class StructuredCall:
    """How a generated function runs the meta function and the kernel of a structured operator."""

    form: str  # a class template of torchext/generated/structured.h
    home: str  # where new results come from: a value of torchext::Home
    meta_class: str  # the class that has `meta`, and `impl` where one runs; qualified
    written: tuple[str, ...]  # the parameters that are results
    results: int  # that the meta function sets
    meta_arguments: tuple[GivenArgument, ...]
    impl_arguments: tuple[GivenArgument, ...] = ()  # all but the results
    runs_impl: bool = False
    has_rule: bool = False  # the class is generated from `meta:`
    is_list: bool = False  # the only result is a list, whose tensors the rule sets
    kernel_function: str | None = None  # what runs in place of the class's `impl`
    kernel_type: Signature | None = None  # of that, which is given its results
    is_overloaded: bool = False  # other kernels of its name take other arguments
    keeps_precomputed: bool = False
    out_handle: str | None = None  # the out= form that fills the results, for a composite kernel
    out_arguments: tuple[str, ...] = ()  # all but the results
    separated: tuple[str | None, ...] = ()  # what results must not overlap, but may be the first of
    laid_out: tuple[LaidOut, ...] = ()
    given: tuple[str, ...] = ()  # per result an optional parameter that it may be; or ""
    # where arguments are among what is returned: those, and numbers of results that are set
    returned: tuple[str | int, ...] = ()


@dataclass(frozen=True)
class Expected:
    """What a wrapper asks of a rule before and after a kernel that makes its results itself."""

    rule: str  # the class of its meta function; qualified
    arguments: tuple[str, ...]
    results: tuple[str, ...]  # those that the rule knows, by name
    positions: tuple[int, ...]  # among what the kernel returns
    is_list: bool = False  # the only result is a list, of any length


ON_COPIES = "functionalized_on_copies_by"


@dataclass(frozen=True)
class DeclaredForm:
    """How a form of an operator calls another one: a function of a header of torchext's, and the
    other form's name."""

    function: str
    target: OperatorName
    header: str = "declared_forms"


@dataclass(frozen=True)
class TracedView:
    """How a call that makes a view is traced: a function of torchext/generated/functional_views.h,
    and the names that it is given."""

    function: str
    view: OperatorName  # the operator that returns it
    scatter: OperatorName  # the operator that writes to it
    copy: OperatorName  # the operator that copies it
