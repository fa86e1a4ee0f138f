# SPDX-License-Identifier: BSD-3-Clause
"""The operators that entries bring with them: the forms that `autogen:` declares, and those that
traced calls become of operators that have no other for it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from .autograd_analysis import is_composite_implicit
from .errors import Errors
from .forms import FunctionalForms
from .model import Operator
from .schema import OperatorName
from .variants import copied_form, derive_schema, form_tag


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
                    origin=operator,
                )
                found.append(variant)
    return found


def copied_forms(operators: list[Operator], forms: FunctionalForms) -> Iterator[Operator]:
    """The forms that traced calls become of operators that have no other for it.

    torch traces in-place and out= forms by their tags too, but what they return is a tensor of its
    own to Inductor then, which reuses the memory of the argument that it is.
    """
    names = {op.name.identifier for op in operators}
    for operator in operators:
        has_form = form_tag(operator.func) and forms.replacing(operator)
        schema = None if has_form else copied_form(operator.func)
        is_own = operator.manual_kernel_registration
        has_kernel = any(entry.key == "Functionalize" for entry in operator.dispatch or ())
        if schema is None or is_own or has_kernel or is_composite_implicit(operator):
            continue
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
            is_copied_form=True,
        )


def _numbered(name: OperatorName, number: int) -> OperatorName:
    return dataclasses.replace(name, overload=f"{name.overload}{number or ''}")
