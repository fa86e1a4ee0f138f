# SPDX-License-Identifier: BSD-3-Clause
"""Changes the code generator in one place after another, and sees whether its tests find it.

`make mutants`: cosmic-ray's mutations of codegen/, a sample of places with a fixed seed, one
mutation for each. Each runs tests/codegen in a copy of the checkout, the quickest file first, until
a test fails. Ends with 1 where fewer than 90 % are found, or where one that is not found is not
explained in unchanged.txt.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import difflib
import hashlib
import json
import os
import queue
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).parents[2]
EXPLAINED = Path(__file__).parent / "unchanged.txt"
LEAST = 0.9
# what looks at the text of codegen/ and not at what it does
OF_THE_TEXT = ("test_layers.py",)
# half a minute each, of a compiler and of upstream's whole file read again, for what others hold
LONG = (
    "test_upstream.py::test_a_shard_of_every_combination_compiles",
    "test_upstream.py::test_a_key_documented_to_change_nothing_changes_no_entry_of_upstream",
)


@dataclass(frozen=True)
class Mutant:
    """A file of codegen/ with one change."""

    path: str  # in the checkout
    definition: str  # the function or class that it is in, or ''
    text: str  # of the whole file
    diff: str  # the lines that differ

    @property
    def name(self) -> str:
        """The place and the changed lines, which stay when lines above them come and go."""
        return f"{self.path}:{self.definition}: {self.diff}"


def mutants(count: int, seed: int) -> list[Mutant]:
    """So many places of the code generator, each with one of its mutations. Which ones depends on
    the text of each place alone: they stay when other code changes."""
    places: dict[str, tuple[str, str, list[tuple[str, int]]]] = {}
    for path in sorted((ROOT / "codegen").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        code = path.read_text(encoding="utf-8")
        lines, tree = code.splitlines(), get_ast(code)
        for operator_name in sorted(cosmic_ray.plugins.operator_names()):
            operator = cosmic_ray.plugins.get_operator(operator_name)
            if operator.arguments() or operator_name == "core/NoOp":
                continue
            found = (
                (ASTQuery(node).get_definition_name() or "", *position)
                for node in ast_nodes(tree)
                for position in operator().mutation_positions(node)
            )
            for occurrence, (definition, start, end) in enumerate(found):
                text = " ".join(line.strip() for line in lines[start[0] - 1 : end[0]])
                place = f"{seed} {name} {definition} {text} {start[1]} {end[1]}"
                places.setdefault(place, (name, definition, []))[2].append(
                    (operator_name, occurrence)
                )
    drawn: list[Mutant] = []
    for place in sorted(places, key=_number_of):
        if len(drawn) == count:
            break
        name, definition, mutations = places[place]
        mutant = _mutant(name, definition, *mutations[_number_of(place) % len(mutations)])
        if mutant is not None:
            drawn.append(mutant)
    return drawn


def _number_of(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _mutant(path: str, definition: str, operator_name: str, occurrence: int) -> Mutant | None:
    """The file with a mutation; None where it is no Python, or where only an annotation differs,
    which nothing evaluates."""
    code = (ROOT / path).read_text(encoding="utf-8")
    operator = cosmic_ray.plugins.get_operator(operator_name)()
    mutated = mutate_code(code, operator, occurrence)
    try:
        if mutated is None or _without_annotations(code) == _without_annotations(mutated):
            return None
    except SyntaxError:
        return None
    lines = difflib.unified_diff(code.splitlines(), mutated.splitlines(), n=0, lineterm="")
    diff = " ".join(" ".join(x.split()) for x in lines if x[:3] not in ("---", "+++", "@@ "))
    return Mutant(path, definition, mutated, diff)


class _Annotations(ast.NodeTransformer):
    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


def _without_annotations(code: str) -> str:
    return ast.dump(_Annotations().visit(ast.parse(code)))


class Copy:
    """A copy of the checkout, in which one mutant after another is tested."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)

    def run(self, files: list[str], *options: str, limit: float | None = None) -> str:
        """The tests in these files until one fails; returns 'passed', 'failed' or 'timeout'."""
        # a file that is written twice in a second has one time, and its bytecode would be stale
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["-rfE", "-p", "no:xdist", *(f"--deselect=tests/codegen/{x}" for x in LONG)]
        command += [*options, *files]
        try:
            status = subprocess.run(
                command,
                cwd=self.folder,
                env=environment,
                timeout=limit,
                check=False,
                stdout=(self.folder / "output.txt").open("w"),
                stderr=subprocess.STDOUT,
            ).returncode
        except subprocess.TimeoutExpired:
            return "timeout"
        return "passed" if status == 0 else "failed"

    def quickest_first(self) -> tuple[list[str], float]:
        """The files of tests/codegen, and the seconds that all take; an error where one fails."""
        files = sorted((self.folder / "tests" / "codegen").glob("test_*.py"))
        names = [f"tests/codegen/{p.name}" for p in files if p.name not in OF_THE_TEXT]
        began = time.monotonic()
        if self.run(names, "--junitxml=times.xml") != "passed":
            text = (self.folder / "output.txt").read_text()
            sys.exit(f"{text}\nerror: tests/codegen fails without a mutant")
        seconds: dict[str, float] = dict.fromkeys(names, 0.0)
        for case in ElementTree.parse(self.folder / "times.xml").iter("testcase"):
            name = case.get("classname", "").replace(".", "/") + ".py"
            seconds[name] = seconds.get(name, 0.0) + float(case.get("time", 0))
        return sorted(names, key=seconds.__getitem__), time.monotonic() - began

    def tested(self, mutant: Mutant, files: list[str], limit: float) -> tuple[str, str]:
        """What the tests say of a mutant, and the first that failed."""
        path = self.folder / mutant.path
        original = path.read_text(encoding="utf-8")
        path.write_text(mutant.text, encoding="utf-8")
        try:
            outcome = self.run(files, limit=limit)
        finally:
            path.write_text(original, encoding="utf-8")
        lines = (self.folder / "output.txt").read_text().splitlines()
        failed = [x for x in lines if x.startswith(("FAILED", "ERROR"))]
        return outcome, failed[0].split(" - ")[0] if failed and outcome == "failed" else ""


