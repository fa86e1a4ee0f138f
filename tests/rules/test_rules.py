# SPDX-License-Identifier: BSD-3-Clause
"""`meta:`: sizes, dtypes and strides of results in eager, Meta, fake and traced calls."""

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

ones = torch.ones


@pytest.fixture
def ops(rulestest):
    return rulestest


# Each case: the operator, its arguments, and what torch's own operators make of them.
CASES = {
    "one dimension replaced": ("replaced", (ones(2, 3, 4), 1, 7), lambda: ones(2, 7, 4)),
    "a negative dimension replaced": ("replaced", (ones(2, 3, 4), -1, 0), lambda: ones(2, 3, 0)),
    "two shapes broadcast": ("broadcasted", (ones(3, 1), ones(4).int()), lambda: ones(3, 4)),
    "three shapes broadcast": (
        "broadcasted",
        (ones(3, 1).int(), ones(1), ones(1, 5).double()),
        lambda: ones(3, 5).double(),
    ),
    "a reduction": ("reduced", (ones(2, 3, 4), [0, -1]), lambda: ones(2, 3, 4).sum((0, -1))),
    "a reduction that keeps dims": (
        "reduced",
        (ones(2, 3, 4), [1], True),
        lambda: ones(2, 3, 4).sum(1, True),
    ),
    "a reduction of all dims": ("reduced", (ones(2, 3).int(), []), lambda: ones(())),
    "a reduction of one dim": (
        "reduced_over_one",
        (ones(2, 3), -1),
        lambda: ones(2, 3).sum(-1, True),
    ),
    "a concatenation": (
        "joined",
        ([ones(2, 3), ones(2, 5).double()], 1),
        lambda: torch.cat([ones(2, 3), ones(2, 5).double()], 1),
    ),
    "a list": ("stacked", ([ones(2, 3), ones(2, 3)],), lambda: ones(2, 2, 3)),
    "integers": (
        "numbers",
        (ones(3, 5), 4, [6, 1]),
        lambda: ones(6, 1, 8, 3, 3, 3, 4, 2).long(),
    ),
    "an integer that is there": (
        "numbers",
        (ones(3, 5), 1, [], 9),
        lambda: ones(2, 15, 0, 9, 2, 1).long(),
    ),
    "windows": ("windows", (ones(2, 10), 3, 2), lambda: ones(2, 10).unfold(-1, 3, 2)),
    "given strides": ("fortran", (ones(3, 4),), lambda: ones(4, 3).bool().t()),
}


def over_cases():
    return pytest.mark.parametrize("case", CASES.values(), ids=[n.replace(" ", "_") for n in CASES])


def expected(case):
    result = case[2]()
    return result if case[0] == "fortran" else result.contiguous()


def converted(values, function):
    if isinstance(values, torch.Tensor):
        return function(values)
    if isinstance(values, (list, tuple)):
        return type(values)(converted(value, function) for value in values)
    return values


def described(tensor, number=lambda n: n):
    return tensor.dtype, [number(n) for n in tensor.shape], [number(n) for n in tensor.stride()]


@over_cases()
def test_a_kernel_is_given_the_result_that_the_rule_says(ops, case):
    result = getattr(ops, case[0])(*case[1])
    assert described(result) == described(expected(case))
    assert result.eq(1).all()


@over_cases()
def test_a_meta_call_gives_the_same(ops, case):
    result = getattr(ops, case[0])(*converted(case[1], lambda t: t.to("meta")))
    assert result.is_meta
    assert described(result) == described(expected(case))


@over_cases()
def test_symbolic_sizes_stay_symbolic(ops, case):
    mode = FakeTensorMode(shape_env=ShapeEnv())
    with mode:
        result = getattr(ops, case[0])(*converted(case[1], mode.from_tensor))
    hint = lambda n: n.node.hint if isinstance(n, torch.SymInt) else n  # noqa: E731
    assert described(result, hint) == described(expected(case))
    assert not any(e.is_number for e in mode.shape_env.replacements.values())


@over_cases()
def test_opcheck_passes(ops, case):
    torch.library.opcheck(getattr(ops, case[0]).default, case[1])


