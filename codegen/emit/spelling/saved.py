# SPDX-License-Identifier: BSD-3-Clause
"""The types of what backward nodes save."""

from __future__ import annotations

import re

from ...plan.autograd import SavedKind, SavedPlan

_VARIABLE = "torch::autograd::SavedVariable"
_MEMBERS = {
    SavedKind.TENSOR: _VARIABLE,
    SavedKind.TENSORS: f"::std::vector<{_VARIABLE}>",
    SavedKind.OPTIONAL_TENSORS: f"::std::vector<{_VARIABLE}>",
}
_LOCALS = {
    SavedKind.TENSOR: "at::Tensor",
    SavedKind.TENSORS: "::std::vector<at::Tensor>",
    SavedKind.OPTIONAL_TENSORS: "c10::List<::std::optional<at::Tensor>>",
}
# Types that Python has no value for: nodes save them, and grad_fn does not show them.
_WITHOUT_PYTHON_TYPE = re.compile(
    r"::(TensorOptions|TypeAndSize|TensorGeometry|QScheme|Dimname|ConstQuantizerPtr)\b"
)


def member_type(saved: SavedPlan) -> str:
    """The type of the node's member."""
    return _MEMBERS.get(saved.kind, saved.type)


def parameter(saved: SavedPlan) -> str:
    """What formulas use, as a parameter of the node's function."""
    type_ = _LOCALS.get(saved.kind, saved.type)
    # An optional array converts to a reference only where it is not const.
    if type_.startswith("c10::OptionalArray"):
        return f"{type_} {saved.local}"
    return f"const {type_}& {saved.local}"


def has_property(saved: SavedPlan) -> bool:
    """Whether Python has a type for the value."""
    return _WITHOUT_PYTHON_TYPE.search(member_type(saved)) is None
