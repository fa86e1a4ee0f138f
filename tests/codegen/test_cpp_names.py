# SPDX-License-Identifier: BSD-3-Clause
"""Names of a spec that C++, its macros or generated code have a meaning for."""

from __future__ import annotations

import pytest

from codegen import cpp_names


@pytest.mark.parametrize("name", ["self", "out", "keys", "at", "EPS", "LU", "TORCH", "at_least"])
def test_a_name_is_an_identifier(name: str) -> None:
    assert cpp_names.identifier(name) == name


@pytest.mark.parametrize("name", ["class", "int", "errno", "NULL", "EOF", "TORCH_CHECK", "int64_t"])
def test_keywords_macros_and_types_get_an_underscore(name: str) -> None:
    assert cpp_names.identifier(name) == f"{name}_"


@pytest.mark.parametrize("name", ["call", "schema", "at", "c10", "std", "torch", "class", "NULL"])
def test_handles_hide_no_namespace_and_none_of_their_members(name: str) -> None:
    assert cpp_names.handle_name(name) == f"{name}_"


@pytest.mark.parametrize(
    ("name", "parameter"), [("self", "self"), ("class", "class_"), ("keys", "keys_")]
)
def test_parameters_hide_nothing_that_generated_code_uses(name: str, parameter: str) -> None:
    assert cpp_names.parameter_name(name) == parameter
