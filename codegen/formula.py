# SPDX-License-Identifier: BSD-3-Clause
"""What a gradient formula names: free identifiers, gradients, attributes that stand for a tensor.

A formula is a C++ expression. Only its tokens are looked at: enough to know what has to be saved,
and to rewrite `self.scalar_type()` to a saved attribute. The C++ compiler judges the rest.
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
_GRAD = re.compile(r"\bgrads\s*\[\s*(\d+)\s*\]")


@dataclass(frozen=True)
class Name:
    """A free identifier: not a member, not a function, not part of a qualified name."""

    text: str
    offset: int


@dataclass(frozen=True)
class Attribute:
    """An expression over a tensor whose value is saved in place of the tensor."""

    pattern: str  # regular expression; {} stands for the tensor's name
    suffix: str  # of the member; \1 is the pattern's first group
    type: str  # of the member
    value: str  # its value when the node is made; {} stands for the tensor's name


_SYM_INTS = "::std::vector<c10::SymInt>"
ATTRIBUTES = (
    Attribute(r"{}\.sym_sizes\(\)", "_sym_sizes", _SYM_INTS, "{}.sym_sizes().vec()"),
    Attribute(r"{}\.sizes\(\)", "_sizes", "::std::vector<int64_t>", "{}.sizes().vec()"),
    Attribute(r"{}\.sym_strides\(\)", "_sym_strides", _SYM_INTS, "{}.sym_strides().vec()"),
    Attribute(r"{}\.options\(\)", "_options", "at::TensorOptions", "{}.options()"),
    Attribute(r"{}\.sym_size\((-?\w+)\)", r"_sym_size_\1", "c10::SymInt", r"{}.sym_size(\1)"),
    Attribute(r"{}\.numel\(\)", "_numel", "int64_t", "{}.numel()"),
    Attribute(r"{}\.sym_numel\(\)", "_sym_numel", "c10::SymInt", "{}.sym_numel()"),
    Attribute(r"{}\.scalar_type\(\)", "_scalar_type", "at::ScalarType", "{}.scalar_type()"),
    Attribute(r"{}\.dim\(\)", "_dim", "int64_t", "{}.dim()"),
    Attribute(r"{}\.layout\(\)", "_layout", "at::Layout", "{}.layout()"),
    Attribute(r"{}\.is_conj\(\)", "_conjugate", "bool", "{}.is_conj()"),
)  # fmt: skip


@dataclass(frozen=True)
class SavedAttribute:
    """An attribute that a formula uses of a tensor: the member, its type, its value when saved."""

    member: str
    type: str
    value: str


def free_names(text: str) -> list[Name]:
    """The identifiers of a formula that are values of their own."""
    found: list[Name] = []
    tokens = [
        m for m in _TOKEN.finditer(text) if not (m.group().isspace() or m.lastgroup == "comment")
    ]
    for index, token in enumerate(tokens):
        if token.lastgroup != "name":
            continue
        before = tokens[index - 1].group() if index else ""
        after = tokens[index + 1].group() if index + 1 < len(tokens) else ""
        if before in (".", "->", "::") or after in ("(", "::"):
            continue
        found.append(Name(token.group(), token.start()))
    return found


def grad_indices(text: str) -> list[tuple[int, int]]:
    """The i of every `grads[i]`, with its offset."""
    return [(int(m.group(1)), m.start()) for m in _GRAD.finditer(text)]


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


def take_attributes(text: str, tensor: str, parameter: str) -> tuple[str, list[SavedAttribute]]:
    """The formula with a tensor's attributes replaced by members, and those members.

    parameter is what the tensor is called where the members get their values.
    """
    found: list[SavedAttribute] = []
    for attribute in ATTRIBUTES:
        pattern = rf"(?<![\w.>:]){attribute.pattern.format(re.escape(tensor))}"

        def replace(match: re.Match[str], attribute: Attribute = attribute) -> str:
            group = match.group(1) if match.groups() else ""
            suffix = attribute.suffix.replace(r"\1", group.replace("-", "minus_"))
            value = attribute.value.format(parameter).replace(r"\1", group)
            saved = SavedAttribute(tensor + suffix, attribute.type, value)
            if saved not in found:
                found.append(saved)
            return saved.member

        text = re.sub(pattern, replace, text)
    return text, found