@over_cases()
def test_an_out_form_takes_a_tensor_of_any_shape_and_strides(ops, case):
    packet = getattr(ops, case[0])
    if "out" not in packet.overloads():
        assert case[0] in ("reduced_over_one", "stacked", "windows")
        return
    wanted = expected(case)
    shape = list(reversed(wanted.shape))
    for out in (
        torch.empty(0, dtype=wanted.dtype),
        torch.empty(shape, dtype=wanted.dtype).permute(list(reversed(range(wanted.dim())))),
    ):
        assert packet(*case[1], out=out) is out
        assert (out.dtype, out.shape) == (wanted.dtype, wanted.shape)
        assert out.eq(1).all()


def test_results_that_are_asked_for(ops):
    x, y = ones(2, 3), ones(2, 3).half()
    for mask in ([True, True], [True, False], [False, True], [False, False]):
        for other in (y, None):
            first, second = ops.pair(x, other, mask)
            assert (first is not None) == mask[0]
            assert (second is not None) == (mask[1] and other is not None)
            assert second is None or described(second) == described(y.double())


def test_several_results_are_written_to_several_out_tensors(ops):
    x, first, second = ones(2, 3), torch.empty(0), torch.empty(9, dtype=torch.int64)
    results = ops.outputs(x, out0=first, out1=second)
    assert results[0] is first and results[1] is second
    assert described(first) == described(x)
    assert described(second) == described(ones(6).long())
    with pytest.raises(RuntimeError, match="a result overlaps|two results are one tensor"):
        ops.outputs(ones(2).long(), out0=second[:2], out1=second[:2])


def test_an_out_form_on_meta_gets_the_strides_of_the_rule(ops):
    for device in ("cpu", "meta"):
        out = ops.fortran(ones(2, 3, device=device), out=torch.empty(0, device=device).bool())
        assert out.stride() == (1, 2)


def test_an_input_that_is_resized_as_a_result_is_read_before(ops):
    x = torch.arange(6).view(2, 3)
    ops.outputs(x, out0=(first := torch.empty(0).long()), out1=x)
    assert (first.shape, x.shape) == ((2, 3), (6,))


def test_the_device_is_that_of_a_tensor_that_is_there(ops):
    x = ones(2, device="meta")
    assert ops.beside(None, x).is_meta
    assert ops.beside(None, x, out=torch.empty(0, device="meta")).shape == (2,)


def test_conditions_on_data_are_asserted_as_a_whole(ops):
    torch._dynamo.reset()

    def function(x):
        return ops.chosen(x, x[0].long().item())

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
        for n in (2.0, 1.0):
            assert compiled(torch.tensor([n])).shape == (n, n)


# What a rule refuses.

REFUSED = {
    "a size below zero": (
        lambda ops: ops.replaced(ones(2, 3), 0, -1),
        RuntimeError,
        r"rulestest::replaced: the rule gives out a negative size, \[-1, 3\]",
    ),
    "a window that does not fit": (
        lambda ops: ops.windows(ones(2), 4, 1),
        RuntimeError,
        r"rulestest::windows: the rule gives out a negative size, \[-1, 4\]",
    ),
    "a division by zero": (
        lambda ops: ops.windows(ones(5), 3, 0),
        RuntimeError,
        r"rulestest::windows: \(self.shape\[-1\] - size\) // step divides by zero",
    ),
    "a dimension that is not there": (
        lambda ops: ops.replaced(ones(2, 3), 2, 1),
        IndexError,
        r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)",
    ),
    "an element that is not there": (
        lambda ops: ops.windows(ones(()), 1, 1),
        IndexError,
        r"rulestest::windows: self.shape has no element -1, it is \[\]",
    ),
    "a dim twice": (
        lambda ops: ops.reduced(ones(2, 3), [0, -2]),
        RuntimeError,
        "dim 0 appears multiple times",
    ),
    "shapes that do not broadcast": (
        lambda ops: ops.broadcasted(ones(3), ones(4)),
        RuntimeError,
        r"The size of tensor a \(3\) must match the size of tensor b \(4\)",
    ),
    "shapes that cannot be joined": (
        lambda ops: ops.joined([ones(2, 3), ones(3, 3)], 1),
        RuntimeError,
        r"tensors of shape \[2, 3\] and \[3, 3\] cannot be joined along dimension 1",
    ),
    "a number": (
        lambda ops: ops.numbers(ones(2), 0, []),
        RuntimeError,
        "rulestest::numbers: n must be > 0, got 0",
    ),
    "a number of dimensions": (
        lambda ops: ops.fortran(ones(2)),
        RuntimeError,
        "rulestest::fortran: self must have 2 dimensions, got 1",
    ),
    "too many dimensions of an optional tensor": (
        lambda ops: ops.broadcasted(ones(2), ones(2), ones(1, 1, 1)),
        RuntimeError,
        "rulestest::broadcasted: c must have at most 2 dimensions, got 3",
    ),
    "a shape": (
        lambda ops: ops.pair(ones(2), ones(3), [True, True]),
        RuntimeError,
        r"rulestest::pair: other must have shape \[2\], got \[3\]",
    ),
    "a dtype": (
        lambda ops: ops.pair(ones(2), ones(2).int(), [True, True]),
        RuntimeError,
        "rulestest::pair: other must not have dtype Int, got Int",
    ),
    "a condition": (
        lambda ops: ops.pair(ones(2).double(), None, [True, True]),
        RuntimeError,
        r"rulestest::pair: self.dtype == float32 or not mask\[1\] must hold",
    ),
    "a tensor that a result depends on": (
        lambda ops: ops.like_missing(ones(2), None),
        RuntimeError,
        "rulestest::like_missing: the results depend on other, which is missing",
    ),
    "none of two": (
        lambda ops: ops.chosen(ones(2), 4),
        RuntimeError,
        "rulestest::chosen: n == 1 or n == 2 must hold",
    ),
    "an out tensor of another dtype": (
        lambda ops: ops.joined([ones(2)], out=torch.empty(2).double()),
        RuntimeError,
        "rulestest::joined: the out= tensor must have dtype Float, got Double",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=[n.replace(" ", "_") for n in REFUSED])
