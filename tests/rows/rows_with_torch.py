# SPDX-License-Identifier: BSD-3-Clause
"""The operators of rowstest, written with torch's own, and arguments for them."""

import torch
from torch.nn import functional as F


def add_rms_norm(input, residual, weight, eps=1e-6):
    total = input + residual
    return F.rms_norm(total, total.shape[-1:], weight, eps), total


def cross_entropy(input, target, ignore_index=-100, label_smoothing=0.0):
    rows = input.reshape(-1, input.shape[-1])
    loss = F.cross_entropy(
        rows,
        target.reshape(-1),
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction="none",
    )
    return loss.reshape(target.shape)


def shifted(x, y):
    total = x + y.floor()
    return total, (x > y.mean(-1, keepdim=True)).expand(total.shape)


def apart(x, y, s):
    return (x * x + y.floor()).sum(-1) + s.floor(), (x + y.floor()).mean(-1)


def chosen(x, index, ignored=-100):
    is_there = index != ignored
    at = x.gather(-1, index.where(is_there, 0).unsqueeze(-1)).squeeze(-1)
    return (
        torch.where(is_there, at, 0),
        torch.where(is_there & (at > 0), 2 * x.sum(-1), 0),
        torch.where(is_there & ~(at < 0), at * at + 1, -1),
    )


def rotary(x, cos, sin):
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def thirds(x, y, s, index):
    first, middle, _ = x.chunk(3, -1)
    other = y.chunk(2, -1)[1]
    rows = [middle * s.unsqueeze(-1), 0 * middle, other - first.mean(-1, keepdim=True)]
    at = middle.gather(-1, index.unsqueeze(-1)).squeeze(-1)
    return torch.cat(rows, -1), at + (first * first).sum(-1), (middle + other).amax(-1)


def column_sums(x, s, like):
    product = x * s.unsqueeze(-1) * like
    return product.sum_to_size(like.shape), (x * like).sum(-1)


def quantize(input):
    scale = input.abs().amax(-1).clamp(min=1e-10) / 127
    values = (input / scale.unsqueeze(-1)).round().clamp(-128, 127)
    return values.to(torch.int8), scale.to(torch.float32)


def quantize_float8(input):
    scale = input.abs().amax(-1).clamp(min=1e-10) / 448
    values = (input / scale.unsqueeze(-1)).clamp(-448, 448)
    return values.to(torch.float8_e4m3fn), scale.to(torch.float32)


def in_halves(input, weight):
    first, second = input.chunk(2, -1)
    rows = torch.cat([first * second.mean(-1, keepdim=True), second.softmax(-1)], -1)
    return rows.to(torch.bfloat16), (first * weight).sum(-1).to(torch.float64)


def in_dtypes_of(x, w, s):
    first, second = x.chunk(2, -1)
    total = (first * w).sum(-1) * s
    return (
        (first.softmax(-1) * w + second).to(x.dtype),
        total.to(s.dtype),
        w.exp().expand(first.shape),
    )


# By name: the function, and what its arguments are: E has rows, C has rows of one element that
# broadcast, 2 and 3 have rows of as many slices, W belongs to all rows, S has one number for each
# row, I one integer.
WITH_TORCH = {
    "rms_norm": (lambda x, w=None: F.rms_norm(x, x.shape[-1:], w, 1e-6), "EW"),
    "layer_norm": (lambda x, w=None, b=None: F.layer_norm(x, x.shape[-1:], w, b), "EWW"),
    "add_rms_norm": (add_rms_norm, "EEW"),
    "softmax": (lambda x: x.softmax(-1), "E"),
    "log_softmax": (lambda x: x.log_softmax(-1), "E"),
    "logsumexp": (lambda x: x.logsumexp(-1), "E"),
    "cross_entropy": (cross_entropy, "EI"),
    "l2_normalize": (lambda x: F.normalize(x, dim=-1), "E"),
    "scaled": (lambda x, s: x * s.unsqueeze(-1) - x.amax(-1, keepdim=True), "ES"),
    "largest": (lambda x: (x.amax(-1), x.argmax(-1), x.gt(0).sum(-1)), "E"),
    "shifted": (shifted, "CW"),
    "same": (lambda x, y, s: (y.expand(x.shape), s * 1, s * (x.shape[-1] + 1)), "EES"),
    "apart": (apart, "CWS"),
    "chosen": (chosen, "EI"),
    "element": (lambda x, i: x.gather(-1, i.unsqueeze(-1)).squeeze(-1), "EI"),
    "column_sums": (column_sums, "ESW"),
    "silu_and_mul": (lambda x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], "2"),
    "gelu_and_mul": (
        lambda x: F.gelu(x.chunk(2, -1)[0], approximate="tanh") * x.chunk(2, -1)[1],
        "2",
    ),
    "rotary": (rotary, "2EE"),
    "thirds": (thirds, "32SI"),
    "closed": (lambda x, w: x.softmax(-1) * w, "EW"),
    "moments": (lambda x: (x.sum(-1), x.var(-1), x.amin(-1)), "E"),
}
# Those whose results are cast, which are rounded twice: torch's own must be too.
CAST = {
    "quantize": (quantize, "E"),
    "quantize_float8": (quantize_float8, "E"),
    "in_halves": (in_halves, "2W"),
    "in_dtypes_of": (in_dtypes_of, "2WS"),
}
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def arguments_of(name, rows, length, dtype=torch.float64, requires_grad=False):
    """Random arguments for an operator."""
    generator = torch.Generator().manual_seed(3)
    found = []
    for kind in {**WITH_TORCH, **CAST}[name][1]:
        size = {
            "E": (*rows, length), "2": (*rows, 2 * length), "3": (*rows, 3 * length),
            "C": (*rows, 1), "W": (length,), "S": rows, "I": rows,
        }[kind]  # fmt: skip
        if kind == "I":
            found.append(torch.randint(0, length, size, generator=generator))
        else:
            made = torch.randn(size, generator=generator, dtype=torch.float64).to(dtype)
            found.append(made.requires_grad_(requires_grad))
    return found


def as_tuple(results):
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)


def smooth(function):
    """A function without results that nothing is differentiated through."""

    def called(*arguments):
        return tuple(r for r in as_tuple(function(*arguments)) if r.is_floating_point())

    return called
