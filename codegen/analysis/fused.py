# SPDX-License-Identifier: BSD-3-Clause
"""What is generated for the expressions of an operator."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from ..cpp import names as cpp_names
from ..fused.branches import is_known
from ..fused.entries import Expressions
from ..fused.extents import extents
from ..fused.functions import functions, joins_conditions, pieces
from ..fused.rows import of_primitives
from ..fused.tree import (
    LENGTH,
    Call,
    Choice,
    IsMissing,
    Name,
    Number,
    OfRow,
    Slice,
    Tree,
    exchanged,
    in_order,
    names,
    parts,
)
from ..plan.fused import FusedFunction, FusedInput, FusedPlan, Place, Runs, Shared, Step
from ..plan.kernels import KernelPlan, StructuredPlan
from .fused_dtypes import (
    comparisons_of,
    has_complex_number,
    is_of_integers,
    real_parts_of,
    types_of,
)
from .fused_rows import rows_plan

_RUNS = {
    "Meta": Runs.META,
    "CompositeImplicitAutograd": Runs.COMPOSITE,
    "CompositeExplicitAutograd": Runs.COMPOSITE,
    "Autograd": Runs.AUTOGRAD,
}

_MISSING = 1  # what nothing asks for: by which integers may be divided


def fused_plan(
    expressions: Expressions,
    kernels: Iterable[KernelPlan],
    structured: StructuredPlan | None,
    form: str,
) -> FusedPlan:
    """The plan of one form's expressions; form: the name of the functional one."""
    label = cpp_names.parameter_name
    kinds, has_rows = expressions.kinds, expressions.of_rows is not None
    extent_of = extents(kinds, *expressions.results)
    read = frozenset(part for part in extent_of if isinstance(part, (Name, OfRow, Slice)))
    places = tuple(_places(expressions.results))
    whole = tuple(expressions.results[place.result] for place in places)
    expressions = _in_pieces(expressions, places)
    least_and_largest = _range(expressions)
    inputs, expressions = _with_defaults(tuple(_inputs(expressions, read)), expressions)
    shared, conditions = _shared(expressions)
    exponents = _exponents(expressions)
    known = _known(expressions, conditions)
    before = {one.tree for one in (*shared, *conditions)} | known
    return FusedPlan(
        struct=cpp_names.expression_name(form),
        inputs=inputs,
        scalars=tuple((name, label(name)) for name in _numbers(expressions)),
        numbers=shared,
        conditions=conditions,
        results=expressions.results,
        places=places,
        steps=tuple(_steps(expressions, shared, conditions)),
        known=known,
        dtypes=expressions.dtypes,
        common=expressions.common,
        compared=tuple(comparisons_of(expressions)),
        range=least_and_largest,
        exponents=tuple(i for i, number in enumerate(shared) if number.tree in exponents),
        has_negative_power=any(isinstance(e, Number) and e.value < 0 for e in exponents),
        computes_numbers=_computes_numbers(expressions, before),
        types=types_of(expressions),
        real_parts=real_parts_of(expressions, shared, before),
        mask=label(expressions.mask) if expressions.mask else None,
        functions=tuple(_functions(kernels, structured)),
        may_be_numbers=frozenset(_may_be_numbers(expressions)),
        row=next((i for i, one in enumerate(inputs) if _is_row(one)), None),
        rows=rows_plan(expressions.results, whole, kinds, read, before) if has_rows else None,
    )


def _inputs(expressions: Expressions, read: frozenset[Tree]) -> Iterator[FusedInput]:
    """The tensors of a call, and where slices of one are read, each of these."""
    label = cpp_names.parameter_name
    slices = sorted((part for part in read if isinstance(part, Slice)), key=lambda part: part.index)
    for name, kind in expressions.kinds.items():
        if kind in ("tensor", "tensor?"):
            is_of_row = name in (expressions.of_rows or ())
            whole = OfRow(name) if is_of_row else Name(name)
            for tree in [part for part in slices if part.name == name] or [whole]:
                yield FusedInput(name, tree, label(name), kind == "tensor?", _MISSING)


