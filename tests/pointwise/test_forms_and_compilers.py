# SPDX-License-Identifier: BSD-3-Clause
"""In-place and out= forms, batches, traced programs and other devices of operators that are
expressions."""

import functools
import itertools
import os
import subprocess
import sys

import pytest
import torch
import written_with_torch as written
from every_path import traced
from library_build import ROOT
from torch._inductor.utils import run_and_get_code
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.testing import assert_close


def test_the_out_form_writes_as_atens(pointwisetest):
    gate, up = torch.randn(3, 5), torch.randn(5)
    expected = pointwisetest.swiglu(gate, up)
    for out in (torch.empty(0), torch.empty(3, 5), torch.empty(5, 3).t(), torch.empty(0).double()):
        found = pointwisetest.swiglu.out(gate, up, out=out)
        assert found is out
        assert_close(out, expected.to(out.dtype))
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        pointwisetest.swiglu.out(gate, up, out=torch.empty(3, 5, dtype=torch.long))
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        memory = torch.randn(20)
        pointwisetest.swiglu.out(memory[:15].view(3, 5), up, out=memory[2:17].view(3, 5))


def test_the_out_form_of_a_condition_converts_it(pointwisetest):
    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.bool):
        x = torch.tensor([3, -1, 0]).to(dtype)
        expected = pointwisetest.positive(x)
        assert expected.dtype == torch.bool
        for other in (torch.bool, torch.uint8, torch.int64, torch.float16, torch.float64):
            out = torch.empty(3, dtype=other)
            assert pointwisetest.positive.out(x, out=out) is out
            assert_close(out, expected.to(other))
    x = torch.tensor([1.0, -1.0, float("nan")])
    out = torch.empty(3)
    pointwisetest.positive.out(x, out=out)
    assert out.tolist() == [1, 0, 0]


def test_what_decides_on_no_dtype_bars_no_out_tensor(pointwisetest):
    """A result of float32 that is computed in float64, and one of bools in integers."""
    mask, x, y = torch.randn(3, dtype=torch.float64), torch.randn(3), torch.randn(3)
    expected = torch.where(mask > 0, x, y)
    for out in (torch.empty(3), torch.empty(0, dtype=torch.float64), torch.empty(3).half()):
        assert pointwisetest.one_of.out(mask, x, y, out=out) is out
        assert_close(out, expected.to(out.dtype))
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output"):
        pointwisetest.one_of.out(mask, x, y, out=torch.empty(3, dtype=torch.int64))
    bools = torch.tensor([True, False, True])
    own = bools.clone()
    assert pointwisetest.one_of_(own, ~bools, bools) is own
    assert own.tolist() == [False, False, False]


def test_the_in_place_form_writes_as_atens(pointwisetest):
    gate, up = torch.randn(3, 5), torch.randn(5)
    expected = pointwisetest.swiglu(gate, up)
    own = gate.clone()
    assert pointwisetest.swiglu_(own, up) is own
    assert torch.equal(own, expected)
    with pytest.raises(RuntimeError, match="output with shape"):
        pointwisetest.swiglu_(torch.ones(5), torch.ones(3, 5))
    with pytest.raises(RuntimeError, match="can't be cast"):
        pointwisetest.affine_(torch.ones(5, dtype=torch.int32), torch.ones(5), torch.ones(5))


def test_gradients_of_the_in_place_form_are_torchs(pointwisetest):
    torch.manual_seed(5)
    gate, up = (torch.randn(4, requires_grad=True) for _ in range(2))
    found = torch.autograd.grad(pointwisetest.swiglu_(gate.clone(), up).sum(), (gate, up))
    expected = torch.autograd.grad(written.swiglu(gate, up).sum(), (gate, up))
    assert_close(found, expected)


@pytest.mark.parametrize("dims", itertools.product([0, 1, None], repeat=3), ids=str)
def test_batches_are_those_of_a_loop(pointwisetest, dims):
    if set(dims) == {None}:
        return
    sizes = {0: (4, 3), 1: (3, 4), None: (3,)}
    given = [torch.randn(sizes[dim]) for dim in dims]
    found = torch.vmap(pointwisetest.affine, in_dims=dims)(*given)
    assert_close(found, torch.vmap(written.affine, in_dims=dims)(*given))
    found = torch.vmap(pointwisetest.rotate, in_dims=dims)(*given)
    assert_close(found, torch.vmap(written.rotate, in_dims=dims)(*given))


