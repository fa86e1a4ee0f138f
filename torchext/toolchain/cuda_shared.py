# SPDX-License-Identifier: BSD-3-Clause
"""Declarations of shared memory, as references to what the machine keeps for a block."""

from __future__ import annotations

import re

from .cuda_tokens import NAMESPACE, Token, TranslationError, following, matching, preceding

_BEFORE = frozenset(("extern", "static", "volatile", "const", "__device__"))
_DROPPED = frozenset(("extern", "static", "__shared__", "__device__"))


def rewrite_shared(tokens: list[Token], path: str) -> None:
    """Rewrite every declaration of a file; `path` for messages.

    Raises TranslationError for one that is none.
    """
    for index, token in enumerate(tokens):
        if token.text != "__shared__" or _is_of_a_directive(tokens, index):
            continue
        first = index
        before = preceding(tokens, index - 1)
        while before >= 0 and tokens[before].text in _BEFORE:
            first, before = before, preceding(tokens, before - 1)
        end = _end_of_declaration(tokens, index)
        declared = [t for t in tokens[first:end] if t.is_solid]
        is_extern = any(t.text == "extern" for t in declared)
        alignment, declared = _without_alignment([t for t in declared if t.text not in _DROPPED])
        variables = _variables(declared)
        definition, variables = _with_named_type(variables)
        if end == len(tokens) or not variables:
            raise TranslationError(f"{path}:{token.line}: this shared variable cannot be read")
        if is_extern and _is_at_file_scope(tokens, first):
            text = ""
            for type_, name, _ in variables:
                _call(tokens[end:], name, f"({NAMESPACE}::dynamic_array<{type_}>())")
        elif is_extern:
            text = "; ".join(
                f"{type_}* {name} = {NAMESPACE}::dynamic_array<{type_}>()"
                for type_, name, _ in variables
            )
        else:
            text = definition + "; ".join(
                f"static const char {name}_key = 0; auto& {name} = "
                f"{NAMESPACE}::shared<{type_}{extents}>(&{name}_key, {alignment})"
                for type_, name, extents in variables
            )
        lines = "".join(t.text for t in tokens[first:end] if "\n" in t.text)
        for other in tokens[first:end]:
            other.text = ""
        tokens[first].text = text + re.sub(r"[^\\\n]|\\(?!\n)", "", lines)


def _end_of_declaration(tokens: list[Token], index: int) -> int:
    """Where the next `;` is that stands in no braces; the end where there is none."""
    depth = 0
    for place in range(index, len(tokens)):
        depth += {"{": 1, "}": -1}.get(tokens[place].text, 0)
        if tokens[place].text == ";" and depth == 0:
            return place
    return len(tokens)


def _is_of_a_directive(tokens: list[Token], index: int) -> bool:
    """Whether it is what a `#define` or `#ifdef` names."""
    before = preceding(tokens, index - 1)
    return before >= 0 and tokens[before].text in ("define", "ifdef", "ifndef", "undef")


def _is_at_file_scope(tokens: list[Token], end: int) -> bool:
    """Whether what comes at `end` stands in namespaces alone."""
    opened: list[bool] = []  # of each brace, whether it is a namespace's
    for index, token in enumerate(tokens[:end]):
        if token.text == "}" and opened:
            opened.pop()
        if token.text == "{":
            start = index
            while start > 0 and tokens[start - 1].text not in (";", "{", "}"):
                start -= 1
            words = [t.text for t in tokens[start:index] if t.is_solid]
            opened.append("namespace" in words or words[:1] == ["extern"])
    return all(opened)


def _call(tokens: list[Token], name: str, call: str) -> None:
    """Replace a name that stands for memory which there is only in a kernel."""
    for index, token in enumerate(tokens):
        before = preceding(tokens, index - 1)
        if token.text == name and (before < 0 or tokens[before].text not in (".", "->", "::")):
            token.text = call


def _without_alignment(words: list[Token]) -> tuple[str, list[Token]]:
    """What `alignas(...)` or `__align__(...)` says, and the words without it."""
    for index, word in enumerate(words):
        if word.text in ("alignas", "__align__", "__attribute__"):
            end = matching(words, following(words, index + 1), 1)
            inside = " ".join(t.text for t in words[index + 2 : end])
            if word.text == "__attribute__":
                found = re.search(r"aligned__*\s*\(\s*(\w+)|aligned\s*\(\s*(\w+)", inside)
                inside = (found[1] or found[2]) if found else "1"
            return inside, words[:index] + words[end + 1 :]
    return "1", words


def _variables(words: list[Token]) -> list[tuple[str, str, str]]:
    """The type, the name and the extents ("[32] [33]") of each variable of a declaration; none
    where it is no declaration, or gives a first value, which shared memory cannot have."""
    if any(word.text == "=" for word in words):
        return []
    found: list[tuple[str, str, str]] = []
    for declarator in _split_at_commas(words):
        end = len(declarator)
        while end > 0 and declarator[end - 1].text == "]":
            end = matching(declarator, end - 1, -1)
        if end <= 0 or declarator[end - 1].kind != "name":
            return []
        own = " ".join(t.text for t in declarator[: end - 1]).replace(" :: ", "::")
        type_ = f"{found[0][0]} {own}".strip() if found else own
        extents = " ".join(t.text for t in declarator[end:])
        found.append((type_, declarator[end - 1].text, extents))
    return found if found[0][0] else []


def _with_named_type(
    variables: list[tuple[str, str, str]],
) -> tuple[str, list[tuple[str, str, str]]]:
    """The definition of a type that a declaration defines, and the variables by its name."""
    if not variables or "{" not in variables[0][0]:
        return "", variables
    head, body = variables[0][0].split("{", 1)
    words = head.split()
    name = words[1] if len(words) > 1 else f"{variables[0][1]}_type"
    return f"{words[0]} {name} {{{body}; ", [(name, n, extents) for _, n, extents in variables]


def _split_at_commas(words: list[Token]) -> list[list[Token]]:
    found: list[list[Token]] = [[]]
    depth = 0
    for word in words:
        if word.text in ("(", "[", "{", "<"):
            depth += 1
        elif word.text in (")", "]", "}", ">", ">>>"):
            depth -= len(word.text)
        if word.text == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(word)
    return found
