# SPDX-License-Identifier: BSD-3-Clause
"""Declarations of shared memory, as references to what the machine keeps for a block.

What replaces a declaration stands in its first line. A `case` or `goto` may jump past a variable,
but past no reference: then it stands ahead of the statement that jumps.
"""

from __future__ import annotations

from collections.abc import Collection

from .cuda_captures import Local, capture, scope_of_local
from .cuda_declarations import Declaration, Variable, read_declaration
from .cuda_scopes import is_in_unnamed_namespace, place_before_jump, scope_of
from .cuda_tokens import (
    CLOSING,
    NAMESPACE,
    Token,
    TranslationError,
    behind,
    matching,
    opener,
    previous,
    text_at,
)

_DROPPED = frozenset(("extern", "static", "inline", "__shared__", "__device__"))
_ALIGNMENTS = ("alignas", "__align__", "__attribute__")
# Between which a name is an expression of its own, and no declaration.
_AHEAD_OF_EXPRESSIONS = frozenset(("(", ",", "=", "{", ")", "?", ":", "return"))
_BEHIND_EXPRESSIONS = frozenset((")", ",", ";", "}", "?", ":"))


def rewrite_shared(tokens: list[Token], path: str, known: Collection[str] = ()) -> frozenset[str]:
    """Rewrite every declaration of a file; `path` for messages, `known` the arrays that the files
    which it includes declare outside of functions. Returns the names of these and its own.

    Raises TranslationError for what is none, and for what has no place on the host.
    """
    arrays = {name: 0 for name in known}
    variables: list[Local] = []
    for index, token in enumerate(tokens):
        if token.text != "__shared__" or token.part < 0:
            continue
        first, end = _first_of_declaration(tokens, index), _end_of_declaration(tokens, index)
        what = f"{path}:{token.line}: this shared variable"
        if end < 0 or any(t.part != token.part and t.is_solid for t in tokens[first:end]):
            raise TranslationError(
                f"{what} cannot be read: write the declaration as a whole, in the macro too, and "
                "directives around it"
            )
        is_extern = any(t.text == "extern" for t in tokens[first:end])
        declaration = read_declaration(tokens, first, end, _DROPPED)
        if declaration is None:
            raise TranslationError(
                f"{what} cannot be read: give it a type and a name, and no first value"
            )
        scope = scope_of(tokens, first)
        if scope == "code":
            variables += [scope_of_local(tokens, v.name, end) for v in declaration.variables]
            _rewrite_local(tokens, first, end, declaration, is_extern, what)
        elif scope == "file" and is_extern and all(v.is_unbounded for v in declaration.variables):
            is_static = is_in_unnamed_namespace(tokens, first)
            text = "; ".join(_array(v, is_static) for v in declaration.variables)
            _blank(tokens, first, end, text)
            arrays = {v.name: end for v in declaration.variables} | arrays
        else:
            raise TranslationError(f"{what} is declared in no function: declare it in the kernel")
    capture(tokens, variables)
    for name, start in arrays.items():
        _decay(tokens, start, name)
    return frozenset(arrays)


def _first_of_declaration(tokens: list[Token], index: int) -> int:
    """Where the declaration begins that has `__shared__` at `index`."""
    first = index
    before = previous(tokens, index)
    while before >= 0:
        if tokens[before].text in (")", "]"):
            start = matching(tokens, before)
            named = previous(tokens, start) if start >= 0 else -1
            is_attribute = text_at(tokens, named) in _ALIGNMENTS
            if not is_attribute and text_at(tokens, behind(tokens, start)) != "[":
                break
            before = named if is_attribute else start
        elif not tokens[before].is_word and tokens[before].text not in ("::", "typename"):
            break
        first, before = before, previous(tokens, before)
    return first


def _end_of_declaration(tokens: list[Token], index: int) -> int:
    """Where the next `;` is that stands in no brackets, or the end of a macro; -1 without."""
    part = tokens[index].part
    place = behind(tokens, index)
    while place < len(tokens) and tokens[place].text != ";":
        if tokens[place].text in CLOSING:
            place = matching(tokens, place)
        if place < 0 or tokens[place].text == "}" and opener(tokens, place) < index:
            return -1
        place = behind(tokens, place)
    if place < len(tokens) or part == 0:
        return place if place < len(tokens) else -1
    return next((i for i in range(index, len(tokens)) if tokens[i].part != part), len(tokens))


def _rewrite_local(
    tokens: list[Token], first: int, end: int, declaration: Declaration, is_extern: bool, what: str
) -> None:
    """That of a function, of a block's variables or of the launch's."""
    write = _dynamic if is_extern else _static
    text = "; ".join(write(v, declaration.alignment) for v in declaration.variables)
    jump = place_before_jump(tokens, first, end)
    if declaration.type_end >= 0:
        if jump >= 0:
            raise TranslationError(f"{what} is jumped past: define its type ahead of what jumps")
        for token in tokens[first : matching(tokens, declaration.type_end)]:
            token.text = "" if token.text in _DROPPED else token.text
        first = declaration.type_end + 1
        text = f"; {text}"
    _blank(tokens, first, end, "" if jump >= 0 else text)
    if jump >= 0:
        tokens[jump].ahead += f"{text}; "


def _static(variable: Variable, alignment: str) -> str:
    key = "[] {}"
    if alignment:
        key = f"[] {{ struct {alignment} Aligned {{}}; return alignof(Aligned); }}"
    return f"auto& {variable.name} = {NAMESPACE}::shared<{variable.type}>({key})"


def _dynamic(variable: Variable, _: str) -> str:
    array = f"{NAMESPACE}::dynamic_array<{variable.type}>()"
    if variable.is_unbounded:
        return f"auto* {variable.name} = {array}"
    return f"auto& {variable.name} = *{array}"


def _array(variable: Variable, is_static: bool) -> str:
    """A variable outside of functions, which other files may declare again."""
    type_ = f"{NAMESPACE}::DynamicArray<{variable.type}>"
    if is_static:
        return f"static constexpr {type_} {variable.name}{{}}"
    return f"extern const {type_} {variable.name} __attribute__((weak))"


def _blank(tokens: list[Token], first: int, end: int, text: str) -> None:
    """Put a text for some tokens, of which the ends of lines stay."""
    for token in tokens[first:end]:
        if token.is_solid or "\n" not in token.text and token.kind == "space":
            token.text = ""
    tokens[first].ahead += text


def _decay(tokens: list[Token], start: int, name: str) -> None:
    """Make pointers of an array's uses that a conversion would not reach."""
    for index in range(start, len(tokens)):
        token = tokens[index]
        if token.text != name or token.part < 0:
            continue
        ahead, following = previous(tokens, index), behind(tokens, index)
        is_declared = text_at(tokens, ahead) == "," and text_at(tokens, following) == ";"
        is_expression = (
            text_at(tokens, ahead) in _AHEAD_OF_EXPRESSIONS
            and text_at(tokens, following) in _BEHIND_EXPRESSIONS
        )
        if is_expression and not is_declared:
            token.text = f"(+{name})"
