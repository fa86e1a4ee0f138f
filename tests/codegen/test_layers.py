# SPDX-License-Identifier: BSD-3-Clause
"""What keeps the generator readable: one direction of imports, small files, no operator's name."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
import yaml

import codegen
from torchext.compat import version

CODEGEN = Path(codegen.__file__).parent
ROOT = CODEGEN.parent
# Each module may import those that stand before it in a chain, and no others.
ORDER = {
    "errors": [],
    "lexer": [],
    "layout": [],
    "schema_types": [],
    "schema": ["schema_types"],
    "schema_parser": ["errors", "lexer", "schema", "schema_types"],
    "dispatch_keys": [],
    "dtypes": [],
    "spec_keys": [],
    "spec_values": ["errors"],
    "derivative_model": ["errors", "schema", "spec_keys", "spec_values"],
    "model": ["derivative_model", "errors", "schema", "spec_keys", "spec_values"],
    "yaml_reader": ["errors"],
    "entry_values": [
        "dispatch_keys", "dtypes", "errors", "model", "schema", "schema_parser", "yaml_reader",
    ],
    "derivative_entries": ["dispatch_keys", "entry_values", "model", "yaml_reader"],
    "load": [
        "derivative_entries", "dispatch_keys", "entry_values", "errors", "model", "schema",
        "schema_parser", "spec_keys", "yaml_reader",
    ],
    "formula": [],
    "literals": [],
    "expression": ["formula", "literals"],
    "saved_attributes": [],
    "derivative_helpers": [],
    "cpp_names": [],
    "type_table": ["schema"],
    "cpp_defaults": ["schema"],
    "call_plan": ["schema"],
    "autograd_plan": ["call_plan"],
    "plan": ["autograd_plan", "call_plan", "model", "schema"],
    "variants": ["schema"],
    "formula_scope": [
        "cpp_names", "errors", "formula", "model", "autograd_plan", "schema", "type_table",
    ],
    "torch_functions": ["errors"],
    "formula_calls": [
        "autograd_plan", "cpp_names", "errors", "formula", "model", "plan", "torch_functions",
    ],
    "formula_checks": ["cpp_names", "errors", "expression", "formula", "formula_scope", "model"],
    "node_analysis": [
        "cpp_names", "errors", "formula", "formula_checks", "formula_scope", "model",
        "autograd_plan", "saved_attributes", "schema", "type_table",
    ],
    "tangent_analysis": [
        "cpp_names", "errors", "formula", "formula_checks", "formula_scope", "model",
        "node_analysis", "autograd_plan",
    ],
    "kernel_analysis": [
        "cpp_names", "formula_scope", "model", "node_analysis", "autograd_plan", "schema",
        "tangent_analysis",
    ],
    "forms": ["errors", "model", "schema", "variants"],
    "autograd_analysis": [
        "call_plan", "errors", "formula_scope", "forms", "kernel_analysis", "model",
        "node_analysis", "autograd_plan", "schema", "type_table",
    ],
    "layout_analysis": [
        "call_plan", "cpp_names", "dispatch_keys", "errors", "model", "plan", "schema",
        "type_table",
    ],
    "call_analysis": ["cpp_defaults", "cpp_names", "autograd_plan", "model", "plan", "type_table"],
    "precomputed": [
        "cpp_names", "errors", "model", "plan", "schema", "schema_parser", "type_table",
    ],
    "sample_analysis": ["dtypes", "errors", "forms", "model", "schema"],
    "argument_checks": [
        "autograd_plan", "call_plan", "cpp_names", "dispatch_keys", "model", "plan", "schema",
    ],
    "dtype_analysis": [
        "call_plan", "cpp_names", "dispatch_keys", "errors", "model", "plan", "schema",
        "type_table",
    ],
    "ufunc_analysis": ["cpp_names", "dtypes", "errors", "model", "plan"],
    "structured_analysis": [
        "cpp_names", "errors", "model", "plan", "precomputed", "schema", "type_table",
        "ufunc_analysis", "variants",
    ],
    "shape_vocabulary": ["errors", "model"],
    "shape_expression": ["cpp_names", "dtypes", "errors", "schema", "shape_vocabulary"],
    "rule_checks": ["errors", "model", "shape_expression", "shape_vocabulary"],
    "batching_analysis": [
        "cpp_names", "errors", "model", "plan", "schema", "shape_expression", "shape_vocabulary",
        "structured_analysis", "type_table",
    ],
    "meta_rules": [
        "cpp_names", "errors", "model", "rule_checks", "schema", "shape_expression",
        "shape_vocabulary",
    ],
    "rule_calls": [
        "cpp_names", "call_analysis", "call_plan", "dispatch_keys", "errors", "layout_analysis",
        "meta_rules",
        "model", "plan", "schema", "type_table",
    ],
    "structured_calls": [
        "cpp_names", "call_analysis", "call_plan", "dispatch_keys", "layout_analysis", "model",
        "plan", "schema",
        "structured_analysis", "type_table",
    ],
    "declared_forms": ["call_plan", "forms", "model", "schema", "variants"],
    "form_tags": ["errors", "model", "schema", "variants"],
    "dispatch_analysis": [
        "argument_checks", "cpp_names", "call_analysis", "call_plan", "declared_forms",
        "dispatch_keys", "dtype_analysis", "errors",
        "layout_analysis", "meta_rules", "model", "plan", "rule_calls", "structured_analysis",
        "structured_calls",
    ],
    "override_analysis": [
        "cpp_names", "autograd_plan", "dispatch_analysis", "dispatch_keys", "errors", "model",
        "plan", "spec_keys",
    ],
    "generated_operators": [
        "autograd_analysis", "errors", "forms", "model", "schema", "variants",
    ],
    "analysis": [
        "argument_checks", "autograd_analysis", "autograd_plan", "batching_analysis",
        "call_analysis", "cpp_names",
        "declared_forms", "derivative_helpers", "dispatch_analysis", "errors", "form_tags", "forms",
        "formula", "formula_calls", "generated_operators", "layout_analysis", "model",
        "override_analysis", "plan", "rule_calls", "sample_analysis", "structured_analysis",
        "torch_functions",
    ],
    "template": [],
    "output": ["layout"],
    "structured_text": ["call_plan", "plan", "template"],
    "tangent_text": ["autograd_plan", "output", "template"],
    "list_text": ["call_plan", "plan"],
    "autograd_text": [
        "autograd_plan", "list_text", "output", "plan", "tangent_text", "template",
    ],
    "form_text": ["call_plan", "schema"],
}  # fmt: skip
FOR_EMITTERS = {
    "autograd_plan", "autograd_text", "call_plan", "dtypes", "form_text", "list_text", "plan",
    "structured_text", "template",
    "output",
}  # fmt: skip
MOST_LINES_OF_A_FILE, MOST_LINES_OF_A_FUNCTION = 320, 45
# Literals that are names of operators only by chance, and what they are here.
WORDS = {
    "scatter": "the name of a form of a view",
    **dict.fromkeys(
        ("cat", "max", "min", "equal", "greater", "less", "not_equal"),
        "functions and comparisons of a rule",
    ),
    "any": "strides that a kernel copes with, in a rule",
    "contiguous": "strides that a kernel needs, in a rule",
    "dim": "the number of dimensions, in a rule",
    "numel": "the number of elements, in a rule",
    "size": "the shape of a result, in a rule",
    "add": "part of an in-place name of Python's, __iadd__",
    "complex": "a schema type, and the name of a dtype",
    "div": "part of an in-place name of Python's",
    "mul": "part of an in-place name of Python's",
    "pin_memory": "an argument that belongs to the tensor options",
    "range": "the numbers below another, in a rule",
    "pow": "part of an in-place name of Python's",
    "std": "a namespace of C++",
    "sub": "part of an in-place name of Python's",
    "values": "the elements of a tensor, in a sample",
    "view_copy": "a tag",
}


def modules() -> dict[str, ast.Module]:
    """Every module of the generator, by its dotted name below the package."""
    return {
        path.relative_to(CODEGEN).with_suffix("").as_posix().replace("/", "."): ast.parse(
            path.read_text(encoding="utf-8")
        )
        for path in sorted(CODEGEN.rglob("*.py"))
    }


def imports(name: str, tree: ast.Module) -> tuple[set[str], set[str]]:
    """The modules of the generator, and the packages of others, that a module imports."""
    own: set[str] = set()
    others: set[str] = set()
    package = name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            others |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            others.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            if node.module and node.module != "emit":
                own.add(".".join([*base, node.module]))
            else:
                own |= {".".join([*base, node.module or "", a.name]).strip(".") for a in node.names}
    return {module.replace("..", ".") for module in own}, others


MODULES = modules()
EMITTERS = [name for name in MODULES if name.startswith("emit.") and name != "emit.__init__"]


def test_every_module_has_its_place_in_the_order() -> None:
    top = {name for name in MODULES if "." not in name} - {"__init__", "__main__"}
    assert top == set(ORDER)


@pytest.mark.parametrize("name", ORDER)
def test_a_module_imports_only_what_stands_before_it(name: str) -> None:
    own, _ = imports(name, MODULES[name])
    assert own <= set(ORDER[name])
    positions = list(ORDER)
    assert all(positions.index(module) < positions.index(name) for module in own)


@pytest.mark.parametrize("name", EMITTERS)
def test_an_emitter_imports_the_plan_and_how_to_spell_it(name: str) -> None:
    own, _ = imports(name, MODULES[name])
    assert own <= FOR_EMITTERS


def test_only_the_command_line_knows_all() -> None:
    own, _ = imports("__main__", MODULES["__main__"])
    assert set(EMITTERS) <= own
    assert {"analysis", "load", "output"} <= own
    for name in ("__init__", "emit.__init__"):
        assert imports(name, MODULES[name]) == (set(), set())


def test_every_emitter_runs() -> None:
    import codegen.__main__ as command_line

    found = {emitter.__name__.removeprefix("codegen.") for emitter in command_line.EMITTERS}
    assert found == set(EMITTERS)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_needs_the_standard_library_alone(name: str) -> None:
    _, others = imports(name, MODULES[name])
    allowed = {"yaml"} if name == "yaml_reader" else set()
    assert others - set(sys.stdlib_module_names) <= allowed


def operator_names() -> set[str]:
    """The names of all operators of PyTorch's and of the project's own YAML."""
    files = [ROOT / "native_functions.yaml"]
    try:
        import torchgen
    except ImportError:
        pass
    else:
        packaged = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"
        files.append(packaged / "native_functions.yaml")
    names: set[str] = set()
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("- func: "):
                name = line.removeprefix("- func: ").partition("(")[0]
                names |= {name, name.partition(".")[0]}
    return names


def literals(tree: ast.Module) -> set[str]:
    """The string literals of a module, docstrings left out, with the words of lists in one."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    split = {
        id(node.func.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "split"
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in docstrings:
                found |= set(node.value.split()) if id(node) in split else {node.value}
    return found


@pytest.mark.parametrize("name", MODULES)
def test_no_operator_is_named(name: str) -> None:
    assert literals(MODULES[name]) & operator_names() - WORDS.keys() == set()


def test_words_that_are_also_operators_are_all_used() -> None:
    used = set().union(*map(literals, MODULES.values()))
    assert WORDS.keys() - used == set()
    newer = {"dim", "numel"} if version() < (2, 13) else set()  # operators of later versions only
    assert WORDS.keys() - newer <= operator_names()


@pytest.mark.parametrize("name", MODULES)
def test_a_file_and_its_functions_are_small(name: str) -> None:
    tree = MODULES[name]
    path = CODEGEN / (name.replace(".", "/") + ".py")
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES_OF_A_FILE
    long = {
        node.name: length
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (length := (node.end_lineno or 0) - node.lineno + 1) > MOST_LINES_OF_A_FUNCTION
    }
    assert long == {}


def test_no_two_test_files_have_one_name() -> None:
    # pytest imports the second as the first, where one process runs both folders
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize("name", MODULES)
def test_a_file_says_its_licence_and_its_place(name: str) -> None:
    path = CODEGEN / (name.replace(".", "/") + ".py")
    assert path.read_text(encoding="utf-8").startswith("# SPDX-License-Identifier: BSD-3-Clause\n")
    if name != "emit.__init__":
        assert ast.get_docstring(MODULES[name])


def test_names_of_tags_are_those_of_torch() -> None:
    torchgen = pytest.importorskip("torchgen")
    from codegen.load import TAGS

    tags = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native" / "tags.yaml"
    entries = yaml.safe_load(tags.read_text(encoding="utf-8"))
    assert {entry["tag"] for entry in entries} <= set(TAGS)
