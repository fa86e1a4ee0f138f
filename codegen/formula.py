# SPDX-License-Identifier: BSD-3-Clause
"""What a gradient formula names: free identifiers, gradients, functions that it calls.

A formula is a C++ expression. Only its tokens are looked at: enough to know what has to be saved.
The C++ compiler judges the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<number>\d[\w.]*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<op>->|::|\s+|.)""",
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_STATEMENTS = ("return", "else", "case", "throw", "co_return")
_GRAD = re.compile(r"\bgrads\s*\[\s*(\d+)\s*\]")


@dataclass(frozen=True)
class Name:
    """A free identifier: not a member, not a function, not part of a qualified name."""

    text: str
    offset: int


def _tokens(text: str) -> list[re.Match[str]]:
    """The tokens of a formula, without spaces and comments."""
    return [
        m for m in _TOKEN.finditer(text) if not (m.group().isspace() or m.lastgroup == "comment")
    ]


def free_names(text: str) -> list[Name]:
    """The identifiers of a formula that are values of their own."""
    found: list[Name] = []
    tokens = _tokens(text)
    for index, token in enumerate(tokens):
        if token.lastgroup != "name":
            continue
        before = tokens[index - 1].group() if index else ""
        after = tokens[index + 1].group() if index + 1 < len(tokens) else ""
        if before in (".", "->", "::") or after in ("(", "::"):
            continue
        found.append(Name(token.group(), token.start()))
    return found


def local_names(text: str) -> set[str]:
    """The names that the lambdas of a formula declare: parameters and variables."""
    tokens = _tokens(text)
    if not any(token.group() == "{" for token in tokens):
        return set()
    found = set()
    for before, token, after in zip(tokens, tokens[1:], tokens[2:]):
        if after.group() == "::":
            continue
        follows_type = before.lastgroup == "name" and before.group() not in _STATEMENTS
        if token.lastgroup == "name" and (follows_type or before.group() in ("&", "*", ">")):
            found.add(token.group())
    return found


def called_functions(text: str) -> set[str]:
    """The unqualified functions that a formula calls, templates included."""
    tokens = _tokens(text.replace("torchext::derivatives::", ""))
    found = set()
    for index, token in enumerate(tokens[:-1]):
        before = tokens[index - 1].group() if index else ""
        is_call = tokens[index + 1].group() in ("(", "<")
        if token.lastgroup == "name" and is_call and before not in (".", "->", "::"):
            found.add(token.group())
    return found


def grad_indices(text: str) -> list[tuple[int, int]]:
    """The i of every `grads[i]`, with its offset."""
    blank = _TOKEN.sub(
        lambda m: " " * len(m.group()) if m.lastgroup in ("comment", "string") else m.group(), text
    )
    return [(int(m.group(1)), m.start()) for m in _GRAD.finditer(blank)]


def why_no_expression(text: str) -> str | None:
    """Why a text would take generated code around it with it; None where it would not."""
    closing: list[str] = []
    tokens = [m for m in _TOKEN.finditer(text) if m.lastgroup not in ("comment", "string")]
    for token, after in zip(tokens, [*tokens[1:], None]):
        char = token.group()
        if char == "/" and after and after.group() == "/" and after.start() == token.end():
            return "'//' begins a comment"
        if char in _CLOSING:
            closing.append(_CLOSING[char])
        elif char in _CLOSING.values() and (not closing or closing.pop() != char):
            return f"'{char}' closes nothing"
        elif char == ";" and "}" not in closing:
            return "';' ends a statement"
    return f"'{closing[-1]}' is missing" if closing else None


def rename(text: str, names: Mapping[str, str]) -> str:
    """The formula with free identifiers replaced."""
    for name in reversed(free_names(text)):
        if name.text in names:
            end = name.offset + len(name.text)
            text = text[: name.offset] + names[name.text] + text[end:]
    return text


def root_namespace(text: str, namespace: str) -> str:
    """The formula with `namespace::` made `::namespace::`, so that no inner scope hides it."""
    return re.sub(rf"(?<![\w:]){re.escape(namespace)}::", f"::{namespace}::", text)


def calls_of(text: str, namespace: str) -> set[str]:
    """The functions of a library's own C++ API that a formula calls."""
    return set(re.findall(rf"(?<!\w){re.escape(namespace)}::(\w+)", text))
