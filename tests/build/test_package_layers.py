# SPDX-License-Identifier: BSD-3-Clause
"""torchext/ has one direction of imports, those inside functions too; types alone may look back."""

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "torchext"


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All of a module but what is there for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        is_for_types = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if not is_for_types:
            yield child
            yield from statements(child)


def imports(name: str) -> set[str]:
    """The modules of torchext that a module imports anywhere, and that it is not part of."""
    path = MODULES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - (node.level - 1)]
            base = ".".join([*above, *filter(None, [node.module])]) if node.level else node.module
            named = {f"{base}.{alias.name}" for alias in node.names}
            found |= named & set(MODULES) or {base}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    # a package's own __init__ is run before its modules, whoever imports them
    own = {module for module in found & set(MODULES) if not f"{name}.".startswith(f"{module}.")}
    return own - {name}


def test_no_imports_run_in_a_circle():
    graph = {name: imports(name) for name in MODULES}
    assert graph["torchext.library"]
    list(graphlib.TopologicalSorter(graph).static_order())  # CycleError names the circle


def test_what_is_found_before_a_library_is_opened_needs_the_build_record_alone():
    assert imports("torchext.built_library") == {"torchext.toolchain.record"}