def _explained() -> dict[str, str]:
    """Why a mutant that no test finds changes nothing, by its name."""
    found, reason = {}, ""
    for line in EXPLAINED.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            found[line] = reason
    return found


def _results(mutants_: list[Mutant], jobs: int) -> Iterator[tuple[Mutant, str, str]]:
    """Each mutant with what the tests say of it, as they end."""
    copies = [Copy(ROOT / "build" / "mutants" / str(i)) for i in range(jobs)]
    files, seconds = copies[0].quickest_first()
    print(f"{len(files)} files of tests in {seconds:.0f} s, without a mutant", flush=True)
    free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
    for copy in copies:
        free.put(copy)

    def tested(mutant: Mutant) -> tuple[Mutant, str, str]:
        copy = free.get()
        try:
            return (mutant, *copy.tested(mutant, files, limit=60 + 10 * seconds))
        finally:
            free.put(copy)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(tested, m) for m in mutants_]):
            yield future.result()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "mutants.json")
    parser.add_argument("--again", action="store_true", help="those that were found before, too")
    options = parser.parse_args()
    drawn = mutants(options.mutants, options.seed)
    before = options.json.exists() and not options.again
    kept: dict[str, list[str]] = json.loads(options.json.read_text()) if before else {}
    kept = {name: result for name, result in kept.items() if result[0] != "passed"}
    waiting = [mutant for mutant in drawn if mutant.name not in kept]
    for count, (mutant, outcome, test) in enumerate(_results(waiting, options.jobs)):
        kept[mutant.name] = [outcome, test]
        options.json.write_text(json.dumps(kept, indent=1))
        if outcome == "passed":
            print(f"{count}: not found: {mutant.name}", flush=True)
    explained = _explained()
    survivors = [m for m in drawn if kept[m.name][0] == "passed"]
    unexplained = [m for m in survivors if m.name not in explained]
    share = 1 - len(survivors) / len(drawn)
    print(f"{len(drawn)} mutants, {share:.1%} found, {len(survivors)} not")
    for mutant in unexplained:
        print(f"not explained in {EXPLAINED.name}: {mutant.name}")
    return int(share < LEAST or bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())
