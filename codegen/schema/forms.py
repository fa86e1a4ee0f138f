# SPDX-License-Identifier: BSD-3-Clause
"""Schemas of the forms that `autogen:` declares, derived from the entry that declares them.

The rules are torchgen's (native_function_generation.py), so that an entry moved upstream declares
the same operators there.
"""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterable
from dataclasses import replace

from .schema import Alias, Argument, OperatorName, Return, Schema, Type

# Arguments that torch mixes up with its own: where it traces an operator that writes, it passes all
# by name, to functions with parameters of these names and beside arguments like `_x_alias`.
_MIXED_UP_BY_TORCH = re.compile("mode|dispatch_key|_.*")


def functional_signature(schema: Schema) -> str:
    """What the functional, in-place and out= forms of an operator have in common."""
    base = _functional_base(schema.name)
    kept = (a for a in schema.arguments if not a.is_out)
    arguments = ", ".join(f"{a.type.bare()} {a.name}" for a in kept)
    returns = ", ".join(str(r.type.bare()) for r in schema.returns)
    return f"{base}({arguments}) -> {returns if len(schema.returns) == 1 else f'({returns})'}"


def _functional_base(name: OperatorName) -> str:
    """The name that all forms of an operator have: `mul` of `mul_`, `__and__` of `__iand__`."""
    base = name.base
    if not name.is_inplace:
        return base
    return f"__{base[3:]}" if base.startswith("__") else base[:-1]


def form_tag(schema: Schema) -> str | None:
    """The tag of an operator that only writes results to keyword arguments (`out`), or only its
    first argument, which it returns (`inplace`)."""
    written, returned = [a.type for a in schema.mutated], [r.type for r in schema.returns]
    if not written or any(type_.name != "Tensor" for type_ in written):
        return None
    if all(a.is_out for a in schema.mutated):
        return "out" if not returned or _aliases(returned) == _aliases(written) else None
    first = schema.arguments[0]
    is_first = [*schema.mutated] == [first] and not first.is_kwarg_only
    is_inplace = is_first and schema.name.is_inplace and _aliases(returned) == _aliases(written)
    return "inplace" if is_inplace else None


def _aliases(types: list[Type]) -> list[tuple[str, ...] | None]:
    return [type_.alias.before if type_.alias else None for type_ in types]


# What the name of a functional form, and of a copy of a view, may have behind the operator's.
_ENDINGS = ("", "_functional", "_copy")
_TENSOR_OPTIONS = ("dtype", "layout", "device", "pin_memory")


def derive_schema(schema: Schema, name: OperatorName) -> Schema | str:
    """The schema of the form called `name` of an operator, or why it has none."""
    own, asked = _functional_base(schema.name), _functional_base(name)
    if not any(a.removeprefix(b) in _ENDINGS for a, b in ((asked, own), (own, asked))):
        return f"'{name}' is called after another operator, '{asked}'"
    if schema.is_out:
        return _functional(schema, name)
    if name.overload == "out" or name.overload.endswith("_out"):
        return _out(schema, name)
    if name.is_inplace and not schema.mutated:
        return _inplace(schema, name)
    if not schema.mutated and not schema.is_view:
        return (
            f"'{name}' is neither an out= form (its overload does not end in 'out'), an in-place "
            "one (its name does not end in '_') nor functional"
        )
    return _functional(schema, name)


def _functional(schema: Schema, name: OperatorName) -> Schema:
    """Mutated arguments become plain ones, and results where they are not returned already."""
    returns = [Return(r.type.bare(), r.name) for r in schema.returns]
    returned = {r.type.alias_set for r in schema.returns}
    out = [a for a in schema.arguments if a.is_out]
    positional = [a for a in schema.mutated if not a.is_out]
    first = [a for a in positional if a.name == "self"]
    for arg in [*first, *out, *(a for a in positional if a.name != "self")]:
        if arg.type.alias_set not in returned:
            returns.append(Return(arg.type.bare(), f"{arg.name}_out"))
    arguments = [
        replace(a, type=a.type.bare())
        for a in _without_tensor_options(schema.arguments)
        if a not in out
    ]
    return Schema(name, tuple(arguments), tuple(returns))


def copied_form(schema: Schema, saves_written: bool) -> Schema | None:
    """The form that runs an operator on copies of what it writes to and returns them, which traced
    calls become where no other form is and torch does not by itself; None where it does.

    saves_written: backward reads what an argument that is not returned holds after the call.

    Its results are the operator's, then what is written to and not returned, `self` first.
    """
    if not schema.mutated or schema.is_view:
        return None
    if any(t.alias and t.alias.is_shorthand for r in schema.returns for t in r.type.walk()):
        return None  # which argument it is is not said
    returned = any(r.type.is_write for r in schema.returns)
    is_missing = any(a.type.name == "Optional" for a in schema.mutated) and schema.returns
    is_other = returned or is_missing or any(str(r.type) != "Tensor" for r in schema.returns)
    is_mixed_up = any(_MIXED_UP_BY_TORCH.fullmatch(a.name) for a in schema.arguments)
    if not (is_other or is_mixed_up or saves_written):
        return None
    returns = [Return(r.type.bare(), r.name) for r in schema.returns]
    for arg in sorted(schema.mutated, key=lambda a: a.name != "self"):
        if not any(arg.is_returned_as(r) for r in schema.returns):
            is_optional = arg.type.plain == "Tensor?"
            type_ = Type("Tensor") if is_optional else arg.type.bare()
            returns.append(Return(type_, f"{arg.name}_out"))
    base = functional_signature(schema).partition("(")[0]
    overload = f"{schema.name.overload}_functional" if schema.name.overload else "functional"
    arguments = tuple(replace(a, type=a.type.bare()) for a in schema.arguments)
    return Schema(OperatorName(base, overload), arguments, tuple(returns))


