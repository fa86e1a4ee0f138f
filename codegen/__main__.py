# SPDX-License-Identifier: BSD-3-Clause
"""The command line: `gen`, the default, writes a library's sources; `check` reads the specs;
`expand` prints the operators without the short ways of writing them."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from .analysis.cuda_as import with_cuda_as
from .analysis.library import RESERVED_NAMESPACES, plan_library
from .cpp import names as cpp_names
from .emit import (
    autograd,
    batching,
    derivatives,
    dispatch,
    functionalize,
    fused,
    kernels,
    library,
    nodes,
    operator_table,
    ops,
    python_nodes,
    rules,
    schema,
    ufunc,
    units,
)
from .errors import Errors, SpecError
from .formula.helper_topics import read_topics
from .formula.torch_functions import installed_functions
from .fused.operators import lowered
from .fused.writing import written_derivatives, written_operators
from .output import FileSet
from .plan.library import Plan
from .schema.parser import LONGEST_NAME
from .spec.dispatch_keys import BACKENDS
from .spec.expansion import expanded
from .spec.load import load_derivatives, load_operators

EMITTERS = (
    library,
    kernels,
    ops,
    schema,
    dispatch,
    rules,
    ufunc,
    fused,
    functionalize,
    batching,
    nodes,
    autograd,
    derivatives,
    python_nodes,
    operator_table,
)
# With `--cuda-as`: what registers CUDA's kernels, which is loaded beside the whole library.
KERNEL_EMITTERS = (library, kernels, ops, dispatch, rules, ufunc, fused)
_MOST_ERRORS = 1000
# The hand-written headers that generated code includes: in a checkout and in an installation alike.
_RUNTIME_INCLUDE = Path(__file__).resolve().parent.parent / "csrc" / "include"
_INCLUDE_DIRS = (_RUNTIME_INCLUDE, _RUNTIME_INCLUDE / "torchext" / "replacements")


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit status: 0, 1 for mistakes in the specs, 2 for the call's."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] not in ("gen", "check", "expand", "-h", "--help"):
        arguments.insert(0, "gen")
    options = _parser().parse_args(arguments)
    try:
        if options.command == "expand":
            _expand(options.native_functions, options.derivatives)
            return 0
        with _no_garbage_collection():
            plan, rejected = load_plan(options)
            if options.command == "gen":
                emitters = EMITTERS
                if options.cuda_as:
                    plan, emitters = with_cuda_as(plan, options.cuda_as), KERNEL_EMITTERS
                write(plan, options.out, rejected if options.keep_going else None, emitters)
    except SpecError as error:
        count = len(error.diagnostics)
        rest = "" if error.is_complete else "; what follows was not read"
        print(f"{error}\n{count} error{'s' if count > 1 else ''}{rest}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: cannot write: {error}", file=sys.stderr)
        return 1
    return 0


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """What a run makes lives until it ends: looking for cycles in it takes a third of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m codegen", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, help_ in (
        ("gen", "write the sources (the default)"),
        ("check", "read the specs only"),
    ):
        command = commands.add_parser(name, help=help_)
        command.add_argument("--namespace", required=True, type=_namespace)
        command.add_argument("--native-functions", required=True, type=Path, metavar="FILE")
        command.add_argument("--derivatives", type=Path, metavar="FILE")
        command.add_argument(
            "--keep-going", action="store_true", help="leave out entries that have mistakes"
        )
        if name == "gen":
            command.add_argument("--out", required=True, type=_folder, metavar="DIR")
            command.add_argument(
                "--cuda-as", choices=BACKENDS, metavar="KEY",
                help="the kernels for CUDA alone, registered for another dispatch key",
            )  # fmt: skip
    command = commands.add_parser("expand", help="print the operators in upstream's form")
    command.add_argument("native_functions", type=Path, metavar="FILE")
    command.add_argument(
        "--derivatives", type=_namespace, metavar="NAMESPACE",
        help="print the formulas that follow from expressions, for the library of a namespace",
    )  # fmt: skip
    return parser


def _expand(path: Path, namespace: str | None) -> None:
    """Print the long form of a native_functions.yaml, or the formulas that follow from it; raises
    SpecError."""
    errors, name = Errors(limit=_MOST_ERRORS), _display_name(path)
    found = load_operators(path, name, errors)
    errors.raise_if_any()
    entries = lowered(namespace or "NS", found, [], errors)
    if namespace is None:
        made = expanded(path, name, errors) + written_operators(entries)
    else:
        made = written_derivatives(entries, [])
    errors.raise_if_any()
    sys.stdout.write(made)


