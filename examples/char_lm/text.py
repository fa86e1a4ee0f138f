# SPDX-License-Identifier: BSD-3-Clause
"""The text that the model learns, as numbers, and the batches that every run sees."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

import torch
from torch import Tensor

# Comes with every torch wheel: about 600 kB of text with a clear form.
PACKAGE, FILE = "torchgen", "packaged/ATen/native/native_functions.yaml"


@dataclass(frozen=True)
class Text:
    """A text as the numbers of its characters."""

    alphabet: str
    tokens: Tensor  # int64 (length of the text,)

    def decode(self, tokens: Tensor) -> str:
        """int64 (n,) -> n characters"""
        return "".join(self.alphabet[token] for token in tokens.tolist())

    def encode(self, text: str) -> Tensor:
        """n characters -> int64 (n,)"""
        return torch.tensor([self.alphabet.index(character) for character in text])


def load_text() -> Text:
    """Reads native_functions.yaml out of the torch wheel."""
    content = files(PACKAGE).joinpath(FILE).read_text(encoding="utf-8")
    alphabet = "".join(sorted(set(content)))
    number = {character: index for index, character in enumerate(alphabet)}
    return Text(alphabet, torch.tensor([number[character] for character in content]))


def batches(
    text: Text, steps: int, batch: int, block: int, seed: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """`steps` pairs of inputs and targets, both int64 (batch, block); the same for the same seed.

    A target is the character that follows its input.
    """
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        starts = torch.randint(len(text.tokens) - block, (batch, 1), generator=generator)
        windows = text.tokens[starts + torch.arange(block + 1)]  # (batch, block + 1)
        yield windows[:, :-1].contiguous(), windows[:, 1:].contiguous()
