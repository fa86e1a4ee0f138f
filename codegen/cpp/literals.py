# SPDX-License-Identifier: BSD-3-Clause
"""Numbers, characters and texts as C++17 spells them.

Suffixes that a library defines itself are none of them.
"""

from __future__ import annotations

import re

_DIGITS, _HEX = r"\d(?:'?\d)*", r"[0-9a-fA-F](?:'?[0-9a-fA-F])*"
_INTEGER_SUFFIX = r"(?:[uU](?:ll?|LL?|[zZ])?|(?:ll?|LL?|[zZ])[uU]?)?"
_NUMBER = re.compile(
    rf"""(?:[1-9](?:'?\d)*|0(?:'?[0-7])*|0[xX]{_HEX}|0[bB][01](?:'?[01])*){_INTEGER_SUFFIX}
      | (?:(?:{_DIGITS}\.(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?
        |{_DIGITS}[eE][+-]?{_DIGITS}
        |0[xX](?:{_HEX}\.?(?:{_HEX})?|\.{_HEX})[pP][+-]?{_DIGITS})[fFlL]?""",
    re.VERBOSE | re.ASCII,
)
_TEXT = re.compile(r"(?P<prefix>u8|[uUL])?(?P<quote>['\"])(?P<body>.*)['\"]", re.DOTALL)
# A character of a text: one that stands for itself, or a backslash and what belongs to it.
_CHARACTER = re.compile(r"\\(?:u.{0,4}|U.{0,8}|x[0-9a-fA-F]*|[0-7]{1,3}|.)|.", re.DOTALL)
_CODE = r"(?:u(?![dD][89a-fA-F])|U0000(?![dD][89a-fA-F])|U000[1-9a-fA-F]|U0010)[0-9a-fA-F]{4}"
_ESCAPE = re.compile(rf"""\\(?:['"?\\abfnrtv]|[0-7]{{1,3}}|x[0-9a-fA-F]+|{_CODE})""")
_OF_ONE_BYTE = re.compile(r"\\(?:[0-3]?[0-7]{1,2}|x0*[0-9a-fA-F]{1,2})")


def why_no_literal(text: str) -> str | None:
    """Why a number or a text in quotes is none of C++; None where it is one."""
    if text in ("'", '"'):
        return "a text has no end"
    parts = _TEXT.fullmatch(text)
    if parts is None:
        return None if _NUMBER.fullmatch(text) else f"'{text}' is no number of C++"
    characters = _CHARACTER.findall(parts["body"])
    for character in characters:
        shown = ascii(character).strip("'\"").replace("\\\\", "\\")
        if character in ("\n", "\r"):
            return "a text ends where its line does"
        if character[0] == "\\" and not _is_escape(character, parts["prefix"]):
            return f"'{shown}' in a text is no escape sequence of C++"
    if parts["quote"] == "'" and (not characters or (parts["prefix"] and len(characters) > 1)):
        return f"{text} is not one character" if text.isprintable() else "a text is no character"
    return None


def _is_escape(character: str, prefix: str | None) -> bool:
    """Whether it is one, of a code that a character of so many bytes can have."""
    is_code = character[1:2] in "01234567x"
    if is_code and prefix in (None, "u8"):
        return _OF_ONE_BYTE.fullmatch(character) is not None
    return _ESCAPE.fullmatch(character) is not None
