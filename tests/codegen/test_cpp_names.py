# SPDX-License-Identifier: BSD-3-Clause
"""Names of a spec that C++, its macros or generated code have a meaning for."""

from __future__ import annotations

import pytest

from codegen.cpp import names as cpp_names


@pytest.mark.parametrize(
    "name",
    "self out keys at EPS LU TORCH FFT at_least LU_data W_in _x __and__ __ilshift__ "
    "__and___Tensor __lshift___out "
    "_C MY_OPS PRINT SOFT_MAX RELU_ _Impl __detail".split(),
)
def test_a_name_is_an_identifier(name: str) -> None:
    assert cpp_names.identifier(name) == name


@pytest.mark.parametrize(
    "name",
    "class int errno NULL EOF ENOENT TORCH_CHECK int64_t INT_MAX CHAR_BIT M_PI SIZE_MAX PRId64 "
    "WIFEXITED typeof __LINE__ __cplusplus __attribute__ __int128 __func__".split(),
)
def test_keywords_macros_and_types_get_an_underscore(name: str) -> None:
    assert cpp_names.identifier(name) == f"{name}_"


@pytest.mark.parametrize("name", ["a::new::f", "NULL::f", "f::int", "INT_MAX", "a::__LINE__"])
def test_a_qualified_name_has_no_part_that_is_another_thing(name: str) -> None:
    assert not cpp_names.is_qualified(name)
    assert cpp_names.is_qualified("a::b::f_cpu") and cpp_names.is_qualified("FFT")


@pytest.mark.parametrize("name", ["call", "schema", "at", "c10", "std", "torch", "class", "NULL"])
def test_handles_hide_no_namespace_and_none_of_their_members(name: str) -> None:
    assert cpp_names.handle_name(name) == f"{name}_"


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("self", "self"), ("class", "class_"), ("keys", "keys_"), ("SOME_FLAG", "SOME_FLAG_")],
)
def test_parameters_hide_nothing_that_generated_code_uses(name: str, parameter: str) -> None:
    assert cpp_names.parameter_name(name) == parameter