def test_inductor_sees_the_expression(pointwisetest):
    def chain(x, y, z):
        return pointwisetest.swiglu(x * 2, y) + z

    given = [torch.randn(8, 16, requires_grad=True) for _ in range(3)]
    found, codes = run_and_get_code(torch.compile(chain, fullgraph=True), *given)
    expected = chain(*given)
    assert_close(found, expected)
    (forward, *_) = codes
    assert "pointwisetest" not in forward  # no call of ours
    assert forward.count("for(int64_t x0") == 1  # one loop
    own, codes = run_and_get_code(lambda: torch.autograd.grad(found.sum(), given))
    assert_close(own, torch.autograd.grad(expected.sum(), given))
    assert not any("pointwisetest" in code for code in codes)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_what_is_computed_of_missing_tensors_is_compiled(pointwisetest, backend):
    torch._dynamo.reset()
    function = pointwisetest.missing
    compiled = torch.compile(function, backend=backend, fullgraph=True)
    x, b = torch.randn(5, requires_grad=True), torch.rand(5) + 0.5
    for given in ((x, None), (x, b)):
        expected = function(*given)
        assert_close(compiled(*given), expected)
        grads = [
            torch.autograd.grad(sum(r.sin().sum() for r in f(*given)), x)
            for f in (function, compiled)
        ]
        assert_close(*grads)
    same = function(x, torch.full((5,), 0.5))
    assert_close(function(x, None)[0], same[0])
    assert_close(function(x, None)[7], torch.full((5,), 1.5))


@pytest.mark.parametrize("name", ["closed", "closed_forms"])
def test_what_is_opaque_is_called_by_compiled_code(pointwisetest, name):
    torch._dynamo.reset()
    function = getattr(pointwisetest, name)

    def chain(x, y, z):
        return function(x * 2, y) + z

    given = [torch.randn(8, 16, requires_grad=True) for _ in range(3)]
    found, codes = run_and_get_code(torch.compile(chain, fullgraph=True), *given)
    expected = given[0] * 2 * torch.sigmoid(given[1]) + given[2]
    assert_close(found, expected)
    assert f"pointwisetest.{name}" in codes[0]
    own, codes = run_and_get_code(
        lambda: torch.autograd.grad(found.sum(), given, retain_graph=True)
    )
    assert f"pointwisetest.{name}_backward" in codes[0]
    assert_close(own, torch.autograd.grad(expected.sum(), given))
    batched = torch.func.vmap(function, (0, None))(given[0], given[1][0])
    assert_close(batched, given[0] * torch.sigmoid(given[1][0]))
    assert torch.autograd.gradgradcheck(
        function, [x[:2, :2].double() for x in given[:2]], check_fwd_over_rev=True
    )
    torch.library.opcheck(function.default, tuple(given[:2]))


LIBRARY = ROOT / "build" / "tests" / "pointwisetest" / "pointwisetest_library.so"
LOADED_LATE = """
import sys, torch, torchext
from torch._inductor.utils import run_and_get_code
torch.compile(torch.sin)(torch.ones(2))  # Inductor has looked for operators
ops = torchext.load_library(sys.argv[1])
x = torch.randn(8, requires_grad=True)
_, codes = run_and_get_code(torch.compile(lambda x: ops.swiglu(x, x)), x)
assert not any("pointwisetest" in code for code in codes), codes
"""


