# SPDX-License-Identifier: BSD-3-Clause
"""Compares the runs with one another: table, CSV, JSON and a picture."""

import csv
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure  # without pyplot: draws with Agg, needs no screen
from model import ModelConfig
from training import Run, TrainingConfig

TOLERANCE = 1e-3


def differences(runs: list[Run]) -> list[float]:
    """For each step, the largest relative difference between the losses of any two runs."""
    return [_difference(row) for row in zip(*(run.losses for run in runs), strict=True)]


def _difference(losses: tuple[float, ...]) -> float:
    """Between the largest and the smallest, relative to the smallest; losses are positive."""
    if not all(map(math.isfinite, losses)):
        return math.inf  # min and max overlook a NaN
    return (max(losses) - min(losses)) / min(losses)


def complaint(runs: list[Run]) -> str | None:
    """None, or the first step at which two runs part, and which they are."""
    for step, difference in enumerate(differences(runs)):
        if difference <= TOLERANCE:
            continue
        losses = ", ".join(f"{run.name} {run.losses[step]:.7g}" for run in runs)
        return (
            f"the runs part at step {step + 1}: relative difference {difference:.2e}, "
            f"allowed {TOLERANCE:.0e} ({losses})"
        )
    return None


def print_table(runs: list[Run], every: int = 20) -> None:
    """Losses at every few steps, then the times of the runs."""
    parted = differences(runs)
    print("step", *(f"{run.name:>15}" for run in runs), "  difference")
    for step in sorted({0, *range(every - 1, len(parted), every), len(parted) - 1}):
        losses = (f"{run.losses[step]:15.6f}" for run in runs)
        print(f"{step + 1:4d}", *losses, f"{parted[step]:12.1e}")
    print(f"\n{'run':15s} {'median step':>12} {'compilation':>12} {'whole run':>12}")
    for run in runs:
        compilation = f"{run.first_seconds:10.1f} s" if "compiled" in run.name else f"{'-':>12}"
        step, whole = f"{run.step_seconds * 1e3:9.1f} ms", f"{sum(run.seconds):10.1f} s"
        print(f"{run.name:15s} {step} {compilation} {whole}")
    print(f"\nlargest relative difference over {len(parted)} steps: {max(parted):.2e}")


def write_csv(path: Path, runs: list[Run]) -> None:
    """One row a step: the losses of all runs and their largest relative difference."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["step", *(run.name for run in runs), "relative_difference"])
        columns = zip(*(run.losses for run in runs), differences(runs), strict=True)
        writer.writerows([step, *row] for step, row in enumerate(columns, start=1))


def write_json(path: Path, runs: list[Run], sizes: ModelConfig, config: TrainingConfig) -> None:
    """Everything that was measured, with what is needed to measure it again."""
    record: dict[str, Any] = {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "model": asdict(sizes),
        "training": asdict(config),
        "tolerance": TOLERANCE,
        "largest_relative_difference": max(differences(runs)),
        "relative_differences": differences(runs),
        "runs": [
            {
                "name": run.name,
                "losses": run.losses,
                "seconds": run.seconds,
                "median_step_seconds": run.step_seconds,
                "compilation_seconds": run.first_seconds if "compiled" in run.name else None,
            }
            for run in runs
        ],
    }
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def write_picture(path: Path, runs: list[Run]) -> None:
    """The losses above; below, on a log axis, how far the runs are apart."""
    figure = Figure(figsize=(8, 8), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    parted = differences(runs)
    steps = range(1, len(parted) + 1)
    # The curves cover one another: each is thinner than the one below it.
    for run, line_width in zip(runs, (8, 5, 3, 1), strict=True):
        above.plot(steps, run.losses, linewidth=line_width, label=run.name)
    above.set_ylabel("cross-entropy per character (nats)")
    above.legend()
    # A difference of exactly zero has no place on a log axis: it is left out.
    below.semilogy(steps, [value if value > 0 else float("nan") for value in parted])
    below.axhline(TOLERANCE, color="tab:red", linestyle="--", label="allowed")
    below.set_ylabel("largest relative difference")
    below.set_xlabel("step")
    below.legend()
    figure.savefig(path, dpi=120)