def _with_defaults(
    inputs: tuple[FusedInput, ...], expressions: Expressions
) -> tuple[tuple[FusedInput, ...], Expressions]:
    """Inputs that stand for a number where they are missing, as in `1 if x is None else x`: so that
    no element asks for that."""
    found: dict[Tree, set[Number]] = {}
    choices: dict[Tree, Tree] = {}
    for part in in_order(*expressions.results):
        is_given = isinstance(part, Choice) and isinstance(part.other, (Name, OfRow, Slice))
        if is_given and isinstance(part.then, Number):
            is_default = IsMissing(part.other.name) == part.condition
            if is_default and type(part.then.value) is not bool and abs(part.then.value) < 2**53:
                found.setdefault(part.other, set()).add(part.then)
                choices[part] = part.other
    defaults = {tree: one for tree, (one, *more) in found.items() if not more}
    chosen = {part: tree for part, tree in choices.items() if tree in defaults}
    values = {tree: number.value for tree, number in defaults.items()}
    return (
        tuple(dataclasses.replace(i, default=values.get(i.tree, i.default)) for i in inputs),
        dataclasses.replace(
            expressions, results=tuple(exchanged(tree, chosen) for tree in expressions.results)
        ),
    )


def _may_be_numbers(expressions: Expressions) -> Iterator[Tree]:
    """What is reduced, and may be a number: by a missing tensor, or a choice once a call."""
    kinds = expressions.kinds
    for part in in_order(*expressions.results):
        if isinstance(part, Call) and functions()[part.function].is_reduction:
            row = part.arguments[0]
            is_optional = any(kinds[name] == "tensor?" for name in names(row))
            choices = (one for one in in_order(row) if isinstance(one, Choice))
            if is_optional or any(is_known(one.condition, kinds) for one in choices):
                yield row


def _is_row(one: FusedInput) -> bool:
    return not one.is_optional and not isinstance(one.tree, OfRow)


def _numbers(expressions: Expressions) -> Iterator[str]:
    """The arguments that are numbers."""
    length = LENGTH if expressions.of_rows is not None else None
    for name, kind in expressions.kinds.items():
        if kind not in ("tensor", "tensor?") and name not in (expressions.mask, length):
            yield name


def _exponents(expressions: Expressions) -> set[Tree]:
    calls = [part for part in in_order(*expressions.results) if isinstance(part, Call)]
    return {call.arguments[1] for call in calls if call.function == "**"}


def _computes_numbers(expressions: Expressions, before: set[Tree]) -> bool:
    return any(
        not (dtype.tensors or dtype.is_bool or dtype.cast) and _is_computed(tree, before)
        for tree, dtype in zip(expressions.results, expressions.dtypes, strict=True)
    )


def _is_computed(tree: Tree, before: set[Tree]) -> bool:
    """Whether elements are computed, and not only chosen of what is computed before them."""
    if isinstance(tree, Choice) and tree not in before:
        return _is_computed(tree.then, before) or _is_computed(tree.other, before)
    return isinstance(tree, Call) and tree not in before


def _in_pieces(expressions: Expressions, places: tuple[Place, ...]) -> Expressions:
    """The expressions of the rows that results consist of."""
    found = (piece for tree in expressions.results for piece in pieces(tree))
    return dataclasses.replace(
        expressions,
        results=tuple(of_primitives(tree, expressions.kinds) for tree in found),
        dtypes=tuple(expressions.dtypes[place.result] for place in places),
    )


def _places(results: Iterable[Tree]) -> Iterator[Place]:
    for result, tree in enumerate(results):
        count = len(pieces(tree))
        yield from (Place(result, index, count) for index in range(count))


