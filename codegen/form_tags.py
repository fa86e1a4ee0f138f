# SPDX-License-Identifier: BSD-3-Clause
"""The tags that operators get from their forms, `inplace` and `out`.

Both tell torch.compile what an operator that it functionalizes itself does. Inductor reads `out` as
more: it calls such an operator in place of the functional one whose arguments it has (torch's
`to_out_variant`), with the tensors before all other arguments and the keyword arguments twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .errors import Errors
from .model import Operator
from .schema import Schema
from .variants import form_tag

# What two spellings of a type that torch takes for one may differ in.
_SPELLING = re.compile(r"(?<=\[)\d+(?=\])|Sym(?=Int)")


class FormTags:
    """The tags of a library's operators; `out` only where no functional operator has that form."""

    def __init__(self, operators: Iterable[Operator], errors: Errors) -> None:
        self._errors = errors
        self._functional = {_call(op.func): op for op in operators if not op.func.mutated}

    def tag(self, operator: Operator) -> str | None:
        """The tag of an operator, which says so itself only where it is right."""
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

    Its types have no sizes of lists and no SymInt. Other defaults would keep the two apart; here
    they do not, since numbers may be written in several ways.
    """
    kept = [a for a in schema.arguments if not a.type.is_write]
    arguments = tuple((a.name, _SPELLING.sub("", str(a.type.bare())).lower()) for a in kept)
    return schema.name.base, arguments, len(schema.mutated) or len(schema.returns)
