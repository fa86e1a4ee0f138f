# SPDX-License-Identifier: BSD-3-Clause
"""What a gradient formula names: free identifiers, gradients, functions that it calls.

A formula is a C++ expression. Only its tokens are looked at: enough to know what has to be saved.
The C++ compiler judges the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<number>\.?\d[\w.]*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<op>->|::|\s+|.)""",
    re.VERBOSE | re.DOTALL,
)
# What template arguments may hold beside names and numbers.
_IN_TEMPLATES = ("<", ">", "::", ",", "*", "&")
_TYPE_WORDS = ("auto", "bool", "const", "double", "float", "int", "long", "string", "vector")
_STATEMENTS = ("return", "else", "case", "throw", "co_return")
_GRAD = re.compile(r"\bgrads\s*\[([^\]]*)\]")
_MASK = re.compile(r"\bgrad_input_mask\s*\[([^\]]*)\]")


@dataclass(frozen=True)
class Name:
    """A free identifier: not a member, not a function, not part of a qualified name."""

    text: str
    offset: int


def tokens_of(text: str) -> list[re.Match[str]]:
    """The tokens of a formula, without spaces and comments."""
    return [
        m for m in _TOKEN.finditer(text) if not (m.group().isspace() or m.lastgroup == "comment")
    ]


def free_names(text: str) -> list[Name]:
    """The identifiers of a formula that are values of their own."""
    found: list[Name] = []
    tokens = tokens_of(text)
    for index, token in enumerate(tokens):
        if token.lastgroup != "name":
            continue
        before = tokens[index - 1].group() if index else ""
        after = tokens[index + 1].group() if index + 1 < len(tokens) else ""
        if before in (".", "->", "::") or after in ("(", "::"):
            continue
        if after == "<" and template_end(tokens, index + 1):
            continue
        found.append(Name(token.group(), token.start()))
    return found


def template_end(tokens: Sequence[re.Match[str]], start: int) -> int:
    """The index behind the template arguments whose `<` is at `start`; 0 where it compares."""
    level = 0
    for index in range(start, len(tokens)):
        char = tokens[index].group()
        level += {"<": 1, ">": -1}.get(char, 0)
        if level == 0:
            after = tokens[index + 1].group() if index + 1 < len(tokens) else ""
            return index + 1 if after in ("(", "{", "::") else 0
        if tokens[index].lastgroup not in ("name", "number") and char not in _IN_TEMPLATES:
            return 0
    return 0


def local_names(text: str) -> set[str]:
    """The names that the lambdas of a formula declare: captures, parameters and variables."""
    tokens = tokens_of(text)
    found: set[str] = set()
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else None
        follows_operand = before is not None and (
            before.lastgroup in ("name", "number") or before.group() in (")", "]", ">")
        )
        if token.group() == "[" and not follows_operand:
            found |= _declared(tokens[index : _lambda_end(tokens, index)])
    return found


def _lambda_end(tokens: list[re.Match[str]], start: int) -> int:
    """The index behind the body of the lambda that begins at `start`."""
    level = 0
    for index in range(start, len(tokens)):
        char = tokens[index].group()
        level += {"{": 1, "}": -1}.get(char, 0)
        if char == "}" and level == 0:
            return index + 1
    return len(tokens)


def _declared(tokens: list[re.Match[str]]) -> set[str]:
    """The names that a lambda declares: behind a type, before `=`, or bound by `auto [a, b]`."""
    found = set()
    captures, binds = True, False
    for before, token, after in zip(tokens, tokens[1:], tokens[2:]):
        last, next_ = before.group(), after.group()
        if last == "]":
            captures = binds = False
        elif token.group() == "[":
            binds = last in ("auto", "&")
        if token.lastgroup != "name" or next_ == "::":
            continue
        is_reference = last in ("&", "*", ">") and _is_type(tokens, before)
        is_initialised = next_ == "=" and last in ("[", ",", "&")
        follows_type = before.lastgroup == "name" and last not in _STATEMENTS
        if is_initialised or (not captures and (binds or follows_type or is_reference)):
            found.add(token.group())
    return found


def _is_type(tokens: list[re.Match[str]], end: re.Match[str]) -> bool:
    """Whether what stands before `&`, `*` or ends in `>` is a type rather than a value."""
    index = tokens.index(end)
    while index > 0 and tokens[index].group() in ("&", "*"):
        index -= 1
    word = tokens[index].group()
    return word == ">" or word[:1].isupper() or word in _TYPE_WORDS or word.endswith("_t")


def called_functions(text: str) -> set[str]:
    """The unqualified functions that a formula calls, templates included."""
    tokens = tokens_of(text.replace("torchext::derivatives::", ""))
    found = set()
    for index, token in enumerate(tokens[:-1]):
        before = tokens[index - 1].group() if index else ""
        is_call = tokens[index + 1].group() in ("(", "<")
        if token.lastgroup == "name" and is_call and before not in (".", "->", "::"):
            found.add(token.group())
    return found


def grad_indices(text: str) -> list[tuple[str, int]]:
    """What stands in the brackets of every `grads[i]`, with its offset."""
    return _indices(_GRAD, text)


def mask_indices(text: str) -> list[tuple[str, int]]:
    """The same of every `grad_input_mask[i]`."""
    return _indices(_MASK, text)


def _indices(pattern: re.Pattern[str], text: str) -> list[tuple[str, int]]:
    blank = _TOKEN.sub(
        lambda m: " " * len(m.group()) if m.lastgroup in ("comment", "string") else m.group(), text
    )
    return [(m.group(1).strip(), m.start()) for m in pattern.finditer(blank)]


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