def test_inductor_sees_the_expressions_of_a_library_that_is_loaded_later(pointwisetest):
    command = [sys.executable, "-c", LOADED_LATE, LIBRARY]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    result = subprocess.run(
        command, check=False, env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("dynamic", [True, False])
def test_compiled_calls_of_all_kinds_agree(pointwisetest, dynamic):
    torch.manual_seed(2)

    def many(x, y, weight):
        a = pointwisetest.huber(x, y, delta=0.5)
        b, c = pointwisetest.rotate(a, y, weight)
        d, is_first = pointwisetest.larger(b, c)
        e = pointwisetest.chosen(is_first, d, x)
        f = pointwisetest.swiglu_(e.clone(), y)
        return pointwisetest.scaled(f, weight, alpha=2), pointwisetest.powered(x, 2, twice=True)

    compiled = torch.compile(many, fullgraph=True, dynamic=dynamic)
    for dtype, size in itertools.product([torch.float32, torch.bfloat16], [4, 6]):
        given = [torch.randn(size, 5).to(dtype) for _ in range(2)] + [torch.randn(5).to(dtype)]
        tolerance = {"rtol": 3e-2, "atol": 3e-2} if dtype == torch.bfloat16 else {}
        assert_close(compiled(*given), many(*given), **tolerance)


PROGRAMS = {
    "swiglu": lambda ops, x, y: ops.swiglu(x, y),
    "scaled": lambda ops, x, y: ops.scaled(x, alpha=2) + ops.scaled(x, y),
    "huber": lambda ops, x, y: ops.huber(x, y, 0.3),
    "rotate": lambda ops, x, y: ops.rotate(x, y, x)[0] * ops.rotate(x, y, y)[1],
    "larger": lambda ops, x, y: ops.larger(x, y)[0],
    "chosen": lambda ops, x, y: ops.chosen(x, y, x),
    "powered": lambda ops, x, y: ops.powered(x * x + 1, 3, True) + y,
    "wrapped": lambda ops, x, y: ops.wrapped(x, y),
    "same": lambda ops, x, y: ops.same(x) + ops.same(y),
}


BY_INDUCTOR = ("swiglu", "rotate", "wrapped")


@pytest.mark.parametrize(
    "name, backend",
    [*itertools.product(PROGRAMS, ["aot_eager"]), *itertools.product(BY_INDUCTOR, ["inductor"])],
)
def test_gradients_of_compiled_calls_are_torchs(pointwisetest, name, backend):
    """Gradients that nobody gave, numbers in the place of tensors, sizes that broadcast."""
    torch.manual_seed(4)
    torch._dynamo.reset()
    for sizes in ([(3, 5), (5,)], [(4, 1), (1, 6)]):
        found = []
        given = [torch.randn(size, dtype=torch.float64) for size in sizes]
        for ops in (pointwisetest, written):
            leaves = [x.clone().requires_grad_() for x in given]
            program = functools.partial(PROGRAMS[name], ops)
            if ops is pointwisetest:
                program = torch.compile(program, backend=backend, fullgraph=True)
            result = program(*leaves)
            grads = torch.autograd.grad(result.sum(), leaves, allow_unused=True)
            found.append([result.detach(), *(g for g in grads if g is not None and g.any())])
        assert_close(*found)


@pytest.mark.parametrize("name", ["swiglu", "scaled", "rotate", "larger", "adam"])
def test_the_composite_kernel_computes_the_same(pointwisetest, name):
    """What runs where there is no kernel, and what traced calls become."""
    op = getattr(pointwisetest, name).default
    torch.manual_seed(1)
    count = 4 if name == "adam" else len(op._schema.arguments) - (name == "scaled")
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        given = [torch.rand(3, 5).to(dtype) for _ in range(count)]
        given += [0.1] if name == "adam" else []
        found = op.decompose(*given)
        assert_close(found, op(*given))


def test_shapes_that_are_symbols_stay_so(pointwisetest):
    def program(x, y):
        values, _ = pointwisetest.larger(x, y)
        return pointwisetest.affine(values, y, x)

    x, y = torch.randn(4, 3), torch.randn(3)
    rows = torch.export.Dim("rows", min=2)
    module = torch.nn.Module()
    module.forward = program
    exported = torch.export.export(module, (x, y), dynamic_shapes=({0: rows}, None))
    for size in (2, 7):
        x = torch.randn(size, 3)
        assert_close(exported.module()(x, y), program(x, y))
    targets = [str(node.target) for node in exported.graph.nodes if node.op == "call_function"]
    assert "pointwisetest.affine.Tensor" in targets


def test_fake_tensors_have_the_strides_of_real_ones(pointwisetest):
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    y = torch.randn(5, 4).t()
    real = [pointwisetest.affine(x, y, y), *pointwisetest.rotate(x, y, x)]
    with FakeTensorMode() as mode:
        a, b = mode.from_tensor(x), mode.from_tensor(y)
        fake = [pointwisetest.affine(a, b, b), *pointwisetest.rotate(a, b, a)]
    assert [f.stride() for f in fake] == [r.stride() for r in real]


def test_operators_pass_torchs_own_checks(pointwisetest):
    x, y = (torch.rand(3, 4, requires_grad=True) for _ in range(2))
    torch.library.opcheck(pointwisetest.swiglu.default, (x, y))
    torch.library.opcheck(pointwisetest.rotate.default, (x, y, x))
    torch.library.opcheck(pointwisetest.larger.default, (x, y))
    torch.library.opcheck(pointwisetest.scaled.default, (x, None), {"alpha": 2})
    torch.library.opcheck(pointwisetest.swiglu_jvp.default, (x, y, x, y))
    torch.library.opcheck(pointwisetest.swiglu_backward.default, (x, x, y, [True, True]))
    torch.library.opcheck(
        pointwisetest.swiglu_double_backward.default, (x, None, y, x, y, [True, True, True])
    )


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(
    "name",
    [
        "affine",
        "larger",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("huber", "swiglu", "chosen")),
    ],
)
def test_compiled_results_lie_as_those_of_kernels(pointwisetest, name, dynamic):
    """Whatever the order in which the operators of the expression meet the arguments."""
    layouts = [
        torch.randn(4, 6),
        torch.randn(6, 4).t(),
        torch.randn(4, 12)[:, ::2],
        torch.randn(6).expand(4, 6),
        torch.randn(6),
        torch.randn(4, 1),
    ]
    operator = getattr(pointwisetest, name)
    count = 3 if name in ("affine", "chosen") else 2
    layouts = layouts[:4] if count == 3 else layouts
    compiled = traced(operator, dynamic)
    for given in itertools.product(layouts, repeat=count):
        found, expected = compiled(*given), operator(*given)
        for own, kernels in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected))):
            assert own.stride() == kernels.stride()
            assert_close(own, kernels)


