# SPDX-License-Identifier: BSD-3-Clause
"""Attributes of a tensor that a formula uses, saved in place of the tensor.

`self.sym_sizes()` becomes the member `self_sym_sizes`. The table has upstream's replacements
(load_derivatives.py), and `sizes()`, which upstream no longer takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from .reading import Reading, read
from .tokens import tokens_of


@dataclass(frozen=True)
class Attribute:
    """An expression over a tensor whose value is saved in place of the tensor."""

    call: str  # what the formula says of a tensor `self`, and of a dimension `DIM`
    suffix: str  # of the member; <dimension> is what the formula has for `DIM`
    type: str  # of the member
    value: str  # its value when the node is made; {} stands for the tensor
    use: str = "{}"  # what stands in the formula; {} stands for the member
    of: str = "Tensor"  # the schema type of what has the attribute

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The tokens of the call."""
        return tuple(token.group() for token in tokens_of(self.call))

    @cached_property
    def function(self) -> str:
        """Its name: where a formula has it not, there is nothing to find."""
        return self.words[self.words.index("(") - 1]

    def found_in(self, reading: Reading, name: str) -> Iterator[tuple[int, int, str]]:
        """Where a formula says it of a tensor: the begin and end in its text, and the dimension."""
        words = reading.words
        for index in (i for i, word in enumerate(words) if word == self.function):
            start = index - self.words.index(self.function)
            if start < 0 or (start and words[start - 1] in (".", "->", "::")):
                continue
            if (match := self._match(words[start:], name)) is not None:
                length, dimension = match
                end = reading.tokens[start + length - 1].end()
                yield reading.tokens[start].start(), end, dimension

    def _match(self, words: Sequence[str], name: str) -> tuple[int, str] | None:
        """How many words the call takes, where they begin with it, and the dimension in it."""
        at, dimension = 0, ""
        for expected in self.words:
            if expected == "DIM":
                at += (is_negative := words[at : at + 1] == ["-"])
                dimension = "-" * is_negative + "".join(words[at : at + 1])
            elif words[at : at + 1] != [name if expected == "self" else expected]:
                return None
            at += 1
        return at, dimension


_SYM_INTS = "::std::vector<c10::SymInt>"
_OPTIONAL_SYM_INTS = "c10::OptionalArray<c10::SymInt>"
ATTRIBUTES = (
    Attribute("self.sym_sizes()", "_sym_sizes", _SYM_INTS, "{}.sym_sizes().vec()"),
    Attribute(
        "self->sym_sizes()", "_sym_sizes_opt", _OPTIONAL_SYM_INTS, "sym_sizes_of({})", of="Tensor?"
    ),
    Attribute(
        "self.sym_blocksize()",
        "_self_sym_blocksize_opt",
        _OPTIONAL_SYM_INTS,
        "sym_block_size_of({})",
    ),
    Attribute("self.sizes()", "_sizes", "::std::vector<int64_t>", "{}.sizes().vec()"),
    Attribute("self.sym_strides()", "_sym_strides", _SYM_INTS, "sym_strides_of({})"),
    Attribute("self.options()", "_options", "at::TensorOptions", "{}.options()"),
    Attribute(
        "zeros_like(self)", "_info", "torch::autograd::TypeAndSize", "info_of({})",
        use="zeros_of({})",
    ),
    Attribute(
        "zeros_like(self)",
        "_infos",
        "::std::vector<torch::autograd::TypeAndSize>",
        "infos_of({})",
        use="zeros_of({})",
        of="Tensor[]",
    ),
    Attribute(
        "self.sym_size(DIM)", "_sym_argsize_<dimension>", "c10::SymInt",
        "{}.sym_size(<dimension>)",
    ),
    Attribute("self.numel()", "_numel", "int64_t", "{}.numel()"),
    Attribute("self.sym_numel()", "_sym_numel", "c10::SymInt", "{}.sym_numel()"),
    Attribute(
        "to_args_sizes(self)",
        "_args_sizes",
        "::std::vector<::std::vector<int64_t>>",
        "sizes_of_all({})",
        of="Tensor[]",
    ),
    Attribute(
        "to_args_sizes_symint(self)",
        "_args_sizes_symint",
        "::std::vector<::std::vector<c10::SymInt>>",
        "sym_sizes_of_all({})",
        of="Tensor[]",
    ),
    Attribute(
        "to_args_scalartypes(self)",
        "_args_scalartypes",
        "::std::vector<at::ScalarType>",
        "scalar_types_of_all({})",
        of="Tensor[]",
    ),
    Attribute(
        "TensorGeometry(self)", "_geometry", "at::TensorGeometry", "at::TensorGeometry({})"
    ),
    Attribute("self.scalar_type()", "_scalar_type", "at::ScalarType", "{}.scalar_type()"),
    Attribute(
        "self->scalar_type()", "_scalar_type_opt", "at::ScalarType", "scalar_type_of({})",
        of="Tensor?",
    ),
    Attribute("self.dim()", "_dim", "int64_t", "{}.dim()"),
    Attribute("self.layout()", "_layout", "at::Layout", "{}.layout()"),
    Attribute("self.is_conj()", "_conjugate", "bool", "{}.is_conj()"),
)  # fmt: skip


@dataclass(frozen=True)
class SavedAttribute:
    """An attribute that a formula uses of a tensor: the member, its type, its value when saved."""

    member: str
    type: str
    value: str  # {} stands for the tensor


def take_attributes(
    text: str, name: str, plain_type: str, parameters: Mapping[str, str]
) -> tuple[str, list[SavedAttribute]]:
    """The formula with the attributes of one argument or result replaced, and those members.

    parameters: the arguments that an attribute may be asked with, and what the kernel calls them.
    """
    found: list[SavedAttribute] = []
    edits: list[tuple[int, int, str]] = []
    for attribute in ATTRIBUTES if name in text else ():
        if attribute.of != plain_type or attribute.function not in text:
            continue
        for start, end, dim in attribute.found_in(read(text), name):
            if dim and not (dim in parameters or dim.removeprefix("-").isdigit()):
                continue
            member = name + attribute.suffix.replace("<dimension>", dim.replace("-", "minus_"))
            value = attribute.value.replace("<dimension>", parameters.get(dim, dim))
            saved = SavedAttribute(member, attribute.type, value)
            if saved not in found:
                found.append(saved)
            edits.append((start, end, attribute.use.format(member)))
    for start, end, use in sorted(edits, reverse=True):
        text = text[:start] + use + text[end:]
    return text, found
