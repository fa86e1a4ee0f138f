# SPDX-License-Identifier: BSD-3-Clause
"""A small decoder-only transformer over characters.

In the shapes below B is the batch, T the number of characters, D the width, H the number of heads
and V the number of different characters.
"""

from dataclasses import dataclass

import torch
from operators import Ops
from torch import Tensor, nn


@dataclass(frozen=True)
class ModelConfig:
    """The sizes of the model."""

    vocabulary: int
    block: int = 64
    width: int = 128
    heads: int = 4
    layers: int = 2
    hidden: int = 256


class RMSNorm(nn.Module):
    """Root mean square norm over the last dimension, with a learned weight."""

    def __init__(self, width: int, ops: Ops) -> None:
        super().__init__()
        self.ops = ops
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)"""
        return self.ops.rms_norm(x, self.weight)


class Attention(nn.Module):
    """Causal self-attention, spelled out so that its softmax is an operator of `ops`."""

    mask: Tensor

    def __init__(self, config: ModelConfig, ops: Ops) -> None:
        super().__init__()
        self.ops, self.heads = ops, config.heads
        self.to_qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.to_out = nn.Linear(config.width, config.width, bias=False)
        # One learned scale a head: it broadcasts over (B, H, T, T), its gradient is summed back.
        scale = (config.width // config.heads) ** -0.5
        self.scale = nn.Parameter(torch.full((config.heads, 1, 1), scale))
        future = torch.full((config.block, config.block), float("-inf")).triu(diagonal=1)
        self.register_buffer("mask", future)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)"""
        batch, length, width = x.shape
        qkv = self.to_qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (B, H, T, D / H)
        scores = self.ops.mul(query @ key.transpose(-2, -1), self.scale)  # (B, H, T, T)
        weights = self.ops.softmax(self.ops.add(scores, self.mask[:length, :length]), -1)
        mixed = (weights @ value).transpose(1, 2).reshape(batch, length, width)
        return self.to_out(mixed)


class SwiGLU(nn.Module):
    """Feed-forward layer whose hidden values are gated by the SiLU of their other half."""

    def __init__(self, config: ModelConfig, ops: Ops) -> None:
        super().__init__()
        self.ops = ops
        self.to_hidden = nn.Linear(config.width, 2 * config.hidden, bias=False)
        self.to_out = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)"""
        return self.to_out(self.ops.silu_and_mul(self.to_hidden(x)))


class Residual(nn.Module):
    """`x + gain * layer(norm(x))`, with a learned gain a channel.

    The parameter is the gain's distance from 1, so that weight decay pulls the gain to 1 and not
    to 0; `step` makes it move slower than the other parameters.
    """

    step: Tensor

    def __init__(self, layer: nn.Module, config: ModelConfig, ops: Ops) -> None:
        super().__init__()
        self.ops, self.layer = ops, layer
        self.norm = RMSNorm(config.width, ops)
        self.offset = nn.Parameter(torch.zeros(config.width))
        self.register_buffer("step", torch.full((config.width,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)"""
        gain = self.ops.muladd(self.offset, self.step, 1.0)  # (D,)
        return self.ops.add(x, self.ops.mul(self.layer(self.norm(x)), gain))


class CharLM(nn.Module):
    """Characters in, logits of the next character out."""

    def __init__(self, config: ModelConfig, ops: Ops) -> None:
        super().__init__()
        self.ops, self.config = ops, config
        self.characters = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.block, config.width)
        blocks: list[nn.Module] = []
        for _ in range(config.layers):
            blocks.append(Residual(Attention(config, ops), config, ops))
            blocks.append(Residual(SwiGLU(config, ops), config, ops))
        self.blocks = nn.Sequential(*blocks)
        self.norm = RMSNorm(config.width, ops)
        self.to_logits = nn.Linear(config.width, config.vocabulary, bias=False)
        self.apply(_initialise)

    def forward(self, tokens: Tensor) -> Tensor:
        """int64 (B, T) -> logits (B, T, V)"""
        positions = self.positions.weight[: tokens.shape[1]]  # (T, D)
        x = self.ops.add(self.characters(tokens), positions)
        return self.to_logits(self.norm(self.blocks(x)))


def _initialise(module: nn.Module) -> None:
    """Small normal weights: the first loss is then close to ln(V)."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
