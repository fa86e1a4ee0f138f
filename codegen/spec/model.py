# SPDX-License-Identifier: BSD-3-Clause
"""One frozen record per YAML entry. The fields, with their descriptions, are the language.

A field made by `key` is a key of the YAML file.
"""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass

from ..errors import Location
from ..schema.schema import OperatorName, Schema
from .derivative_model import NON_DIFFERENTIABLE, Derivative, Flag, Formula
from .keys import key
from .values import (
    Check,
    DispatchEntry,
    DtypeRule,
    Expression,
    Line,
    Loop,
    MetaRule,
    ResultRule,
    Sample,
    Value,
)

__all__ = [
    "Beside", "Check", "Derivative", "DispatchEntry", "DtypeRule", "Expression", "FALLBACK", "Flag",
    "Formula", "Line", "Loop", "MetaRule", "NON_DIFFERENTIABLE", "OVERRIDABLE", "Operator",
    "ResultRule", "Sample", "Value",
]  # fmt: skip

# What `dispatch:` names in place of a kernel, for the CPU's on copies of the arguments.
FALLBACK = "cpu_fallback"
# The namespace whose operators an entry may give kernels to, in place of defining its own.
OVERRIDABLE = "aten"


class Beside(enum.Enum):
    """What an operator is for that no entry declares, and that stands beside its `origin`."""

    ON_COPIES = "runs it on copies of what it writes to"
    SCATTER = "gives the tensor that it returns a view of other values where the view is"
    COPY = "copies the view that it returns"


