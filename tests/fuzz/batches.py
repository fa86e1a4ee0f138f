# SPDX-License-Identifier: BSD-3-Clause
"""What is drawn at random and built: always the same for a number, and a process for each batch."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

Drawn = TypeVar("Drawn")


def drawn_one_by_one(strategy: st.SearchStrategy[Drawn], count: int, number: int) -> list[Drawn]:
    """So many examples of a strategy, always the same for a number. Each is drawn by itself: of one
    run most are the one before with a part that differs."""
    found: list[Drawn] = []
    for index in range(count):
        examples: list[Drawn] = []

        @seed(number * 100_000 + index)
        @settings(max_examples=5, database=None, deadline=None, phases=[Phase.generate],
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(strategy)
        def draw(example: Drawn) -> None:
            examples.append(example)  # noqa: B023  it is called in this round

        draw()
        found.append(examples[-1])
    return found


def arguments(what: str, total: int, batch: int, about: str = "") -> argparse.ArgumentParser:
    """The options of a command that builds batches."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument(f"--{what}", dest="total", type=int, default=total)
    parser.add_argument("--batch", type=int, default=batch, help=f"{what} of a library")
    parser.add_argument("--first", type=int, default=0, help="the number of the first batch")
    parser.add_argument("--only", action="store_true", help="this batch, in this process")
    return parser


def run_batches(script: str, what: str, options: argparse.Namespace, more: list[str]) -> int:
    """Run a script for batch after batch; 1 where one of them ends with an error."""
    failed = []
    count = -(-options.total // options.batch)
    for number in range(options.first, options.first + count):
        command = [sys.executable, script, "--only", "--first", str(number)]
        done = subprocess.run([*command, "--batch", str(options.batch), *more], check=False)
        if done.returncode:
            failed.append(number)
    print(f"{count} batches of {options.batch} {what}, {len(failed)} with differences: {failed}")
    return min(len(failed), 1)


def in_batches(
    script: str, what: str, run: Callable[[int, int], int], total: int, batch: int
) -> int:
    """The command of a script: one batch in this process, or each in one of its own."""
    options = arguments(what, total, batch).parse_args()
    if options.only:
        return min(run(options.first, options.batch), 1)
    return run_batches(script, what, options, [])