def _folder(text: str) -> Path:
    if not text:  # which Path takes for the folder that the command runs in
        raise argparse.ArgumentTypeError("'' is no folder")
    return Path(text)


def _namespace(text: str) -> str:
    is_name = text.isidentifier() and text.isascii() and cpp_names.is_qualified(text)
    if not is_name or text in RESERVED_NAMESPACES:
        raise argparse.ArgumentTypeError(f"'{text}' cannot be the namespace of a library")
    if len(text) > LONGEST_NAME:
        raise argparse.ArgumentTypeError(f"a namespace has at most {LONGEST_NAME} characters")
    return text


def load_plan(options: argparse.Namespace) -> tuple[Plan, list[dict[str, str]]]:
    """The plan of the library, and with keep_going what was left out; raises SpecError."""
    errors = Errors(limit=None if options.keep_going else _MOST_ERRORS)
    files = [options.native_functions, *([options.derivatives] if options.derivatives else [])]
    names = tuple(_display_name(path) for path in files)
    found = load_operators(files[0], names[0], errors)
    derivatives = load_derivatives(files[1], names[1], errors) if len(files) > 1 else []
    helpers = _RUNTIME_INCLUDE / "torchext" / "derivatives"
    topics, functions = read_topics(helpers), installed_functions(helpers)
    rejected: dict[str, str] = {}
    while True:
        plan = plan_library(options.namespace, names, found, derivatives, errors, topics, functions)
        reasons = {d.operator: d.message for d in errors.diagnostics if d.operator}
        is_of_operators = all(d.operator for d in errors.diagnostics)
        if not (options.keep_going and is_of_operators and reasons.keys() - rejected.keys()):
            break
        # who calls what is left out is left out too
        rejected = {**reasons, **rejected}
        found = [op for op in found if str(op.name) not in rejected]
        derivatives = [d for d in derivatives if d.name.name.unqualified not in rejected]
        errors = Errors()
    errors.raise_if_any()
    return plan, [{"op": op, "reason": reason} for op, reason in rejected.items()]


def _display_name(path: Path) -> str:
    """How messages and comments call a file: never an absolute path, so that output is the same
    wherever a checkout stands, and always text, which the bytes of a path need not be."""
    name = path.name if path.is_absolute() else path.as_posix()
    return name.encode(errors="surrogateescape").decode(errors="replace")


def write(
    plan: Plan,
    out: Path,
    rejected: list[dict[str, str]] | None = None,
    emitters: Iterable[ModuleType] = EMITTERS,
) -> list[str]:
    """Write all files of the plan and the manifest; returns the paths that changed."""
    files = FileSet()
    for emitter in emitters:
        files.add(emitter.emit(plan))
    files.add(units.emit(plan, [*files.paths("part"), *files.paths("python_part")]))
    manifest: dict[str, Any] = {
        "namespace": plan.namespace,
        "sources": files.paths("source"),
        "vector_sources": files.paths("vector_source"),
        "parts": files.paths("part"),
        "headers": files.paths("header"),
        "include_dirs": [
            "include",
            *(Path(os.path.relpath(d, os.path.realpath(out))).as_posix() for d in _INCLUDE_DIRS),
        ],
        "python_sources": files.paths("python_source"),
        "python_parts": files.paths("python_part"),
        "python": files.paths("python"),
        "kernels": _kernels(plan),
        "falls_back": any(kernel.falls_back for op in plan.operators for kernel in op.kernels),
    }
    if rejected is not None:
        manifest["rejected"] = rejected
    return files.write(out, manifest)


def _kernels(plan: Plan) -> list[dict[str, str]]:
    """What the build says of a kernel that is missing or has another signature."""
    return [
        {
            "name": kernel.own,
            "prototype": kernel.declared.prototype(kernel.own) if kernel.declared else "",
            "schema": op.schema,
            "location": op.spec_line,
            "key": kernel.key,
        }
        for op in plan.operators
        for kernel in op.kernels
        if kernel.own and kernel.is_declared
    ] + [
        {
            "name": f"{class_}::{name}",
            "prototype": signature.prototype(f"{class_}::{name}"),
            "schema": op.schema,
            "location": op.spec_line,
            "key": key,
        }
        for op in plan.operators
        for class_, name, signature, key in (op.structured.functions() if op.structured else ())
    ]


if __name__ == "__main__":
    sys.exit(main())
