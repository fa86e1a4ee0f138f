# SPDX-License-Identifier: BSD-3-Clause
"""Names of a spec that C++, its macros or generated code have a meaning for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen.__main__ import main
from codegen.cpp import names as cpp_names

ROOT = Path(__file__).resolve().parents[2]
SPECS = sorted(
    path.parent
    for folder in ("", "tests/*", "tests/*/*", "examples/*")
    for path in ROOT.glob(f"{folder}/native_functions.yaml".lstrip("/"))
)
_FUNCTION = re.compile(
    r"^(?![ }])[^\n;{}]*?\b(\w+)\(((?:[^{};]|\n)*?)\) \{\n((?:  .*\n|\n)*?)\}", re.MULTILINE
)
_NO_CODE = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|^#[^\n]*|\[\[\w+\]\]', re.MULTILINE)
# A variable hides what is looked up by its bare name: nothing before `::`, and no member.
_BARE = re.compile(r"(?<![\w:.>])[A-Za-z_]\w*(?!\w|::)")
_DECLARED = re.compile(r"(\w+)(?: =[^,]*)?(?:,|$)")


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


def functions(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Name, parameters and body of the generated functions around a call."""
    for kind in ("dispatch", "batching", "functionalize"):
        for path in sorted((folder / "src").glob(f"{kind}_*.cpp")):
            text = _NO_CODE.sub("", path.read_text(encoding="utf-8"))
            for match in _FUNCTION.finditer(text):
                if not match[1].startswith(("TORCHEXT_", "add_")):
                    yield match.groups()


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.name)
def test_no_argument_hides_what_a_generated_function_uses(spec: Path, tmp_path: Path) -> None:
    derivatives = spec / "derivatives.yaml"
    options = ["--derivatives", str(derivatives)] if derivatives.exists() else []
    options += ["--native-functions", str(spec / "native_functions.yaml"), "--out", str(tmp_path)]
    namespace = "myns" if spec == ROOT else spec.name  # formulas call operators by it
    assert main(["gen", "--namespace", namespace, *options]) == 0
    found = list(functions(tmp_path))
    assert found
    for name, parameters, body in found:
        own = set(_DECLARED.findall(" ".join(parameters.split())))
        # a list of a fixed length has its argument's name again
        own |= {parameter.removesuffix("_given") for parameter in own}
        # `x` of a batch is read from the values that the function is given
        own |= set(re.findall(r"const auto (\w+) = unboxed", body))
        for used in set(_BARE.findall(body)) - own - cpp_names.KEYWORDS - {"result"}:
            assert cpp_names.parameter_name(used) != used, (name, used)


@pytest.mark.parametrize("name", ["x_laid_out", "x_given", "x_as_list", "dtypes_0", "given_12"])
def test_parameters_are_no_names_that_generated_code_makes(name: str) -> None:
    assert cpp_names.parameter_name(name) == f"{name}_"


def test_no_struct_of_an_expression_hides_its_own_members(tmp_path: Path) -> None:
    spec = ROOT / "tests" / "rows" / "rowstest" / "native_functions.yaml"
    given = ["--native-functions", str(spec), "--out", str(tmp_path)]
    assert main(["gen", "--namespace", "rowstest", *given]) == 0
    headers = sorted((tmp_path / "include" / "rowstest").glob("fused_*.h"))
    text = "".join(path.read_text(encoding="utf-8") for path in headers)
    members = {"Loops", "RowLoops"}
    for struct in re.findall(r"^struct \w+ \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL):
        for constants in re.findall(r"^  static constexpr [^;]*;", struct, re.MULTILINE):
            members |= set(re.findall(r"(\w+)(?:\[[^]]*\])* = ", constants))
        members |= set(re.findall(r"static void (\w+)\(", struct))
        members |= set(re.findall(r"^  using (\w+) =", struct, re.MULTILINE))
    assert len(members) > 30
    assert [name for name in members if cpp_names.expression_name(name) == name] == []