def _shared(expressions: Expressions) -> tuple[tuple[Shared, ...], tuple[Shared, ...]]:
    """The largest parts of the expressions that are made of numbers alone: numbers, and what
    stands as a condition."""
    found: dict[bool, dict[Tree, Shared]] = {False: {}, True: {}}
    length = LENGTH if expressions.of_rows is not None else None
    seen: set[tuple[Tree, bool]] = set()
    waiting = [(tree, False) for tree in reversed(expressions.results)]
    while waiting:
        part, as_condition = waiting.pop()
        if (part, as_condition) in seen or isinstance(part, Number):
            continue
        seen.add((part, as_condition))
        if _is_of_numbers(part, expressions.kinds, length):
            is_integer = is_of_integers(part, expressions.kinds)
            is_complex = has_complex_number(part, expressions)
            found[as_condition].setdefault(part, Shared(part, is_integer, is_complex))
        else:
            waiting += [(inner, is_one) for inner, is_one in _with_conditions(part)][::-1]
    return tuple(found[False].values()), tuple(found[True].values())


def _with_conditions(part: Tree) -> Iterator[tuple[Tree, bool]]:
    """What an expression is made of, and whether that stands as a condition."""
    joins = isinstance(part, Call) and joins_conditions(part)
    for index, inner in enumerate(parts(part)):
        yield inner, joins or (isinstance(part, Choice) and index == 0)


def _is_of_numbers(part: Tree, kinds: Mapping[str, str], length: str | None) -> bool:
    """Whether it is the same for all elements, and known before any of them."""
    inner = in_order(part)
    is_given = not any(isinstance(one, IsMissing) for one in inner)
    return is_given and not any(n == length or kinds[n].startswith("tensor") for n in names(part))


def _known(expressions: Expressions, conditions: tuple[Shared, ...]) -> frozenset[Tree]:
    """Conditions on what is given, on numbers alone, and what joins such ones."""
    found: set[Tree] = {condition.tree for condition in conditions}
    for part in in_order(*expressions.results):
        is_written = isinstance(part, Number) and isinstance(part.value, bool)
        joins = isinstance(part, Call) and joins_conditions(part) and found.issuperset(parts(part))
        if is_written or joins or isinstance(part, IsMissing):
            found.add(part)
    return frozenset(found)


def _steps(
    expressions: Expressions, shared: tuple[Shared, ...], conditions: tuple[Shared, ...]
) -> Iterator[Step]:
    results = expressions.results
    before = {one.tree for one in (*shared, *conditions)} | _known(expressions, conditions)
    outside: set[Tree] = set()  # of what is computed before
    waiting = list(results)
    while waiting:
        part = waiting.pop()
        if part not in outside and part not in before:
            outside.add(part)
            waiting += parts(part)
    users: dict[Tree, set[int]] = {}
    for index, result in enumerate(results):
        for part in in_order(result):
            users.setdefault(part, set()).add(index)
    for part in in_order(*results):
        if part in outside and isinstance(part, (Call, Choice)):
            is_own = expressions.mask is not None and len(users[part]) == 1
            yield Step(part, min(users[part]) if is_own else None)


def _range(expressions: Expressions) -> tuple[int, int]:
    numbers = (part for part in in_order(*expressions.results) if isinstance(part, Number))
    whole = [number.value for number in numbers if type(number.value) is int]
    return min(whole, default=0), max(whole, default=0)


def _functions(
    kernels: Iterable[KernelPlan], structured: StructuredPlan | None
) -> Iterator[FusedFunction]:
    if structured is not None:
        meta = Runs.STRUCTURED_META
        yield FusedFunction(structured.meta_class, "Meta", meta, structured.meta)
        for kernel in structured.kernels:
            runs = Runs.STRUCTURED_LOOP
            yield FusedFunction(kernel.name, kernel.keys[0], runs, structured.impl)
        return
    of_name = {str(kernel.function): kernel for kernel in reversed(list(kernels))}
    for kernel in reversed(of_name.values()):  # one function may stand for several keys
        if kernel.is_declared and kernel.signature is not None:
            runs = _RUNS.get(kernel.key, Runs.LOOP)
            yield FusedFunction(str(kernel.function), kernel.key, runs, kernel.signature)
