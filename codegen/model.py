# SPDX-License-Identifier: BSD-3-Clause
"""One frozen record per YAML entry. The fields, with their descriptions, are the language.

A field made by `key` is a key of the YAML file; `load` accepts just these, and docs/language.md
is written from their descriptions.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from .errors import Location
from .schema import OperatorName, Schema

_REQUIRED = object()


def key(
    doc: str,
    form: str,
    default: Any = _REQUIRED,
    *,
    is_extension: bool = False,
    without_effect: str | None = None,
) -> Any:
    """A field that is a YAML key.

    doc says what it decides; form is one of text, flag, list, map, schema; without_effect says why
    a key that upstream knows changes nothing in what is generated here.
    """
    metadata = {
        "doc": doc,
        "form": form,
        "is_extension": is_extension,
        "without_effect": without_effect,
    }
    if default is _REQUIRED:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def spec_keys(record: type) -> dict[str, dataclasses.Field[Any]]:
    """The YAML keys of a record type, in the order of its fields."""
    return {f.name: f for f in dataclasses.fields(record) if "doc" in f.metadata}


@dataclass(frozen=True)
class DispatchEntry:
    """One dispatch key of a `dispatch:` map and the kernel named for it."""

    key: str
    kernel: str  # a function name, maybe with its namespace, or "cpu_fallback"
    location: Location


_STRUCTURED = (
    "structured kernels come with the generated variants; the operator's schema is registered "
    "and its structured kernels are left out"
)


@dataclass(frozen=True)
class Operator:
    """One entry of native_functions.yaml, or one name that its `autogen:` declares."""

    location: Location
    func: Schema = key(
        "The schema: `name.overload(arguments) -> returns`, everything that the dispatcher takes. "
        "A namespace, where written, is that of the library.",
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
        "`pt2_compliant: False`.",
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
        "Names of the functional or out= forms to derive from this entry; they are operators too. "
        "Their schemas are registered; kernels come with the generated variants.",
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
        "True: one meta function and one kernel per device. Its CPU, CUDA, MPS, XPU and MTIA "
        "kernels come with the generated variants and are left out.",
        "flag",
        False,
    )
    structured_delegate: str | None = key(
        "The out= form whose structured kernel this operator runs. It has no kernel of its own.",
        "text",
        None,
    )
    structured_inherits: str | None = key(
        "The base class of the structured kernel's meta class.", "text", None,
        without_effect=_STRUCTURED,
    )  # fmt: skip
    precomputed: tuple[str, ...] = key(
        "What the meta function hands to the kernel in place of arguments.", "list", (),
        without_effect=_STRUCTURED,
    )  # fmt: skip
    ufunc_inner_loop: tuple[tuple[str, str], ...] = key(
        "One scalar function from which CPU and CUDA kernels are made, per group of dtypes.",
        "map",
        (),
        without_effect=_STRUCTURED,
    )
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

    @property
    def name(self) -> OperatorName:
        """The operator's name, without namespace."""
        return OperatorName(self.func.name.base, self.func.name.overload)


NON_DIFFERENTIABLE = "non_differentiable"  # a formula that says that there is no gradient


@dataclass(frozen=True)
class Formula:
    """One line of a derivatives entry: `names: text`."""

    names: tuple[str, ...]  # arguments whose gradient it is, or results whose tangent it is
    text: str
    location: Location
    name_locations: tuple[Location, ...] = ()
    column_of: Any = dataclasses.field(default=None, compare=False, repr=False)

    def at(self, offset: int) -> Location:
        """Where the character with this offset of `text` stands."""
        return self.column_of(offset) if self.column_of else self.location


@dataclass(frozen=True)
class Flag:
    """Whether one result can require grad: `True`, `False`, or a condition in C++."""

    text: str
    location: Location

    @property
    def is_condition(self) -> bool:
        """Whether it depends on the arguments."""
        return self.text not in ("True", "False")


@dataclass(frozen=True)
class Derivative:
    """One entry of derivatives.yaml."""

    location: Location
    name: Schema = key(
        "The schema of the operator that the formulas belong to, as in native_functions.yaml.",
        "schema",
    )
    output_differentiability: tuple[Flag, ...] | None = key(
        "For each result whether it can require grad: True, False, or a condition in C++.",
        "list",
        None,
    )
    dispatch: tuple[tuple[str, tuple[Formula, ...]], ...] = key(
        "Formulas per autograd key: `Default:` and others, each with formulas of its own. An entry "
        "without the key has Default formulas only.",
        "map",
        (),
    )

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """The formulas of the Autograd key."""
        return dict(self.dispatch).get("Default", ())
