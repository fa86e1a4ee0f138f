# SPDX-License-Identifier: BSD-3-Clause
"""Operators of rows under torch.func, torch.compile and export."""

import math

import pytest
import torch
from every_path import PATHS
from rows_with_torch import WITH_TORCH, arguments_of, as_tuple, smooth


def close(found, expected):
    for own, value in zip(as_tuple(found), as_tuple(expected), strict=True):
        torch.testing.assert_close(own, value)


@pytest.mark.parametrize("name", WITH_TORCH)
def test_opcheck(rowstest, name):
    given = arguments_of(name, (2, 3), 5, torch.float32, requires_grad=True)
    torch.library.opcheck(getattr(rowstest, name).default, tuple(given))


@pytest.mark.parametrize("name", WITH_TORCH)
def test_vmap(rowstest, name):
    """Of every choice of arguments that have the batch's dimension."""
    operator, kinds = getattr(rowstest, name), WITH_TORCH[name][1]
    for choice in range(1, 2 ** len(kinds)):
        batched = [bool(choice >> i & 1) for i in range(len(kinds))]
        examples = [arguments_of(name, (3,), 5, torch.float64) for _ in range(2)]
        for i, value in enumerate(examples[1]):
            if batched[i] and value.is_floating_point():
                examples[1][i] = value * 2 + 1
            elif batched[i]:
                examples[1][i] = (value + 1) % 5
        given = [
            torch.stack([e[i] for e in examples]) if batched[i] else examples[0][i]
            for i in range(len(kinds))
        ]
        found = torch.vmap(operator, tuple(0 if is_one else None for is_one in batched))(*given)
        each = [as_tuple(operator(*e)) for e in examples]
        close(found, [torch.stack(values) for values in zip(*each)])


@pytest.mark.parametrize("name", WITH_TORCH)
def test_jacobians_of_both_modes_are_one(rowstest, name):
    given = arguments_of(name, (2,), 3)
    function = smooth(getattr(rowstest, name))
    rest = given[1:]
    reverse = torch.func.jacrev(lambda x: function(x, *rest))(given[0])
    forward = torch.func.jacfwd(lambda x: function(x, *rest))(given[0])
    close(reverse, forward)


COMPILED = ("rms_norm", "layer_norm", "softmax", "cross_entropy", "largest")
# The others take Inductor five seconds each.
BY_INDUCTOR = (("rms_norm", False), ("cross_entropy", True))


@pytest.mark.parametrize(
    ("name", "backend", "dynamic"),
    [
        pytest.param(
            name,
            backend,
            dynamic,
            marks=[pytest.mark.slow]
            * (backend == "inductor" and (name, dynamic) not in BY_INDUCTOR),
        )
        for name in COMPILED
        for backend in ("aot_eager_decomp_partition", "inductor")
        for dynamic in (False, True)
    ],
)
def test_compiled_functions_compute_the_same(rowstest, name, backend, dynamic):
    operator = smooth(getattr(rowstest, name))
    torch._dynamo.reset()
    compiled = torch.compile(operator, backend=backend, dynamic=dynamic, fullgraph=True)
    for rows, length in (((3,), 5), ((4,), 7)):
        given = arguments_of(name, rows, length, torch.float32, requires_grad=True)
        again = arguments_of(name, rows, length, torch.float32, requires_grad=True)
        found, expected = compiled(*given), operator(*again)
        close(found, expected)
        for results, leaves in ((found, given), (expected, again)):
            sum((r * r).sum() for r in results).backward()
            assert leaves[0].grad is not None
        for a, b in zip(given, again):
            if a.grad is not None:
                torch.testing.assert_close(a.grad, b.grad)


def test_inductor_sees_the_expression(rowstest):
    """One kernel for the operator and what stands around it, and no call of ours."""
    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    x = torch.randn(8, 64)
    compiled = torch.compile(lambda x: rowstest.rms_norm(x * 2) + 1, fullgraph=True)
    found, (code, *_) = run_and_get_code(compiled, x)
    torch.testing.assert_close(found, rowstest.rms_norm(x * 2) + 1)
    assert "rowstest" not in code
    assert code.count("cpp_fused") > 0


def test_batches_of_missing_tensors(rowstest):
    x, b = torch.randn(4, 3, 5), torch.rand(5) + 0.5
    for given in ((x, None), (x, b)):
        found = torch.vmap(rowstest.missing, in_dims=(0, None))(*given)
        close(found, rowstest.missing(*given))
    y, z = 0.5, 3.0
    expected = x * math.exp(y) - 1 / (1 + math.exp(-y)) + y * z, (x * y).sum(-1) + (x * z).amax(-1)
    close(rowstest.missing(x, None), expected)


@pytest.mark.parametrize("backend", ["aot_eager_decomp_partition", "inductor"])
def test_compiled_results_are_contiguous_too(rowstest, backend):
    torch._dynamo.reset()
    x = torch.randn(5, 3).t()
    functions = [
        lambda x: rowstest.softmax(x),
        lambda x: rowstest.rms_norm(x, torch.ones(5)),
        lambda x: rowstest.in_halves(torch.cat([x, x]).t())[0],
    ]
    for function in functions:
        compiled = torch.compile(function, backend=backend)(x)
        assert compiled.stride() == function(x).stride()
        close(compiled.view(-1), function(x).view(-1))


def test_what_is_opaque_is_called_by_compiled_code(rowstest):
    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    x = torch.randn(8, 64)
    compiled = torch.compile(lambda x: rowstest.closed(x * 2) + 1, fullgraph=True)
    found, (code, *_) = run_and_get_code(compiled, x)
    torch.testing.assert_close(found, (x * 2).softmax(-1) + 1)
    assert "rowstest.closed" in code


def test_a_length_that_is_not_known_is_exported(rowstest):
    class Norm(torch.nn.Module):
        def forward(self, x):
            halves = rowstest.silu_and_mul(x), rowstest.in_halves(x)[0]
            return rowstest.layer_norm(x), rowstest.moments(x)[1], *halves

    rows, half = torch.export.Dim("rows", min=2), torch.export.Dim("half", min=2)
    program = torch.export.export(
        Norm(), (torch.randn(3, 6),), dynamic_shapes={"x": {0: rows, 1: 2 * half}}
    )
    for size in ((4, 8), (2, 30)):
        x = torch.randn(size)
        close(program.module()(x), Norm()(x))


@pytest.mark.parametrize("path", PATHS)
def test_dtypes_are_checked(rowstest, path):
    x, w, s = torch.ones(2, 3), torch.ones(3, dtype=torch.bfloat16), torch.ones(2)
    with pytest.raises(Exception, match="w must have dtype float32 or float64, got bfloat16"):
        PATHS[path](lambda x, w, s: rowstest.weighted(x, w, s))(x, w, s)
