# SPDX-License-Identifier: BSD-3-Clause
"""The operators of pointwisetest, written with torch's: what each is compared with."""

import torch


def swiglu(gate, up):
    return gate * torch.sigmoid(gate) * up


def scaled(x, weight=None, *, alpha=1):
    return x * (1 if weight is None else weight) + alpha


def affine(x, a, b):
    return x * a + b


def huber(x, y, delta=1.0):
    d = x - y
    distance = torch.abs(d)
    return torch.where(distance < delta, 0.5 * d**2, delta * (distance - 0.5 * delta))


def rotate(x, y, angle):
    c, s = torch.cos(angle), torch.sin(angle)
    return x * c - y * s, x * s + y * c


def larger(x, y):
    return torch.maximum(x, y) * 2, x > y


def chosen(mask, x, y):
    return torch.where(mask > 0, x, y)


def powered(x, n, twice=False):
    return 2 * x**n if twice else x**n


def stepped(x, y):
    return x * x + torch.floor(y)


def same(x):
    return x.clone()


def positive(x):
    return torch.logical_and(x > 0, ~torch.isnan(x))


def wrapped(x, y):
    return x % y


def adam(param, grad, mean, square, lr, beta1=0.9, beta2=0.999, eps=1e-8):
    m = torch.lerp(mean, grad, 1 - beta1)
    v = square * beta2 + (1 - beta2) * grad * grad
    return param - lr * m / (torch.sqrt(v) + eps), m, v
