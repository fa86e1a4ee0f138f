# SPDX-License-Identifier: BSD-3-Clause
"""The tokens of a formula, which is a C++ expression: where template arguments end, and what the
lambdas in it declare."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/)
      | (?P<string>(?:u8|[uUL])?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))
      | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<space>\s+)
      | (?P<op>->|::|.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_TYPE_WORDS = frozenset(
    "auto bool char const double float int long short signed string string_view unsigned vector "
    "void".split()
)
# Words that no declared name follows.
_NO_TYPES = frozenset(
    "return else case throw co_return and or not xor bitand bitor compl not_eq new delete sizeof "
    "in goto typename".split()
)


def tokens_of(text: str) -> list[re.Match[str]]:
    """The tokens of a formula, without spaces and comments."""
    return [m for m in _TOKEN.finditer(text) if m.lastgroup not in ("space", "comment")]


def template_end(tokens: Sequence[re.Match[str]], start: int) -> int:
    """The index behind the template arguments whose `<` is at `start`; 0 where it compares.

    Behind a qualified name, or a cast, they may be anything; behind another they are types and
    numbers, so that `a < b` compares.
    """
    name = tokens[start - 1].group()
    is_trusted = name.endswith("_cast") or (start > 1 and tokens[start - 2].group() == "::")
    level = brackets = 0
    for index in range(start, len(tokens)):
        char = tokens[index].group()
        after = tokens[index + 1].group() if index + 1 < len(tokens) else ""
        brackets += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0)
        level += 0 if brackets else {"<": 1, ">": -1}.get(char, 0)
        if level == 0:
            is_value = is_trusted and name.endswith("_v")
            return index + 1 if after in ("(", "{", "::") or is_value else 0
        is_odd = brackets < 0 or char in ("?", ";", "{", "}") or (char in "&|" and char == after)
        if is_odd or not (is_trusted or _is_type_or_number(tokens, index)):
            return 0
    return 0


def _is_type_or_number(tokens: Sequence[re.Match[str]], index: int) -> bool:
    word = tokens[index].group()
    if tokens[index].lastgroup != "name":
        return tokens[index].lastgroup == "number" or word in ("<", ">", "::", ",", "*", "&")
    is_qualified = "::" in (token.group() for token in tokens[index - 1 : index + 2])
    return is_qualified or _names_type(word)


def _names_type(word: str) -> bool:
    return word[:1].isupper() or word in _TYPE_WORDS or word.endswith("_t")


def local_names(tokens: list[re.Match[str]]) -> set[str]:
    """The names that the lambdas of a formula declare: captures, parameters and variables."""
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
    is_body = False
    for index in range(start, len(tokens)):
        char = tokens[index].group()
        is_body = is_body or (char == "{" and level == 0)
        level += {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}.get(char, 0)
        if is_body and level == 0:
            return index + 1
    return len(tokens)


def _declared(tokens: list[re.Match[str]]) -> set[str]:
    """The names that a lambda declares: behind a type, before `=`, or bound by `auto [a, b]`."""
    found = set()
    captures, binds = True, False
    for index in range(1, len(tokens) - 1):
        last, token, next_ = (tokens[index + i].group() for i in (-1, 0, 1))
        if last == "]":
            captures = binds = False
        elif token == "[":
            binds = last in ("auto", "&")
        if tokens[index].lastgroup != "name" or next_ == "::" or token in _TYPE_WORDS:
            continue
        is_compared = [token.group() for token in tokens[index + 1 : index + 3]] == ["=", "="]
        is_initialised = next_ == "=" and not is_compared and last in ("[", ",", "&")
        follows_type = tokens[index - 1].lastgroup == "name" and last not in _NO_TYPES
        follows_type = follows_type or (last in ("&", "*", ">") and _ends_type(tokens, index - 1))
        if is_initialised or (not captures and (binds or follows_type)):
            found.add(tokens[index].group())
    return found


def _ends_type(tokens: list[re.Match[str]], index: int) -> bool:
    """Whether `&`, `*` or `>` at the index is the end of a type: of one that stands at the
    beginning of a declaration, or of template arguments."""
    while index > 0 and tokens[index].group() in ("&", "*"):
        index -= 1
    if tokens[index].group() == ">":
        starts = (i for i in range(index) if tokens[i].group() == "<")
        return any(_is_template(tokens, start, index) for start in starts)
    before = tokens[index - 1].group() if index else ""
    return _names_type(tokens[index].group()) or before in ("(", ",", ";", "{", "const", "::")


def _is_template(tokens: list[re.Match[str]], start: int, end: int) -> bool:
    """Whether all between a `<` and a `>` can be template arguments."""
    is_named = start > 0 and tokens[start - 1].lastgroup == "name"
    return is_named and all(_is_type_or_number(tokens, i) for i in range(start + 1, end))