def viewed(schema: Schema) -> Argument | None:
    """The tensor that an operator's only result is a view of, or a list of views; None where it
    returns none, or in another way.

    Of a view of a keyword-only argument torch's Python does not know what it is a view of.
    """
    if len(schema.returns) != 1 or schema.mutated or not schema.is_view:
        return None
    result = schema.returns[0]
    sources = [a for a in schema.arguments if a.is_returned_as(result)]
    is_plain = len(sources) == 1 and sources[0].type.name == "Tensor"
    is_plain = is_plain and not sources[0].is_kwarg_only
    return sources[0] if is_plain and result.type.plain in ("Tensor", "Tensor[]") else None


def scatter_form(schema: Schema) -> Schema | None:
    """The form that gives the tensor of which an operator returns a view, with other values where
    the view is: they stand behind it, and the number of the view in a list of them at the end."""
    base = viewed(schema)
    if base is None:
        return None
    taken = {a.name for a in schema.arguments}
    arguments = [replace(a, type=a.type.bare()) for a in schema.arguments]
    source = Argument(Type("Tensor"), _free("src", taken))
    arguments.insert(arguments.index(replace(base, type=base.type.bare())) + 1, source)
    if schema.returns[0].type.name == "List":
        at_end = arguments[-1].is_kwarg_only
        arguments.append(Argument(Type("int"), _free("number", taken), "0", at_end))
    name = OperatorName(f"{schema.name.base}_scatter", schema.name.overload)
    return Schema(name, tuple(arguments), (Return(Type("Tensor")),))


def copy_form(schema: Schema) -> Schema | None:
    """The form that copies the view that an operator returns, as upstream calls such operators."""
    if viewed(schema) is None:
        return None
    return _functional(schema, OperatorName(f"{schema.name.base}_copy", schema.name.overload))


def _free(name: str, taken: set[str]) -> str:
    """The name, with lines behind it where an argument has it."""
    while name in taken:
        name += "_"
    return name


def _out(schema: Schema, name: OperatorName) -> Schema | str:
    """Results are written to keyword arguments `out`, or `out0`, `out1`, ..."""
    if schema.name.is_inplace:
        if not (schema.arguments and schema.arguments[0].type.is_write):
            return (
                f"'{schema.name}' is called like an in-place form and writes to no first argument"
            )
        own = schema.arguments[0]
        rest = [replace(own, type=own.type.bare()), *schema.arguments[1:]]
        out = Argument(own.type, "out", None, is_kwarg_only=True)
        return Schema(name, (*rest, out), schema.returns)
    tensors = [r for r in schema.returns if r.type.is_tensor_like]
    if not tensors:
        return f"'{schema.name}' returns no tensor that '{name}' could be written to"
    is_mutable = bool(schema.mutated)
    arguments = _without_tensor_options(schema.arguments)
    if not is_mutable:
        arguments = [replace(a, type=a.type.bare()) for a in arguments]
    used = {s for a in schema.arguments for t in a.type.walk() if t.alias for s in t.alias.before}
    endless = itertools.chain(string.ascii_lowercase, (f"a{i}" for i in itertools.count()))
    letters = (letter for letter in endless if letter not in used)
    outs, returns = [], []
    only_tensors = all(r.type.bare() == Type("Tensor") for r in schema.returns)
    for index, result in enumerate(schema.returns):
        if not result.type.is_tensor_like:
            returns.append(result)
            continue
        type_ = _written(result.type, next(letters))
        label = "out" if len(schema.returns) == 1 else f"out{index}"
        outs.append(Argument(type_, label, None, is_kwarg_only=True))
        if only_tensors:
            returns.append(Return(type_))
    return Schema(name, (*arguments, *outs), tuple(returns))


def _inplace(schema: Schema, name: OperatorName) -> Schema | str:
    """The result is written to the first argument."""
    first = schema.arguments[0] if schema.arguments else None
    if first is None or str(first.type) != "Tensor" or first.is_kwarg_only:
        return f"the first argument of '{schema.name}' is no Tensor that '{name}' could write to"
    if [str(r.type) for r in schema.returns] != ["Tensor"]:
        return f"'{schema.name}' returns something else than a Tensor, which '{name}' would write"
    written = _written(first.type, "a")
    rest = [replace(first, type=written), *schema.arguments[1:]]
    found = Schema(name, tuple(rest), (Return(written),))
    if functional_signature(found) != functional_signature(schema):
        return f"the in-place form of '{schema.name.base}' has another name than '{name.base}'"
    return found


def _written(type_: Type, letter: str) -> Type:
    """The type with `(letter!)` on its tensor: `Tensor(a!)`, `Tensor(a!)[]`."""
    if type_.name == "Tensor":
        return Type("Tensor", alias=Alias((letter,), is_write=True))
    return Type(type_.name, tuple(_written(arg, letter) for arg in type_.args), type_.size)


def _without_tensor_options(arguments: Iterable[Argument]) -> list[Argument]:
    """The arguments without dtype, layout, device and pin_memory where all four stand together."""
    arguments = list(arguments)
    names = [a.name for a in arguments]
    for start in range(len(names) - 3):
        options = arguments[start : start + 4]
        if tuple(names[start : start + 4]) == _TENSOR_OPTIONS and options[0].is_kwarg_only:
            return arguments[:start] + arguments[start + 4 :]
    return arguments
