# SPDX-License-Identifier: BSD-3-Clause
"""Arguments that are written to and lie in one memory with another: a traced call computes what a
composite of ATen's does, or refuses by name."""

from __future__ import annotations

import contextlib
import itertools

import numpy
import pytest
import torch
from test_written_anywhere import mixed, mixed_ends, mixed_first, mixed_lists, mixed_none
from torch.testing import assert_close

BY_ATEN = {f.__name__: f for f in (mixed, mixed_ends, mixed_first, mixed_lists, mixed_none)}
SELECTED = {"rows": lambda b: (b[0], b[1]), "columns": lambda b: (b[:, 0], b[:, 1])}
# Of a base of [4, 4] two tensors of one shape, and whether they have elements in common.
PAIRS = {
    "one tensor": (lambda b: (b, b), True),
    "two views of all": (lambda b: (b.view(4, 4), b.view(4, 4)), True),
    "a detached one": (lambda b: (b, b.detach()), True),
    "transposed": (lambda b: (b, b.t()), True),
    "rows that overlap": (lambda b: (b[0:2], b[1:3]), True),
    "columns that overlap": (lambda b: (b[:, 0:2], b[:, 1:3]), True),
    "a row and a column": (lambda b: (b[1], b[:, 2]), True),
    "a diagonal and a row": (lambda b: (b.diagonal(), b[3]), True),
    "rows": (SELECTED["rows"], False),
    "columns": (SELECTED["columns"], False),
    "halves of rows": (lambda b: (b[:, :2], b[:, 2:]), False),
    "every second": (lambda b: (b.view(16)[::2], b.view(16)[1::2]), False),
    "a diagonal and the one above": (lambda b: (b[:3, :3].diagonal(), b.diagonal(1)), False),
    "empty": (lambda b: (b[:0], b[:0]), False),
    "a clone": (lambda b: (b, b.clone()), False),
}
TRACED_BY_TORCH = ("mixed_none", "mixed_lists")
REFUSED = "shares memory with .*; pass a .clone\\(\\) of one of them"
COMPILED = {
    "aot_eager": {"backend": "aot_eager"},
    "inductor": {},
    "dynamic": {"backend": "aot_eager", "dynamic": True},
}


def arguments(name, pair, x):
    """The call whose written arguments, or a read one, are the pair."""
    first, second = pair
    return {
        "mixed": (x, first, second, x),
        "mixed_none": (x, first, second, x),
        "mixed_ends": (first, x, second),
        "mixed_first": (first, second, x),
        "mixed_lists": (x, [first, second]),
    }[name]


def program(op, name, pair):
    def run(base):
        first, second = pair(base)
        x = torch.full_like(first, 0.5)
        op(*arguments(name, (first, second), x))
        return first + 0, second + 0

    return run


def compared(op, name, pair, how, base) -> bool:
    """Whether the call is refused; where it is not, it does what ATen's does in eager mode."""
    torch._dynamo.reset()
    expected_base, actual_base = base(), base()
    expected = program(BY_ATEN[name], name, pair)(expected_base)
    try:
        actual = how(program(op, name, pair))(actual_base)
    except Exception as error:  # of torch's compilers each has its own class
        assert "shares memory with" in str(error), error
        assert_close(actual_base, base())
        return True
    assert_close((actual, actual_base), (expected, expected_base))
    return False


def base():
    return torch.arange(16.0).view(4, 4) / 4


# Inductor, which takes longest, quickly for one of the operators.
IN_COMPILED = [
    pytest.param(
        *case, marks=[pytest.mark.slow] * (case[2] == "inductor" and case[0] != "mixed")
    )
    for case in itertools.product(BY_ATEN, PAIRS, COMPILED)
]  # fmt: skip


@pytest.mark.parametrize(("name", "pair", "compiler"), IN_COMPILED)
def test_views_in_a_compiled_function(name, pair, compiler, ops) -> None:
    how = lambda f: torch.compile(f, fullgraph=True, **COMPILED[compiler])  # noqa: E731
    views, overlap = PAIRS[pair]
    if pair == "a detached one" and name in TRACED_BY_TORCH:
        return  # the next test
    refused = compared(getattr(ops, name), name, views, how, base)
    assert not refused or overlap
    if overlap and name in ("mixed", "mixed_ends"):
        assert refused


@torch.library.custom_op("portedtest::by_library", mutates_args=["d", "e"])
def by_library(x: torch.Tensor, d: torch.Tensor, e: torch.Tensor, mask: torch.Tensor) -> None:
    mixed(x, d, e, mask)


