# SPDX-License-Identifier: BSD-3-Clause
"""Memory layouts that a kernel meets: each gives a tensor of the same shape, strided otherwise."""

import torch


def transposed(t):
    """Column-major: the first and the last dimension have changed places."""
    return t.transpose(0, -1).contiguous().transpose(0, -1)


def strided_slice(t):
    """Every second element: no dimension has stride one."""
    result = t.new_zeros((*t.shape[:-1], 2 * t.shape[-1]))[..., ::2]
    return result.copy_(t)


def padded_rows(t):
    """Rows are contiguous, but apart."""
    result = t.new_zeros((*t.shape[:-1], t.shape[-1] + 3))[..., : t.shape[-1]]
    return result.copy_(t)


def offset(t):
    """Starts one element into its storage, so that vectors are not aligned."""
    return t.new_zeros(t.numel() + 1)[1:].view(t.shape).copy_(t)


def expanded(t):
    """One row repeated by stride zero (the values are those of that row)."""
    return t.narrow(0, 0, 1).expand(t.shape)


def broadcast_last(t):
    """One column repeated by stride zero in the dimension that kernels vectorize."""
    return t.narrow(-1, 0, 1).expand(t.shape)


def channels_last(t):
    return t.contiguous(memory_format=torch.channels_last)


# Layout and the numbers of dimensions that it is made for.
LAYOUTS = {
    transposed: range(2, 5),
    strided_slice: range(1, 5),
    padded_rows: range(2, 5),
    offset: range(5),
    expanded: range(1, 5),
    broadcast_last: range(1, 5),
    channels_last: range(4, 5),
}

LAYOUTS_OF_A_MATRIX = [layout for layout, dimensions in LAYOUTS.items() if 2 in dimensions]


def in_layout(layout, t):
    """The tensor in that layout where it has the dimensions for it, else as it is."""
    return layout(t) if t.dim() in LAYOUTS[layout] else t
