# SPDX-License-Identifier: BSD-3-Clause
"""The operators that entries bring with them: the forms that `autogen:` declares, and what calls
are traced as that no entry declares."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator

from ..errors import Errors
from ..schema.forms import copied_form, copy_form, derive_schema, form_tag, scatter_form
from ..schema.schema import OperatorName, Schema
from ..spec.model import Beside, Operator
from .differentiation import is_composite_implicit
from .functional_forms import FunctionalForms, view_copies


def with_variants(operators: list[Operator], errors: Errors) -> list[Operator]:
    """The operators, each followed by those that its `autogen:` declares."""
    schemas = {op.name: op.func for op in operators}
    found: list[Operator] = []
    for operator in operators:
        found.append(operator)
        for name in operator.autogen:
            with errors.about(str(operator.name)):
                schema = derive_schema(operator.func, name)
                if isinstance(schema, str):
                    errors.add(operator.location, f"'autogen' cannot declare it: {schema}")
                    continue
                # An in-place form and its functional one may both declare the same out= form.
                if schemas.setdefault(name, schema) is not schema:
                    if str(schemas[name]) != str(schema):
                        message = f"'autogen' declares '{name}', which has another schema"
                        errors.add(operator.location, message, f"it is {schemas[name]}")
                    continue
                kept = {"nondeterministic_seeded", "view_copy"} & set(operator.tags)
                variant = Operator(
                    location=operator.location,
                    func=schema,
                    tags=("generated", *sorted(kept)),
                    pt2_compliant=operator.pt2_compliant,
                    differentiable=operator.differentiable,
                    complex_autograd=operator.complex_autograd,
                    origin=operator,
                )
                found.append(variant)
    return found


def operators_beside(
    operators: list[Operator], forms: FunctionalForms, saves_written: Callable[[Operator], bool]
) -> Iterator[Operator]:
    """The operators that no entry declares, and that what others do is traced as.

    saves_written: whether the node of an operator saves what an argument that is not returned holds
    after the call.
    """
    found = [*_copied_forms(operators, forms, saves_written), *_view_forms(operators)]
    names = {op.name.identifier for op in operators}
    for operator, schema, beside in found:
        numbered = (_numbered(schema.name, number) for number in itertools.count())
        name = next(name for name in numbered if name.identifier not in names)
        names.add(name.identifier)
        yield Operator(
            location=operator.location,
            func=dataclasses.replace(schema, name=name),
            tags=("generated", *({"nondeterministic_seeded"} & set(operator.tags))),
            pt2_compliant=operator.pt2_compliant,
            differentiable=operator.differentiable,
            origin=operator,
            beside=beside,
        )


def _copied_forms(
    operators: list[Operator], forms: FunctionalForms, saves_written: Callable[[Operator], bool]
) -> Iterator[tuple[Operator, Schema, Beside]]:
    """Those of operators that write and have no other form for it.

    torch traces in-place and out= forms by their tags too, but what they return is a tensor of its
    own to Inductor then, which reuses the memory of the argument that it is. So is what a node
    saves of an argument that was written to.
    """
    for operator in operators:
        has_form = form_tag(operator.func) and forms.replacing(operator)
        is_kept = has_form or operator.is_inplace_view
        schema = None if is_kept else copied_form(operator.func, saves_written(operator))
        if schema is not None and _is_traced_here(operator):
            yield operator, schema, Beside.ON_COPIES


def _view_forms(operators: list[Operator]) -> Iterator[tuple[Operator, Schema, Beside]]:
    """Those of operators that return views, for graphs in which nothing shares memory."""
    copies = view_copies(operators)
    for operator in operators:
        scatter, copy = scatter_form(operator.func), copy_form(operator.func)
        if scatter is not None and copy is not None and _is_traced_here(operator):
            yield operator, scatter, Beside.SCATTER
            if operator.name not in copies:
                yield operator, copy, Beside.COPY


def _is_traced_here(operator: Operator) -> bool:
    """Whether the operator is traced by what is generated, and not by its parts or by hand."""
    has_kernel = any(entry.key == "Functionalize" for entry in operator.dispatch or ())
    is_own = operator.manual_kernel_registration or has_kernel
    return not (is_own or is_composite_implicit(operator))


def _numbered(name: OperatorName, number: int) -> OperatorName:
    """The name, or one like it: an overload is no number."""
    overload = f"{name.overload or 'generated'}{number}" if number else name.overload
    return dataclasses.replace(name, overload=overload)