def test_torch_traces_detached_tensors_as_two(ops) -> None:
    """Operators that return nothing are traced by torch, as those of torch.library: it knows views
    by autograd's base, which a detached tensor has not. When this fails, torch sees it."""
    detached = PAIRS["a detached one"][0]
    torch._dynamo.reset()
    expected = program(mixed_none, "mixed_none", detached)(base())
    for op in (ops.mixed_none, torch.ops.portedtest.by_library):
        f = torch.compile(program(op, "mixed_none", detached), backend="aot_eager", fullgraph=True)
        with pytest.raises(AssertionError, match="not close"):
            assert_close(f(base()), expected)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, contextlib.nullcontext])
@pytest.mark.parametrize("pair", PAIRS)
def test_inputs_that_are_views(pair, mode, ops) -> None:
    """AOTAutograd makes them of one input again."""
    torch._dynamo.reset()
    views, overlap = PAIRS[pair]

    def run(op, compiled):
        with mode():
            first, second = views(base())
            x = torch.full_like(first, 0.5)
            f = lambda a, b, x: op(x, a, b, x)[0] * 1  # noqa: E731
            f = torch.compile(f, backend="aot_eager", fullgraph=True) if compiled else f
            return f(first, second, x), first.clone(), second.clone()

    expected = run(mixed, False)
    if overlap:
        with pytest.raises(RuntimeError, match=REFUSED):
            run(ops.mixed, True)
    else:
        assert_close(run(ops.mixed, True), expected)


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", ["mixed", "mixed_ends", "mixed_first"])
def test_functionalize(name, pair, remove, ops) -> None:
    how = lambda f: torch.func.functionalize(f, remove=remove)  # noqa: E731
    views, overlap = PAIRS[pair]
    refused = compared(getattr(ops, name), name, views, how, base)
    # Where views are traced as copies, nothing says where they lie.
    assert not refused or overlap or remove == "mutations_and_views"
    assert refused or not overlap


def test_an_exported_program_refuses_too(ops) -> None:
    class Module(torch.nn.Module):
        def forward(self, base):
            base = base * 1
            return ops.mixed(base[0], base[1], base[1], base[2])[0] + 0

    program = torch.export.export(Module(), (base(),))
    with pytest.raises(RuntimeError, match=REFUSED):
        program.run_decompositions()


def test_the_words(ops) -> None:
    f = torch.func.functionalize(lambda b: ops.mixed(b[0], b[1], b[1], b[2])[0] + 0)
    words = r"portedtest::mixed: 'd' is written to and shares memory with 'e', and a call"
    with pytest.raises(RuntimeError, match=words):
        f(base())


# -- the geometry, beside numpy's


def views_of_a_line(count: int):
    """Strided views of 24 elements: (offset, sizes, strides)."""
    generator = torch.Generator().manual_seed(0)
    while count:
        dims = int(torch.randint(1, 4, (), generator=generator))
        sizes = torch.randint(1, 4, (dims,), generator=generator).tolist()
        strides = torch.randint(0, 9, (dims,), generator=generator).tolist()
        offset = int(torch.randint(0, 12, (), generator=generator))
        end = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
        if end < 24:
            count -= 1
            yield offset, sizes, strides


def test_common_elements_as_numpy_finds_them(ops) -> None:
    """Of 400 pairs of views by as_strided, as written argument and argument that is read."""
    found = [0, 0]
    views = views_of_a_line(800)
    for (o1, n1, s1), (o2, n2, s2) in zip(views, views, strict=True):
        if 0 in s1:
            continue  # what is written to overlaps itself

        def run(line):
            d, e = line.as_strided(n1, s1, o1), line.as_strided(n2, s2, o2)
            ops.mixed_first(e, d, torch.ones(()))
            return line * 1

        line = numpy.arange(24.0)
        by_numpy = [
            numpy.lib.stride_tricks.as_strided(line[o:], n, [8 * k for k in s])
            for o, n, s in ((o1, n1, s1), (o2, n2, s2))
        ]
        expected = numpy.shares_memory(*by_numpy)
        try:
            torch.func.functionalize(run)(torch.arange(24.0))
            refused = False
        except RuntimeError as error:
            refused = "shares memory" in str(error)
            if not refused:
                continue  # shapes that do not broadcast
        assert refused == expected, (o1, n1, s1, o2, n2, s2)
        found[expected] += 1
    assert min(found) > 40
