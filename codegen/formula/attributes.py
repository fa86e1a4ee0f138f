# SPDX-License-Identifier: BSD-3-Clause
"""Attributes of a tensor that a formula uses, saved in place of the tensor.

`self.sym_sizes()` becomes the member `self_sym_sizes`. The table has upstream's replacements
(load_derivatives.py), and `sizes()`, which upstream no longer takes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Attribute:
    """An expression over a tensor whose value is saved in place of the tensor."""

    pattern: str  # regular expression; {} stands for the tensor's name
    suffix: str  # of the member; <dimension> is what the pattern's group of that name found
    type: str  # of the member
    value: str  # its value when the node is made; {} stands for the tensor
    use: str = "{}"  # what stands in the formula; {} stands for the member
    of: str = "Tensor"  # the schema type of what has the attribute

    @cached_property
    def word(self) -> str:
        """The name of the function: where a formula has it not, the pattern need not be tried."""
        return re.findall(r"\w+", self.pattern.partition(r"\(")[0])[-1]


_TEXT = r'"(?:[^"\\]|\\.)*"'
_SYM_INTS = "::std::vector<c10::SymInt>"
_OPTIONAL_SYM_INTS = "c10::OptionalArray<c10::SymInt>"
ATTRIBUTES = (
    Attribute(r"{}\.sym_sizes\(\)", "_sym_sizes", _SYM_INTS, "{}.sym_sizes().vec()"),
    Attribute(
        r"{}->sym_sizes\(\)", "_sym_sizes_opt", _OPTIONAL_SYM_INTS, "sym_sizes_of({})", of="Tensor?"
    ),
    Attribute(
        r"{}\.sym_blocksize\(\)",
        "_self_sym_blocksize_opt",
        _OPTIONAL_SYM_INTS,
        "sym_block_size_of({})",
    ),
    Attribute(r"{}\.sizes\(\)", "_sizes", "::std::vector<int64_t>", "{}.sizes().vec()"),
    Attribute(r"{}\.sym_strides\(\)", "_sym_strides", _SYM_INTS, "sym_strides_of({})"),
    Attribute(r"{}\.options\(\)", "_options", "at::TensorOptions", "{}.options()"),
    Attribute(
        r"zeros_like\({}\)", "_info", "torch::autograd::TypeAndSize", "info_of({})",
        use="zeros_of({})",
    ),
    Attribute(
        r"zeros_like\({}\)",
        "_infos",
        "::std::vector<torch::autograd::TypeAndSize>",
        "infos_of({})",
        use="zeros_of({})",
        of="Tensor[]",
    ),
    Attribute(
        r"{}\.sym_size\((?P<dimension>-?\w+)\)", "_sym_argsize_<dimension>", "c10::SymInt",
        "{}.sym_size(<dimension>)",
    ),
    Attribute(r"{}\.numel\(\)", "_numel", "int64_t", "{}.numel()"),
    Attribute(r"{}\.sym_numel\(\)", "_sym_numel", "c10::SymInt", "{}.sym_numel()"),
    Attribute(
        r"to_args_sizes\({}\)",
        "_args_sizes",
        "::std::vector<::std::vector<int64_t>>",
        "sizes_of_all({})",
        of="Tensor[]",
    ),
    Attribute(
        r"to_args_sizes_symint\({}\)",
        "_args_sizes_symint",
        "::std::vector<::std::vector<c10::SymInt>>",
        "sym_sizes_of_all({})",
        of="Tensor[]",
    ),
    Attribute(
        r"to_args_scalartypes\({}\)",
        "_args_scalartypes",
        "::std::vector<at::ScalarType>",
        "scalar_types_of_all({})",
        of="Tensor[]",
    ),
    Attribute(
        r"TensorGeometry\({}\)", "_geometry", "at::TensorGeometry", "at::TensorGeometry({})"
    ),
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
    value: str  # {} stands for the tensor


def take_attributes(
    text: str, name: str, plain_type: str, parameters: Mapping[str, str]
) -> tuple[str, list[SavedAttribute]]:
    """The formula with the attributes of one argument or result replaced, and those members.

    parameters: the arguments that an attribute may be asked with, and what the kernel calls them.
    """
    found: list[SavedAttribute] = []
    for attribute in ATTRIBUTES:
        if attribute.of != plain_type or attribute.word not in text:
            continue
        use = attribute.pattern.format(re.escape(name))
        pattern = rf"(?P<text>{_TEXT})|(?<!\w)(?<!\.)(?<!->)(?<!::){use}"

        def replace(match: re.Match[str], attribute: Attribute = attribute) -> str:
            dim = match.groupdict().get("dimension") or ""
            is_known = dim in parameters or dim.removeprefix("-").isdigit() or not dim
            if match["text"] or not is_known:
                return match.group()
            member = name + attribute.suffix.replace("<dimension>", dim.replace("-", "minus_"))
            value = attribute.value.replace("<dimension>", parameters.get(dim, dim))
            saved = SavedAttribute(member, attribute.type, value)
            if saved not in found:
                found.append(saved)
            return attribute.use.format(member)

        text = re.sub(pattern, replace, text)
    return text, found
