# SPDX-License-Identifier: BSD-3-Clause
"""Mirrors PyTorch's differentiable operators, builds them, compares them with aten's, and reports.

python tests/upstream/run.py [--sample] [--entries NAME,...] [--json FILE] [--build DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_TESTS = Path(__file__).absolute().parents[1]
if __name__ == "__main__":
    # the modules here belong to a package, and must not stand in front of others' names
    sys.path[0:1] = [str(_TESTS), str(_TESTS.parent)]

import torch  # noqa: E402

from upstream import build, compare, report, samples, spec  # noqa: E402

SAMPLE = Path(__file__).absolute().parent / "sample.txt"
_CHUNK = 40  # operators a worker compares
_SECONDS = 1200  # for a chunk


def main(arguments: list[str] | None = None) -> int:
    """Run everything; returns 1 where anything falls short, else 0."""
    options = _parser().parse_args(arguments)
    folder = options.build or build.ROOT / "build" / "tests" / "upstream"
    flags = options.cxxflags.split()
    if options.sample:
        made = run_sample(folder, flags)
    else:
        part = "some" if options.entries else "all"
        made = run(options.entries, folder / f"{part}-{torch.__version__}", flags)
    print(report.text(made))
    if options.json:
        report.write(made, options.json)
    return 0 if report.is_clean(made) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", action="store_true", help=f"the entries of {SAMPLE.name} only")
    parser.add_argument(
        "--entries", type=lambda text: text.split(","), default=[], metavar="NAME,...",
        help="these entries of derivatives.yaml only",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report to a file too")
    parser.add_argument(
        "--build", type=Path, metavar="DIR", help="keep what is built and collected here"
    )
    parser.add_argument("--cxxflags", default="-O0", help="flags of the compiler (-O0)")
    return parser


def run_sample(folder: Path, flags: Iterable[str] = ("-O0",)) -> dict:
    """The report of the fixed sample, built in a part of `folder`."""
    rows = _sample_rows()
    opinfos = {opinfo for _, *own in rows for opinfo in own}
    return run(sample_entries(), folder / f"sample-{torch.__version__}", flags, opinfos)


def sample_entries() -> list[str]:
    """The entries of the fixed sample."""
    return [entry for entry, *_ in _sample_rows()]


def _sample_rows() -> list[list[str]]:
    """Each an entry of this torch and the OpInfos whose samples reach its operators."""
    known = spec.derivative_texts()
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines if line.split()[0] in known]


def run(
    entries: list[str], folder: Path, flags: Iterable[str], opinfos: Iterable[str] = ()
) -> dict:
    """Build and compare the entries, on the samples of some OpInfos or of all."""
    operators = spec.operators(entries)
    built = build.build(operators, folder, list(flags))
    wanted = operators if opinfos else spec.operators()
    calls = folder / "calls" if opinfos else folder.parent / f"calls-{torch.__version__}"
    reached = samples.collect([op.name for op in wanted], calls, opinfos)
    names = [op.name for op in operators if not report.untested(op, built, reached)]
    compared = compare_all(built.library, calls, names, folder) if built.library else {}
    return report.make(operators, built, reached, compared)


def compare_all(library: Path, calls: Path, names: list[str], folder: Path) -> dict[str, dict]:
    """What each column says of each operator; one that crashes its worker is a mismatch."""
    log = folder / "compared.jsonl"
    log.unlink(missing_ok=True)
    found: dict[str, dict] = {}
    left = list(names)
    while left:
        reason = _work(library, calls, left[:_CHUNK], log)
        begun = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        found |= {item["name"]: item["columns"] for item in begun if "name" in item}
        last = begun[-1].get("begin") if begun else left[0]
        if reason and last not in (None, *found):
            found[last] = _failed(reason)
        elif reason:
            raise SystemExit(f"error: a worker failed before it began: {reason}")
        left = [name for name in left if name not in found]
        print(f"{len(found)} of {len(names)} operators compared", file=sys.stderr, flush=True)
    return found


def _work(library: Path, calls: Path, names: list[str], log: Path) -> str:
    """Run a worker; returns why it did not finish, or ''."""
    paths = [str(_TESTS), str(_TESTS.parent), os.environ.get("PYTHONPATH", "")]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "upstream.worker", str(library), str(calls), str(log), *names]
    try:
        done = subprocess.run(
            command, env=environ, stderr=subprocess.PIPE, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return "it does not come to an end"
    if done.returncode == 0:
        return ""
    said = (done.stderr.strip().splitlines() or [""])[-1][:200]
    return f"crashed with {done.returncode}: {said}"


def _failed(reason: str) -> dict[str, dict]:
    columns = ("schema", *compare.COLUMNS)
    return {c: {"status": "mismatch", "calls": 0, "reason": reason} for c in columns}


if __name__ == "__main__":
    sys.exit(main())
