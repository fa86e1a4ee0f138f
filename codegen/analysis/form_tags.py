# SPDX-License-Identifier: BSD-3-Clause
"""The tags that operators get from their forms, `inplace` and `out`.

Both tell torch.compile what an operator that it functionalizes itself does. Inductor reads `out` as
more: it calls such an operator in place of the functional one whose arguments it has (torch's
`to_out_variant`), with the tensors before all other arguments and the keyword arguments twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import Errors
from ..schema.forms import form_tag
from ..schema.schema import OperatorName, Schema
from ..spec.model import Operator

# Types that torch compares as if they were others, and sizes of lists, which it does not compare.
_ALIKE = {
    "int": re.compile(r"\b(SymInt|ScalarType|Layout|MemoryFormat|DeviceIndex)\b"),
    "bool": re.compile(r"\bSymBool\b"),
    "": re.compile(r"(?<=\[)\d+(?=\])"),
}


class FormTags:
    """The tags of a library's operators; `out` only where no functional operator has that form."""

    def __init__(self, operators: Iterable[Operator], errors: Errors) -> None:
        operators = list(operators)
        self._errors = errors
        self._functional = {_call(op.func): op for op in operators if not op.func.mutated}
        self._tags: dict[OperatorName, str | None] = {}
        for operator in operators:
            with errors.about(str(operator.name)):
                self._tags[operator.name] = self._tag(operator)

    def tag(self, operator: Operator) -> str | None:
        """The tag of an operator, which says so itself only where it is right."""
        return self._tags.get(operator.name)

    def _tag(self, operator: Operator) -> str | None:
        if operator.is_inplace_view:
            return None  # by the tag torch takes its result to have the sizes of its argument
        replaced = self._functional.get(_call(operator.func)) if operator.func.mutated else None
        if replaced is None:
            return form_tag(operator.func)
        if "out" in operator.tags:
            other = replaced.name
            message = f"by the tag 'out' Inductor calls it for '{other}', with mixed-up arguments"
            hint = f"leave the tag out: torch.compile then traces '{other}' in place of it"
            self._errors.add(operator.at("tags"), message, hint)
        form = form_tag(operator.func)
        return None if form == "out" else form


def _call(schema: Schema) -> tuple[object, ...]:
    """What torch compares of a functional operator and an out= form, and how many results.

    Other defaults would keep the two apart; here they do not, since numbers may be written in
    several ways.
    """
    kept = [a for a in schema.arguments if not a.type.is_write]
    arguments = tuple((a.name, _compared(str(a.type.bare()))) for a in kept)
    return schema.name.base, arguments, len(schema.mutated) or len(schema.returns)


def _compared(type_: str) -> str:
    for text, spellings in _ALIKE.items():
        type_ = spellings.sub(text, type_)
    return type_