@dataclass(frozen=True)
class Operator:
    """One entry of native_functions.yaml, or one name that its `autogen:` declares."""

    location: Location
    func: Schema = key(
        "The schema: `name.overload(arguments) -> returns`, everything that the dispatcher takes. "
        "A namespace, where written, is that of the library; an entry of namespace `aten` gives "
        "kernels to an operator of PyTorch's, see below.",
        "schema",
    )
    dispatch: tuple[DispatchEntry, ...] | None = key(
        "Which kernel runs for which dispatch key: `KEY: kernel` or `KEY, KEY: kernel`, any key of "
        "c10. A kernel is a C++ function in `NS::native`; `other::k` is `other::native::k`; "
        "`cpu_fallback` runs the CPU kernel on copies of the arguments. A kernel whose name "
        "contains `_symint` takes SymInt types, any other int64_t. Without the key: one "
        "CompositeImplicitAutograd kernel named like the operator.",
        "map",
        None,
    )
    tags: tuple[str, ...] = key(
        "Tags of the operator, one or a list. `pt2_compliant_tag` is added unless "
        "`pt2_compliant: False`, and `cudagraph_unsafe` where `CUDA` has `cpu_fallback`: "
        "torch.compile captures CUDA graphs around such an operator.",
        "list",
        (),
    )
    doc: str = key(
        "What the operator does; the first line is the summary. Stands above its C++ declaration.",
        "text",
        "",
        is_extension=True,
    )
    pt2_compliant: bool = key(
        "False: the operator is registered without `pt2_compliant_tag`.",
        "flag",
        True,
        is_extension=True,
    )
    differentiable: bool = key(
        "False: results never require grad and backward does not refuse them; for operators such "
        "as comparisons, which upstream lists in its generator. What such an operator writes to "
        "must not require grad.",
        "flag",
        True,
        is_extension=True,
    )
    complex_autograd: bool = key(
        "False: a new complex tensor that would require grad is refused; for operators whose "
        "complex gradient nobody has checked, as upstream lists them in its generator.",
        "flag",
        True,
        is_extension=True,
    )
    device_check: str = key(
        "`NoCheck`: tensors on several devices are allowed (TensorIterator operators take CPU "
        "scalars). `ExactSame`, the default: they are refused.",
        "text",
        "ExactSame",
    )
    device_guard: bool = key(
        "False: the kernel runs without a guard that selects its tensors' device.", "flag", True
    )
    manual_kernel_registration: bool = key(
        "True: only the schema is registered; the kernels are registered by hand.", "flag", False
    )
    autogen: tuple[OperatorName, ...] = key(
        "Names of the functional, in-place or out= forms to derive from this entry; they are "
        "operators too. With `meta:` the kernels write to the out= tensors; otherwise an out= form "
        "calls the functional one and copies, as an in-place form always does, and refuses two "
        "out= tensors that share memory. A functional form clones what this entry writes to, or "
        "copies the view that it returns; that of an out= entry has no kernel.",
        "list",
        (),
    )
    use_const_ref_for_mutable_tensors: bool = key(
        "True: mutated tensors are passed as `const at::Tensor&`.", "flag", False
    )
    cpp_no_default_args: tuple[str, ...] = key(
        "Arguments whose default is left out of the C++ API.", "list", ()
    )
    structured: bool = key(
        "True, on an out= form: one meta function sets the results' sizes and dtypes, and one "
        "`impl` per device fills them; the functional and in-place forms that delegate to it, all "
        "their wrappers and Meta kernels are generated. Its CPU, CUDA, MPS, XPU and MTIA kernels "
        "are classes, see below; kernels of other keys are plain functions.",
        "flag",
        False,
    )
    structured_delegate: str | None = key(
        "On a functional or in-place form: the out= form whose meta function and kernels it runs.",
        "text",
        None,
    )
    structured_inherits: str | None = key(
        "The base of the meta class: `TensorIteratorBase`, whose `build` functions broadcast, "
        "promote and set the result. Without the key: `torchext::MetaBase`.",
        "text",
        None,
    )
    precomputed: tuple[Line, ...] = key(
        "What the meta function hands to the kernel: lines `argument -> type name, ...` for what "
        "stands in an argument's place, and at last a line `type name, ...` for what comes after "
        "all arguments.",
        "list",
        (),
    )
    ufunc_inner_loop: tuple[tuple[str, Line], ...] = key(
        "One scalar function from which CPU and CUDA kernels are made: `name (dtypes)`, or a map "
        "of `Generic`, `ScalarOnly` and `CPUScalar` to that. The dtypes are names of ScalarType "
        "or of their groups.",
        "map",
        (),
    )
    pointwise: tuple[Expression, ...] = key(
        "An expression of the elements of the arguments, for each result: what the operator "
        "computes. Its kernels, Meta, derivatives, vmap and forms follow from it. See below.",
        "list",
        (),
        is_extension=True,
    )
    rows: tuple[Expression, ...] = key(
        "An expression of the elements of rows, the last dimension, for each result, in which a "
        "row may be reduced to one number: as `pointwise:` else. See below.",
        "list",
        (),
        is_extension=True,
    )
    let: tuple[tuple[Line, Expression], ...] = key(
        "Names of parts of the expressions of `pointwise:` or `rows:`, each with its expression, "
        "which may use the names before it.",
        "map", (), is_extension=True,
    )  # fmt: skip
    opaque: bool = key(
        "True: torch.compile calls the operator of an expression, and its derivatives, as kernels, "
        "where it would see the expression otherwise and fuse it with what stands beside it.",
        "flag", False, is_extension=True,
    )  # fmt: skip
    meta: MetaRule | None = key(
        "The size, dtype and strides of each result, and what is checked before: one rule for the "
        "results that the kernels receive, the Meta kernel and the out= form of `autogen:`. See "
        "below.",
        "map",
        None,
        is_extension=True,
    )
    allocates: bool = key(
        "True: beside `meta:`, the kernels return what they made, and are given no results. The "
        "rule serves Meta, forms and tests; in every call sizes and dtype are compared with it, "
        "and what has other strides is copied.",
        "flag", False, is_extension=True,
    )  # fmt: skip
    autocast: str | None = key(
        "What autocast does with the operator's floating point arguments, on the CPU, CUDA and "
        "PrivateUse1: `lower_precision_fp` casts them to autocast's dtype, `fp32` to float32, "
        "`promote` to float32 where one of them is and to autocast's dtype otherwise; float64 "
        "stays. Without the key it leaves them alone, and so it does with those of forms that "
        "write.",
        "text",
        None,
        is_extension=True,
    )
    vmap: str | None = key(
        "How one call serves a whole batch of torch.vmap: `pointwise` where all arguments "
        "broadcast; `leading` where the operator treats the elements of the leading dimension one "
        "by one, or `leading(arguments)` where only these have that dimension: without names, "
        "those of type `Tensor`; in `leading(x, rows=k)` each of them becomes `k` of a result. "
        "Behind `if` stands a condition in the language of `meta:`, as in `leading if x.dim > 1`; "
        "where it does not hold an example has a call of its own. Forms of a structured operator "
        "and of `autogen:` share it. Without the key: a call for each example.",
        "text",
        None,
        is_extension=True,
    )
    layout: tuple[tuple[str, Line], ...] = key(  # the layout, and the argument's name
        "Per argument what the operator's kernels may rely on: `contiguous`; "
        "`last_dim_contiguous`, stride 1 in the last dimension; `any`, as every argument without "
        "the key. A tensor that is not laid out so is copied; a copy of one that the kernel writes "
        "to is written back.",
        "map",
        (),
        is_extension=True,
    )
    dtypes: tuple[DtypeRule, ...] = key(
        "The dtypes that the kernels take, as a list: torch's names, c10's, or the groups of "
        "`ufunc_inner_loop`. A map gives them per argument, per dispatch key, or both. Others are "
        "refused before the kernel runs, and by Meta. Forms of a structured operator and of "
        "`autogen:` share it.",
        "list",
        (),
        is_extension=True,
    )
    samples: tuple[Sample, ...] = key(
        "Arguments on which the generated tests call the operator; all its forms share them. See "
        "below.",
        "list", (), is_extension=True,
    )  # fmt: skip
    variants: tuple[str, ...] = key(
        "`function`, `method` or both.", "list", ("function",),
        without_effect="out-of-tree operators cannot become methods of torch.Tensor; every "
        "operator is a function",
    )  # fmt: skip
    python_module: str | None = key(
        "The module of torch that shows the function.", "text", None,
        without_effect="the Python functions of a library stand in one module",
    )  # fmt: skip
    manual_cpp_binding: bool = key("True: the C++ API function is written by hand.", "flag", False)
    category_override: str | None = key(
        "`factory` or `dummy`: a category of torch's Python bindings.", "text", None,
        without_effect="it sorts torch's own Python bindings only",
    )  # fmt: skip
    origin: Operator | None = None  # the entry whose autogen: declares this one
    beside: Beside | None = None  # None: an entry, or a name of its `autogen:`
    locations: dict[str, Location] = dataclasses.field(
        default_factory=dict, compare=False, repr=False
    )  # of the values of its keys

    def at(self, key: str) -> Location:
        """Where the value of a key stands; the entry itself where it has none."""
        return self.locations.get(key, self.location)

    @property
    def name(self) -> OperatorName:
        """The operator's name, without the library's own namespace."""
        kept = self.func.name.namespace if self.is_override else ""
        return OperatorName(self.func.name.base, self.func.name.overload, kept)

    @property
    def is_inplace_view(self) -> bool:
        """Whether it makes its argument a view of what that was, with other sizes and strides."""
        return "inplace_view" in self.tags and bool(self.func.mutated)

    @property
    def draws_numbers(self) -> bool:
        """Whether the operator draws random numbers."""
        types = {type_.name for argument in self.func.arguments for type_ in argument.type.walk()}
        return "Generator" in types or "nondeterministic_seeded" in self.tags

    @property
    def is_override(self) -> bool:
        """Whether the entry gives kernels to an operator that PyTorch defines."""
        return self.func.name.namespace == OVERRIDABLE
