# SPDX-License-Identifier: BSD-3-Clause
"""Trains one small language model four times and checks that the four runs agree.

{torchext's operators, PyTorch's own} x {eager, torch.compile(fullgraph=True)}: same initial
weights, same batches, float32 on the CPU. Exits with 1 where the losses of two runs part by more
than 1e-3 relative at any step.

    python examples/char_lm/train.py [--steps 200] [--out build/demo]

Read on in operators.py (what is compared), model.py, text.py, training.py and report.py.
"""

import argparse
import math
import os
import sys
import tempfile
from pathlib import Path

import report
import torch
from model import ModelConfig
from operators import MynsOps, TorchOps
from text import Text, load_text
from training import Run, TrainingConfig, start_compiler, train, write

PROMPT = "\n- func: "


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200, help="training steps of each run")
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder for results")
    arguments = parser.parse_args()
    if arguments.steps < 1:
        parser.error("--steps must be at least 1")
    return arguments


def train_all(text: Text, sizes: ModelConfig, config: TrainingConfig) -> list[Run]:
    """The four runs, one after the other."""
    runs = []
    for compiled in (False, True):
        for ops in (MynsOps(), TorchOps()):
            run = train(text, sizes, config, ops, compiled)
            print(f"{run.name}: {sum(run.seconds):.1f} s, loss {run.losses[-1]:.4f}", flush=True)
            runs.append(run)
    return runs


def main() -> int:
    """Runs the demo with an empty cache of compiled graphs, and returns the exit status.

    A graph in the usual cache holds the gradient formulas that an operator had when the graph was
    compiled, and is found again after the library was rebuilt with others.
    """
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        return demonstrate(arguments)


def demonstrate(arguments: argparse.Namespace) -> int:
    """Trains, reports, and returns the exit status."""
    torch.set_num_threads(min(2, torch.get_num_threads()))  # the model is too small for more
    text = load_text()
    sizes = ModelConfig(vocabulary=len(text.alphabet))
    config = TrainingConfig(steps=arguments.steps)
    print(
        f"{len(text.tokens)} characters, {sizes.vocabulary} different: "
        f"a model that knows nothing has loss ln({sizes.vocabulary}) = "
        f"{math.log(sizes.vocabulary):.3f}; {torch.get_num_threads()} threads"
    )
    print(f"starting the compiler: {start_compiler():.1f} s", flush=True)
    runs = train_all(text, sizes, config)

    print()
    report.print_table(runs)
    arguments.out.mkdir(parents=True, exist_ok=True)
    report.write_csv(arguments.out / "losses.csv", runs)
    report.write_json(arguments.out / "report.json", runs, sizes, config)
    report.write_picture(arguments.out / "losses.png", runs)
    print(f"losses.csv, report.json and losses.png are in {arguments.out}")

    written = write(runs[0].model, text.encode(PROMPT), length=200, seed=config.seed)
    print(f"\nwritten by the model on myns:\n{PROMPT}{text.decode(written)}\n")

    wrong = report.complaint(runs)
    if wrong is not None:
        print(f"FAILED: {wrong}", file=sys.stderr)
        return 1
    print("all four runs agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
