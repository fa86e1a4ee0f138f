# SPDX-License-Identifier: BSD-3-Clause
"""One training run, and writing with the model that came out of it."""

import math
import time
from dataclasses import dataclass
from statistics import median

import torch
import torch.nn.functional as F
from model import CharLM, ModelConfig
from operators import Ops
from text import Text, batches
from torch import Tensor


@dataclass(frozen=True)
class TrainingConfig:
    """What all runs share. Warm-up and clipping keep rounding differences from growing."""

    steps: int = 200
    batch: int = 16
    learning_rate: float = 2e-3
    warmup: int = 40
    weight_decay: float = 0.01
    largest_norm: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class Run:
    """What a training run leaves behind."""

    name: str
    losses: list[float]  # one a step
    seconds: list[float]  # one a step; the first has the compilation in it
    model: CharLM

    @property
    def step_seconds(self) -> float:
        """Median time of a step, the first left out where there are others."""
        return median(self.seconds[1:] or self.seconds)

    @property
    def first_seconds(self) -> float:
        """What the first step took beyond a usual one: for a compiled run, the compilation."""
        return max(0.0, self.seconds[0] - self.step_seconds)


def start_compiler() -> float:
    """Compiles a trifle and returns the seconds that took.

    The first compilation of a process loads the compiler; the runs should not be charged with that.
    """
    start = time.perf_counter()
    torch.compile(lambda x: x + 1)(torch.ones(64, requires_grad=True)).sum().backward()
    return time.perf_counter() - start


def learning_rate(step: int, config: TrainingConfig) -> float:
    """Rises linearly over the warm-up, then falls to zero along a cosine."""
    if step < config.warmup:
        return config.learning_rate * (step + 1) / config.warmup
    done = (step - config.warmup) / max(1, config.steps - config.warmup)
    return config.learning_rate * 0.5 * (1.0 + math.cos(math.pi * done))


def train(text: Text, sizes: ModelConfig, config: TrainingConfig, ops: Ops, compiled: bool) -> Run:
    """Trains a new model from the common seed on the common batches."""
    torch.manual_seed(config.seed)
    model = CharLM(sizes, ops)

    def loss_of(inputs: Tensor, targets: Tensor) -> Tensor:
        """Two int64 (B, T) -> mean cross-entropy, a scalar."""
        return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

    forward = torch.compile(loss_of, fullgraph=True) if compiled else loss_of
    decay = config.weight_decay
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=decay, fused=True)
    losses, seconds = [], []
    every_batch = batches(text, config.steps, config.batch, sizes.block, config.seed)
    for step, (inputs, targets) in enumerate(every_batch):
        start = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, config)
        loss = forward(inputs, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.largest_norm)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    name = f"{ops.name} {'compiled' if compiled else 'eager'}"
    return Run(name, losses, seconds, model)


@torch.no_grad()
def write(model: CharLM, prompt: Tensor, length: int, seed: int) -> Tensor:
    """int64 (n,) -> int64 (length,): what the model writes after the prompt."""
    generator = torch.Generator().manual_seed(seed)
    tokens = prompt
    for _ in range(length):
        logits = model(tokens[None, -model.config.block :])[0, -1]  # (V,)
        # Below 1, the temperature makes likely characters likelier.
        likely = torch.softmax(logits / 0.7, dim=-1)
        following = torch.multinomial(likely, 1, generator=generator)
        tokens = torch.cat([tokens, following])
    return tokens[len(prompt) :]
