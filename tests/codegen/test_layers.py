# SPDX-License-Identifier: BSD-3-Clause
"""What keeps the generator readable: one direction of imports, small files, no operator's name."""

from __future__ import annotations

import ast
import graphlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

import codegen
from torchext.compat import version

CODEGEN = Path(codegen.__file__).parent
ROOT = CODEGEN.parent
# Packages and the modules beside them: each may import those that stand before it.
ORDER = (
    "errors", "schema", "spec", "fused", "cpp", "output", "plan", "formula", "analysis", "emit",
)  # fmt: skip
# What emitters import: how C++ is spelled, what to spell, and the values that a plan holds.
FOR_EMITTERS = {
    "cpp", "output", "plan", "emit.spelling", "schema.schema", "spec.dtypes", "fused.tree",
    "fused.functions", "fused.dtypes",
}  # fmt: skip
MOST_LINES_OF_A_FILE, MOST_LINES_OF_A_FUNCTION = 320, 45
# Literals that are names of operators only by chance, and what they are here.
WORDS = {
    "indices": "a member of an expression's struct",
    "scatter": "the name of a form of a view",
    **dict.fromkeys(
        ("cat", "max", "min", "equal", "greater", "less", "not_equal"),
        "functions and comparisons of a rule",
    ),
    **dict.fromkeys(
        ("concat", "floor_divide", "item", "real", "slice"), "functions of torchext/shape.h"
    ),
    "sym_numel": "a method of tensors in C++",
    "any": "strides that a kernel copes with, in a rule",
    "to": "a cast, as expressions write it",
    "expand": "a command, which prints the long form of a file",
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


# every module of the generator, by its dotted name below the package
PATHS = {
    path.relative_to(CODEGEN).with_suffix("").as_posix().replace("/", "."): path
    for path in sorted(CODEGEN.rglob("*.py"))
}
MODULES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in PATHS.items()}
PACKAGES = {name for name in MODULES if name.endswith(".__init__")}


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
            parts = package[: len(package) - node.level + 1]
            base = ".".join([*parts, *filter(None, [node.module])])
            is_module = base in PATHS
            own |= {base} if is_module else {f"{base}.{a.name}".strip(".") for a in node.names}
    return own, others


def is_within(module: str, places: Iterable[str]) -> bool:
    """Whether a module is one of these, or in one of these packages."""
    return any(module == place or module.startswith(f"{place}.") for place in places)


SPELLING = [name for name in MODULES if name.startswith("emit.") and name not in PACKAGES]
EMITTERS = [name for name in SPELLING if name.count(".") == 1]


def test_every_module_has_its_place_in_the_order() -> None:
    top = {name.partition(".")[0] for name in MODULES} - {"__init__", "__main__"}
    assert top == set(ORDER)


@pytest.mark.parametrize("name", sorted(MODULES.keys() - {"__main__"}))
def test_a_module_imports_only_what_stands_before_its_package(name: str) -> None:
    own, _ = imports(name, MODULES[name])
    assert own <= MODULES.keys()
    package = name.partition(".")[0]
    before = ORDER[: ORDER.index(package)] if package in ORDER else ()
    assert [module for module in own if not is_within(module, (*before, package))] == []


def test_no_imports_run_in_a_circle() -> None:
    graph = {name: imports(name, tree)[0] for name, tree in MODULES.items()}
    graphlib.TopologicalSorter(graph).prepare()  # raises on a circle


@pytest.mark.parametrize("name", SPELLING)
def test_an_emitter_imports_the_plan_and_how_to_spell_it(name: str) -> None:
    own, _ = imports(name, MODULES[name])
    assert [module for module in own if not is_within(module, FOR_EMITTERS)] == []


def test_only_the_command_line_knows_all() -> None:
    own, _ = imports("__main__", MODULES["__main__"])
    assert set(EMITTERS) <= own
    assert {"analysis.library", "spec.load", "output"} <= own
    for name in ("__init__", *PACKAGES):
        assert imports(name, MODULES[name]) == (set(), set())


def test_every_emitter_runs() -> None:
    import codegen.__main__ as command_line

    # what is compiled together follows from the files that the others make
    emitters = (*command_line.EMITTERS, command_line.units)
    found = {emitter.__name__.removeprefix("codegen.") for emitter in emitters}
    assert found == set(EMITTERS)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_needs_the_standard_library_alone(name: str) -> None:
    _, others = imports(name, MODULES[name])
    allowed = {"yaml"} if name in ("spec.yaml_nodes", "spec.yaml_reader") else set()
    assert others - set(sys.stdlib_module_names) <= allowed


# What a text of C++ has and a spec has not.
CPP = re.compile(r"::|;\s*$|\b(auto|const|template|typename) |\w\(\)|\w[(<]$")
# Packages that hold no C++: how it is written is the emitters' and cpp's, what authors wrote as
# formulas is read and rewritten by formula.
WITHOUT_CPP = ("schema", "spec", "plan", "analysis")
NOT_CPP = {
    "::": "behind a namespace, in a spec",
    "zeros_like(": "part of a formula, whose answer can be saved",
    "not_implemented(": "part of a formula, which gives no gradient",
}


@pytest.mark.parametrize("name", [n for n in MODULES if n.partition(".")[0] in WITHOUT_CPP])
def test_only_emitters_hold_cpp(name: str) -> None:
    held = {text for text in literals(MODULES[name]) if CPP.search(text) and not is_prose(text)}
    assert held - NOT_CPP.keys() == set()


def test_what_is_no_cpp_is_all_used() -> None:
    used = set().union(*map(literals, MODULES.values()))
    assert NOT_CPP.keys() - used == set()


def is_prose(text: str) -> bool:
    """Whether it is a documentation or a message, which may speak of C++."""
    return len(text.split()) > 3


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
    path = PATHS[name]
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
    path = PATHS[name]
    assert path.read_text(encoding="utf-8").startswith("# SPDX-License-Identifier: BSD-3-Clause\n")
    assert ast.get_docstring(MODULES[name])


def test_names_of_tags_are_those_of_torch() -> None:
    torchgen = pytest.importorskip("torchgen")
    from codegen.spec.load import TAGS

    tags = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native" / "tags.yaml"
    entries = yaml.safe_load(tags.read_text(encoding="utf-8"))
    assert {entry["tag"] for entry in entries} <= set(TAGS)
