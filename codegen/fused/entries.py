# SPDX-License-Identifier: BSD-3-Clause
"""The expressions of entries with `pointwise:` or `rows:`, read and checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import Errors, Location
from ..schema.schema import Argument, Schema
from ..spec.model import DtypeRule, Expression, Operator
from .branches import unguarded, with_known_apart
from .dtypes import Dtype, dtype_of, needed_for_all
from .extents import Extent, extents
from .floats import complex_of
from .functions import Function, computed, functions, joins, makes_result, size_of
from .reading import KINDS, Mistake, names_of_rows, read
from .rows import with_guarded_elements
from .tree import LENGTH, Call, Name, OfRow, Slice, Tree, in_order, names, parts, text

MASK = "output_mask"  # the argument that says which of several results are wanted
_RESERVED = {
    MASK: "which gradients are wanted",
    "grad": "the gradient of the result",
    "grads": "the gradients of the results",
    "result": "the result",
}
# Keys that say what the expression says.
_SAID = (
    "dispatch", "meta", "structured_inherits", "precomputed", "ufunc_inner_loop", "layout", "vmap",
    "allocates", "manual_kernel_registration",
)  # fmt: skip


@dataclass(frozen=True)
class Expressions:
    """What an operator computes of the elements of its arguments."""

    operator: Operator
    results: tuple[Tree, ...]
    kinds: dict[str, str]  # of the arguments that an expression may name
    dtypes: tuple[Dtype, ...]  # of the results
    common: Dtype  # in which everything is computed
    of_rows: frozenset[str] | None = None  # what rows have one number of; None: no rows
    mask: str | None = None  # the argument that says which results are wanted
    is_derivative: bool = False  # of floats and complex numbers, and of tensors that are
    floats: tuple[str, ...] | None = None  # of `dtypes:`, in which it is computed; None: in all
    complex: tuple[str, ...] = ()  # and the complex dtypes of it


def key_of(operator: Operator) -> str:
    return "pointwise" if operator.pointwise else "rows"


def lines_of(operator: Operator) -> tuple[Expression, ...]:
    return operator.pointwise or operator.rows


def kinds_of(func: Schema) -> dict[str, str]:
    """What the arguments of a schema are in an expression."""
    found = {}
    for argument in func.arguments:
        plain = argument.type.bare().plain
        found[argument.name] = {"Tensor": "tensor", "Tensor?": "tensor?"}.get(plain, plain)
    return found


def mask_of(func: Schema) -> Argument | None:
    """The argument that says which of several results are wanted."""
    found = func.argument(MASK)
    return found if found is not None and str(found.type) == f"bool[{len(func.returns)}]" else None


def expressions_of(
    operator: Operator, errors: Errors, rules: tuple[DtypeRule, ...] | None = None
) -> Expressions | None:
    """The expressions of an entry; None, and noted, where something is wrong with them. rules: the
    `dtypes:` of its kernels, where those are of another entry."""
    before = errors.count
    rules = operator.dtypes if rules is None else rules
    kinds = kinds_of(operator.func)
    mask = mask_of(operator.func)
    _check_entry(operator, kinds, mask, errors)
    of_rows = _of_rows(operator, kinds, errors) if operator.rows else None
    local = _local(operator, kinds, of_rows, errors)
    _check_names(operator, errors)
    results = [_read(line, kinds, local, of_rows, errors) for line in lines_of(operator)]
    if errors.count > before or any(tree is None for tree in results):
        return None
    trees = tuple(tree for tree in results if tree is not None)
    _check_unused(operator, trees, mask, errors)
    for line, tree in zip(lines_of(operator), trees):
        _check_missing(operator, line, unguarded(tree, kinds), errors)
    if operator.rows:
        _check_rows(operator, trees, kinds, errors)
    if complex_of(rules, kinds):
        _check_complex(operator, trees, kinds, errors)
    if errors.count > before:
        return None
    return made(operator, trees, rules, mask.name if mask else None, bool(operator.rows))


def _check_entry(
    operator: Operator, kinds: Mapping[str, str], mask: Argument | None, errors: Errors
) -> None:
    """What an entry with expressions says besides."""
    func, key = operator.func, key_of(operator)
    place = operator.at(key)
    if operator.pointwise and operator.rows:
        errors.add(operator.at("rows"), "'pointwise' is of elements, and 'rows' of rows: say one")
    for other in _SAID:
        if other in operator.locations:
            errors.add(operator.at(other), f"'{key}' says what '{other}' would")
    if func.mutated:
        errors.add(place, f"'{key}' stands on the functional entry, which writes to no argument")
    if any(str(result.type) != "Tensor" for result in func.returns) or not func.returns:
        errors.add(place, f"what '{key}' computes are results of type Tensor")
    elif len(func.returns) != len(lines_of(operator)):
        count, wanted = len(lines_of(operator)), len(func.returns)
        results = f"{wanted} result{'s' * (wanted > 1)}"
        message = (
            f"'{operator.name}' has {results}, and here {'is' if count == 1 else 'are'} {count}"
        )
        errors.add(place, message)
    if "tensor" not in kinds.values():
        errors.add(place, f"'{key}' needs an argument of type Tensor")
    if operator.differentiable:
        _check_reserved(operator, mask, errors)
    for argument in func.arguments:
        if kinds[argument.name] not in KINDS and argument is not mask:
            message = f"an expression cannot use the '{argument.type}' {argument.name}"
            errors.add(operator.location, message)


def _check_reserved(operator: Operator, mask: Argument | None, errors: Errors) -> None:
    """Names by which the formulas that follow from expressions call something else."""
    arguments = [argument.name for argument in operator.func.arguments if argument is not mask]
    results = [result.name for result in operator.func.returns if result.name]
    for name in arguments:
        if name in _RESERVED:
            message = f"'{name}' is {_RESERVED[name]} in formulas, and an argument here"
            errors.add(operator.location, message, "give the argument another name")
    for index, name in enumerate(results):
        if name in arguments or name in results[:index]:
            what = "an argument" if name in arguments else "another result"
            message = f"the result '{name}' has the name of {what}"
            errors.add(operator.location, message, "give the result another name")


def _of_rows(operator: Operator, kinds: dict[str, str], errors: Errors) -> frozenset[str]:
    """The arguments that have one number for each row; the length of rows gets a name."""
    if LENGTH in kinds:
        message = f"'{LENGTH}' is the length of rows, and an argument here"
        errors.add(operator.at("rows"), message, "give the argument another name")
    kinds[LENGTH] = "int"
    texts = (line.text for line in (*(line for _, line in operator.let), *operator.rows))
    found = {name for text in texts for name in names_of_rows(text)}
    return frozenset(name for name in found if kinds.get(name, "").startswith("tensor"))


def _check_rows(
    operator: Operator, trees: tuple[Tree, ...], kinds: Mapping[str, str], errors: Errors
) -> None:
    known = extents(kinds, *trees)
    for line, tree in zip(operator.rows, trees):
        if known[tree] is Extent.CALL:
            errors.add(line.at(0), "a result that is one number for all rows")
        whole = computed(tree)
        is_joined = joins(whole) and size_of(tree) is None
        inner = [one for part in in_order(whole) for one in parts(part)]
        if any(map(makes_result, inner if is_joined else (*inner, whole))):
            message = "'cat', 'to' and 'sum_to_size' make a whole result: nothing is computed of it"
            errors.add(line.at(0), message)
    rows = [part for part in in_order(*trees) if isinstance(part, (Name, Slice))]
    if not any(kinds[part.name] == "tensor" for part in rows):
        errors.add(operator.at("rows"), "no argument of type Tensor stands for rows")
    counts: dict[str, int] = {}
    for row in rows:
        count = row.count if isinstance(row, Slice) else 1
        if counts.setdefault(row.name, count) != count:
            message = f"'{row.name}' has rows of one length here: its slices are equal parts"
            errors.add(operator.at("rows"), message, "pass it as two arguments")


def _check_complex(
    operator: Operator, trees: tuple[Tree, ...], kinds: Mapping[str, str], errors: Errors
) -> None:
    """What is computed of complex numbers, where `dtypes:` has some."""
    if operator.rows:
        hint = "leave complex dtypes out of 'dtypes'"
        errors.add(operator.at("rows"), "rows are of real numbers, not of complex ones", hint)
        return
    known = functions()
    for part in in_order(*trees):
        is_of_reals = all(kinds[name] in ("int", "float", "bool") for name in names(part))
        if not isinstance(part, Call) or is_of_reals:  # which are computed once a call
            continue
        function, words = known[part.function], text(part, 60)
        if not function.takes_complex:
            which = ", ".join(
                f.name
                for f in known.values()
                if f.takes_complex and f.is_called and f.kind != "part"
            )
            message = f"'{words}' is not computed of complex numbers, which 'dtypes' has"
            hint = f"the functions of these are {which}"
            errors.add(_place_of(operator, function), message, hint)
            return
        # Of an exponent that is a tensor the gradient would need an order of complex numbers.
        if function.name == "**":
            exponent = part.arguments[1]
            if any(kinds[name].startswith("tensor") for name in names(exponent)):
                message = f"'{words}': a complex number has powers by numbers, and by no tensor"
                errors.add(_place_of(operator, function), message, "write 'exp(y * log(x))'")
                return


def _place_of(operator: Operator, function: Function) -> Location:
    """Where an expression calls a function first."""
    called = rf"\b{re.escape(function.name)}\("
    if not function.is_called:
        called = re.escape(function.name.removesuffix("x"))  # '-x' of a number
    for line in (*(line for _, line in operator.let), *lines_of(operator)):
        found = re.search(called, line.text)
        if found:
            return line.at(found.start())
    return operator.at(key_of(operator))


def made(
    operator: Operator,
    trees: tuple[Tree, ...],
    rules: tuple[DtypeRule, ...],
    mask: str | None,
    has_rows: bool = False,
) -> Expressions:
    """The expressions of an operator whose arguments they fit; rules: the `dtypes:` of these."""
    kinds = kinds_of(operator.func) | ({LENGTH: "int"} if has_rows else {})
    trees = with_known_apart(trees, kinds)
    dtypes = tuple(dtype_of(tree, kinds) for tree in trees)
    common = needed_for_all(trees, kinds)
    trees = with_guarded_elements(trees, kinds) if has_rows else trees
    named = frozenset(part.name for part in in_order(*trees) if isinstance(part, OfRow))
    return Expressions(
        operator, trees, kinds, dtypes, common, named if has_rows else None, mask,
        complex=() if has_rows else complex_of(rules, kinds),
    )  # fmt: skip


def _local(
    operator: Operator, kinds: Mapping[str, str], of_rows: frozenset[str] | None, errors: Errors
) -> dict[str, Tree]:
    """The values of the names of `let:`."""
    found: dict[str, Tree] = {}
    for name, line in operator.let:
        if name.text == LENGTH and of_rows is not None:
            errors.add(name.location, f"'{LENGTH}' is the length of rows")
        elif name.text in kinds:
            errors.add(name.location, f"'{name.text}' is an argument")
        elif not name.text.isidentifier() or not name.text.isascii():
            errors.add(name.location, f"'{name.text}' is no name")
        tree = _read(line, kinds, found, of_rows, errors)
        if tree is not None:
            found[name.text] = tree
    return found


def _check_names(operator: Operator, errors: Errors) -> None:
    """Each name of `let:` stands in what follows it."""
    lines = [line.text for _, line in operator.let]
    for index, (name, _) in enumerate(operator.let):
        texts = [*lines[index + 1 :], *(line.text for line in lines_of(operator))]
        if not any(re.search(rf"\b{re.escape(name.text)}\b", text) for text in texts):
            errors.add(name.location, f"no expression uses '{name.text}'")


def _read(
    line: Expression,
    kinds: Mapping[str, str],
    local: Mapping[str, Tree],
    of_rows: frozenset[str] | None,
    errors: Errors,
) -> Tree | None:
    try:
        return read(line.text, kinds, local, of_rows)
    except Mistake as mistake:
        is_cut = line.text.count("(") > line.text.count(")")
        hint = "a ')' is missing, or a comma between [ and ] ended the expression: quote it"
        errors.add(line.at(mistake.offset), mistake.message, mistake.hint or hint * is_cut or None)
        return None


def _check_missing(
    operator: Operator, line: Expression, needed: Iterable[str], errors: Errors
) -> None:
    """What may be missing is not asked for where it is."""
    lines = [line, *(local for _, local in operator.let)]
    for name in needed:
        uses = ((own, re.search(rf"\b{name}\b(?! +is\b)", own.text)) for own in lines)
        own, use = next(((own, use) for own, use in uses if use), (line, None))
        hint = f"write what stands for it, '1 if {name} is None else {name}'"
        errors.add(own.at(use.start() if use else 0), f"'{name}' may be missing here", hint)


def _check_unused(
    operator: Operator, trees: tuple[Tree, ...], mask: Argument | None, errors: Errors
) -> None:
    used = set(names(*trees))
    for argument in operator.func.arguments:
        if argument.name not in used and argument is not mask:
            message = f"no expression uses the argument '{argument.name}'"
            errors.add(operator.at(key_of(operator)), message)