EXPANDED = [
    lambda dtype: torch.arange(4).to(dtype).expand(6, 4),
    lambda dtype: torch.arange(6).to(dtype).expand(4, 6).t(),
    lambda dtype: torch.arange(24).to(dtype).view(4, 6).t(),
    lambda dtype: torch.arange(48).to(dtype).view(4, 12).t()[::2],
    lambda dtype: torch.arange(4).to(dtype),
]


FLOATS_OR_INTEGERS = [
    (torch.bfloat16, torch.float32),
    (torch.float32, torch.float64),
    (torch.float64, torch.float16),
    (torch.int32, torch.int64),
]
BOTH = [(torch.bfloat16, torch.int32), (torch.int64, torch.float16)]
OPERATORS = {
    **dict.fromkeys(["affine", "sum_and_product", "rotate"], [*FLOATS_OR_INTEGERS, *BOTH]),
    **dict.fromkeys(["one_of", "chosen"], FLOATS_OR_INTEGERS),  # both are not compared
}
IN_DTYPES = [
    (name, dtypes, place) for name, pairs in OPERATORS.items() for place, dtypes in enumerate(pairs)
]


@pytest.mark.parametrize("name, dtypes, place", IN_DTYPES, ids=str)
def test_results_lie_alike_wherever_inputs_are_converted(pointwisetest, name, dtypes, place):
    """A conversion is made before strides are looked at, and of an expanded tensor has others.

    A fifth of the pairs is compiled, another one with each dtypes.
    """
    operator = getattr(pointwisetest, name)
    count = 2 if name == "sum_and_product" else 3

    def strides(given, function=operator):
        found = function(*given)
        return [r.stride() for r in (found if isinstance(found, tuple) else (found,))]

    static = FakeTensorMode()
    for (i, one), (j, other) in itertools.product(enumerate(EXPANDED), repeat=2):
        given = [one(dtypes[0]), *[other(dtypes[1])] * (count - 1)]
        expected = strides(given)
        meta = [
            torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta") for t in given
        ]
        assert strides(meta) == expected
        with static:
            assert strides([*map(static.from_tensor, given)]) == expected
        with FakeTensorMode(shape_env=ShapeEnv()) as symbolic:
            found = strides([*map(symbolic.from_tensor, given)])
        hints = [[s.node.hint if isinstance(s, torch.SymInt) else s for s in f] for f in found]
        assert [*map(tuple, hints)] == expected
        if (i + j + place) % len(EXPANDED) == 0:
            assert strides(given, traced(operator)) == expected
        if one is EXPANDED[0] and other is EXPANDED[2]:
            torch._dynamo.reset()
            compiled = torch.compile(operator, backend="aot_eager_decomp_partition")
            assert strides(given, compiled) == expected
        if name == "sum_and_product":
            assert expected == [(given[0] + given[1]).stride()] * 2