def test_refused(ops, case):
    call, error, message = case
    with pytest.raises(error, match=message):
        call(ops)


# Traced with sizes that are marked dynamic, or come from data.


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_marked_size_is_not_specialised(ops, backend):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)

    def function(x, y, n):
        joined = ops.joined([ops.broadcasted(x, y), x], 0)
        return ops.reduced(joined, [1]), ops.replaced(ops.windows(x, 2, 1), 0, n)

    compiled = torch.compile(function, backend=counter, fullgraph=True)
    for rows, columns, n in ((3, 4, 5), (7, 9, 8), (2, 5, 11)):
        x, y = ones(rows, columns), ones(columns)
        torch._dynamo.mark_dynamic(x, 0)
        torch._dynamo.mark_dynamic(x, 1)
        torch._dynamo.mark_dynamic(y, 0)
        torch.testing.assert_close(compiled(x, y, n), function(x, y, n))
    assert counter.frame_count <= 2  # the integer n is static in the first call


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_size_that_comes_from_data_does_not_fail(ops, backend):
    torch._dynamo.reset()

    def function(x):
        n = x.sum().long().item()
        torch._check(n >= 0)
        chosen = x[x > 0]
        return (
            ops.replaced(x, 0, n),
            ops.reduced(chosen, [0], True),
            ops.joined([chosen, chosen]),
            ops.stacked([chosen, chosen]),
        )

    with torch._dynamo.config.patch(
        capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True
    ):
        compiled = torch.compile(function, backend=backend, fullgraph=True)
        for x in (torch.tensor([1.0, 0, 3]), torch.tensor([0.0, 2, 0])):
            torch.testing.assert_close(compiled(x), function(x))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ones(2),), "pooled: images must be a matrix"),
        ((ones(2, 3), ones(1, 1)), 'pooled: weights must be "flat", not a \\ of them'),
        ((ones(2, 3), None, 4), "pooled: kernel_size must divide images"),
        ((ones(2, 3), ones(1), 0), "pooled: kernel_size must divide images"),
        ((ones(9, 3), None, 9), "rulestest::_pooled: k must be < 9, got 9"),
    ],
)
@pytest.mark.parametrize("form", ["functional", "out", "meta", "compiled"])
def test_a_check_has_words_of_its_own(ops, arguments, message, form) -> None:
    function, options = ops._pooled, {}
    if form == "out":
        options = {"out": torch.empty_like(arguments[0])}
    if form == "meta":
        arguments = [a.to("meta") if isinstance(a, torch.Tensor) else a for a in arguments]
    if form == "compiled":
        function = torch.compile(ops._pooled, backend="eager", fullgraph=True)
        message = message.partition('"')[0]  # Dynamo quotes the text
    with pytest.raises(Exception) as error:
        function(*arguments, **options)
    assert message in str(error.value)
    assert ops._pooled(ones(2, 3), None, 3).equal(ones(2, 3))
