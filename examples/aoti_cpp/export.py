# SPDX-License-Identifier: BSD-3-Clause
"""Packages a small language model on torchext's operators for a C++ program.

Writes into a folder what `main.cpp` reads: the compiled model, the library of its operators, and
calls with the results that the model has for them in Python.
"""

import argparse
import shutil
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.export import Dim

import torchext
import torchext.ops  # registers namespace myns

myns = torch.ops.myns

VOCABULARY, LENGTH, WIDTH, HEADS, HIDDEN = 64, 16, 32, 4, 64
LARGEST_BATCH = 256


class Attention(nn.Module):
    """Causal self-attention, behind its norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.Parameter(torch.ones(WIDTH))
        self.to_qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.to_out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.scale = nn.Parameter(torch.full((HEADS, 1, 1), (WIDTH // HEADS) ** -0.5))
        future = torch.full((LENGTH, LENGTH), float("-inf")).triu(diagonal=1)
        self.register_buffer("mask", future)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, LENGTH, WIDTH) -> the same"""
        qkv = self.to_qkv(myns.rms_norm(x, self.norm)).unflatten(-1, (3, HEADS, -1))
        query, key, value = qkv.permute(2, 0, 3, 1, 4)  # each (batch, HEADS, LENGTH, WIDTH / HEADS)
        scores = myns.add(myns.mul(query @ key.mT, self.scale), self.mask)
        mixed = myns.softmax(scores, -1) @ value
        return self.to_out(mixed.transpose(1, 2).flatten(-2))


class Gate(nn.Module):
    """The gated feed-forward layer, behind its norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.Parameter(torch.ones(WIDTH))
        self.up = nn.Linear(WIDTH, 2 * HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, LENGTH, WIDTH) -> the same"""
        return self.down(myns.silu_and_mul(self.up(myns.rms_norm(x, self.norm))))


class LanguageModel(nn.Module):
    """A decoder of one block."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.attention, self.gate = Attention(), Gate()
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """int64 (batch, LENGTH) -> (batch, VOCABULARY): the logits of what follows"""
        x = self.embedding(tokens)
        x = myns.add_(self.attention(x), x)  # in place: the sum needs no memory of its own
        x = myns.add_(self.gate(x), x)
        return self.head(x[:, -1])


class Predictor(nn.Module):
    """The model as it is used: without gradients, which forms with `out=` do not have."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model.eval().requires_grad_(False)

    def forward(self, tokens: Tensor) -> Tensor:
        """int64 (batch, LENGTH) -> (batch, VOCABULARY): probabilities of what follows"""
        logits = self.model(tokens)
        return myns.softmax(logits, -1, out=torch.empty_like(logits))


def random_tokens(batch: int) -> Tensor:
    return torch.randint(VOCABULARY, (batch, LENGTH))


def export(predictor: Predictor) -> torch.export.ExportedProgram:
    """Exports the predictor for every batch up to LARGEST_BATCH."""
    sizes = ({0: Dim("batch", min=1, max=LARGEST_BATCH)},)
    return torch.export.export(predictor, (random_tokens(4),), dynamic_shapes=sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(0)
    predictor = Predictor(LanguageModel())
    package = folder / "model.pt2"
    torch._inductor.aoti_compile_and_package(export(predictor), package_path=str(package))
    shutil.copyfile(torchext.find_library("torchext"), folder / "operators.so")
    batches = [random_tokens(batch) for batch in (1, 7)]  # neither is that of the export
    calls = [{"tokens": tokens, "probabilities": predictor(tokens)} for tokens in batches]
    torch.save(calls, folder / "calls.pt")
    print(f"model.pt2, operators.so and calls.pt are in {folder}")


if __name__ == "__main__":
    main()
