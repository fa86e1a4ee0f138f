# SPDX-License-Identifier: BSD-3-Clause
"""What the kernel of an override may do, and when an override has ended.

What a kernel returns is what the operator returns, or an error that names both; outside of
overrides everything is as ATen has it, whatever happened inside, and in whatever order.
"""

import asyncio
import concurrent.futures
import contextlib
import gc
import random
import threading
import traceback

import pytest
import torch

import torchext
from torchext.compat import version

A, B = torch.arange(6.0).reshape(2, 3), torch.full((2, 3), 2.0)
SUM = A + B
ADD = "aten::add.Tensor"


def times(factor):
    def kernel(self, other, *, alpha=1):
        return torch.add(self, other, alpha=alpha) * factor

    return kernel


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert torch.equal(A + B, SUM)
    assert torch._C._get_graph_executor_optimize() and torch.is_autocast_cache_enabled()


# What a function returns


def in_inference_mode(self):
    with torch.inference_mode():
        return self * 2


class Wrapped(torch.Tensor):
    """A subclass that holds no memory of its own."""

    @staticmethod
    def __new__(cls, tensor):
        return torch.Tensor._make_wrapper_subclass(cls, tensor.shape, dtype=tensor.dtype)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("nobody computes with it")


WEIGHT = torch.nn.Parameter(torch.ones(2, 3))
WRONG = {
    "size": (
        lambda self: self.new_ones(4),
        r"a Float tensor of size \[4\], and .* of size \[2, 3\]",
    ),
    "fewer dimensions": (lambda self: self.new_ones(6), r"of size \[6\], and .* of size \[2, 3\]"),
    "broadcast": (lambda self: self.new_ones(1, 3), r"of size \[1, 3\], and .* of size \[2, 3\]"),
    "dtype": (
        lambda self: self.double(),
        "a Double tensor .* and the operator's result is a Float",
    ),
    "autocast dtype": (lambda self: self.bfloat16() + 1, "a BFloat16 tensor"),
    "device": (lambda self: torch.empty(2, 3, device="meta"), "a tensor on meta, .* is on cpu"),
    "sparse": (lambda self: (self * 2).to_sparse(), r"\(Sparse\)"),
    "mkldnn": (lambda self: (self * 2).to_mkldnn(), r"\(Mkldnn\)"),
    "quantized": (
        lambda self: torch.quantize_per_tensor(self, 1.0, 0, torch.qint8),
        "a QInt8 tensor",
    ),
    "nested": (lambda self: torch.nested.nested_tensor(list(self)), r"tensor \(nested\)"),
    "subclass": (Wrapped, "a tensor that only stands for one"),
    "zeros that are none": (
        lambda self: torch._efficientzerotensor(2, 3),
        r"only stands for one \(ZeroTensor\)",
    ),
    "inference": (in_inference_mode, r"made in torch.inference_mode\(\).* its clone\(\)"),
    "requires grad": (lambda self: WEIGHT, "a tensor that requires grad"),
    "argument": (lambda self: self, "the argument 'self' or its memory"),
    "view of an argument": (lambda self: self.view(2, 3), "the argument 'self' or its memory"),
    "detached argument": (lambda self: self.detach(), "the argument 'self' or its memory"),
    "nothing": (lambda self: None, "'NoneType', and the operator's result is Tensor"),
    "number": (lambda self: 2.5, "'float', and the operator's result is Tensor"),
    "tuple": (lambda self: (self * 2,), "'tuple', and the operator's result is Tensor"),
    "array": (lambda self: self.detach().numpy() * 2, "'numpy.ndarray', and the operator's result"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_result_is_an_error(wrong, requires_grad):
    body, message = WRONG[wrong]
    x = A.clone().requires_grad_(requires_grad)
    with torchext.override("aten::sin", body):
        for _ in range(2):  # what is expected is kept
            with pytest.raises(RuntimeError, match=f"aten::sin: its overriding kernel .*{message}"):
                x.sin()
    assert torch.equal(x.sin(), A.sin()) and WEIGHT.is_leaf


@pytest.fixture(scope="module")
def library():
    with torch.library._scoped_library("override_bodies", "DEF") as library:
        bodies = {name: body for name, (body, _) in WRONG.items() if callable(body)}
        for name, body in bodies.items():
            library.define(f"{name.replace(' ', '_')}(Tensor self) -> Tensor")
            library.impl(name.replace(" ", "_"), body, "CPU")
        library.define("transposed(Tensor self) -> Tensor")
        library.impl("transposed", lambda self: (self.t() * 2).contiguous().t(), "CPU")
        yield library


# of an operator it is the operator that refuses these
OPERATORS = [w for w in WRONG if w not in ("nothing", "number", "tuple", "array", "subclass")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wrong", OPERATORS)
def test_a_wrong_result_of_an_operator_is_an_error(wrong, library):
    message = WRONG[wrong][1]
    with torchext.override("aten::sin", f"override_bodies::{wrong.replace(' ', '_')}"):
        with pytest.raises(RuntimeError, match=f"aten::sin: .* override_bodies::.*{message}"):
            A.sin()
    assert torch.equal(torch.sin(A), A.sin())


ALIKE = {
    "transposed": lambda self: (self.t() * 2).contiguous().t(),
    "expanded": lambda self: self.new_full((1,), 2.0).expand(2, 3),
    "a part": lambda self: torch.full((2, 6), 2.0)[:, ::2],
    "negative": lambda self: torch.full((2, 3), 2j).conj().imag,
    "parameter": lambda self: torch.nn.Parameter(self * 2, requires_grad=False),
    "plain subclass": lambda self: (self * 2).as_subclass(type("Mine", (torch.Tensor,), {})),
    "no grad": torch.no_grad()(lambda self: self * 2),
    "grad": torch.enable_grad()(lambda self: self.detach().requires_grad_() * 2),
    "inference and back": lambda self: in_inference_mode(self).clone(),
}


@pytest.mark.parametrize("alike", ALIKE)
def test_a_result_is_laid_out_as_the_operators(alike):
    """What is compiled reads the memory as the operator would have written it."""
    x = A.clone().requires_grad_()
    with torch.no_grad():
        expected = ALIKE[alike](A).clone(memory_format=torch.contiguous_format)
    with torchext.override("aten::sin", ALIKE[alike]):
        result = x.sin()
    assert type(result) is torch.Tensor and result.grad_fn.name() == "SinBackward0"
    assert result.stride() == A.sin().stride() and not result.is_neg()
    assert torch.equal(result.detach(), expected)
    torch.testing.assert_close(torch.autograd.grad(result.sum(), x)[0], A.cos())


def test_the_layout_is_the_operators_for_programs_too(library):
    transposed = A.t().contiguous().t()
    program = torch.compile(lambda x: torch.linalg.inv(x), backend="aot_eager")
    matrix = torch.randn(3, 3, generator=torch.Generator().manual_seed(0)) + 4 * torch.eye(3)
    expected = torch.linalg.inv_ex(matrix)[0]

    def rows_and_columns(matrix, **options):
        inverse, info = torch.linalg.inv_ex(matrix, **options)
        return inverse.t().contiguous().t(), info

    with torchext.override("aten::linalg_inv_ex", rows_and_columns):
        result = torch.linalg.inv_ex(matrix)[0]
        assert torch.equal(program(matrix), expected)
    assert result.stride() == expected.stride() and torch.equal(result, expected)
    with torchext.override("aten::sin", "override_bodies::transposed"):
        assert A.sin().is_contiguous() and not transposed.is_contiguous()


def test_a_conjugate_result_is_one_of_numbers():
    x = torch.full((2, 2), 1j)
    with torchext.override("aten::sin", lambda self: torch.full((2, 2), 3j).conj()):
        result = x.sin()
    assert not result.is_conj() and torch.equal(result, torch.full((2, 2), -3j))


def test_what_a_kernel_keeps_gets_no_history():
    x, kept = A.clone().requires_grad_(), {}

    def remembered(self):
        return kept.setdefault("result", self.detach() * 2)

    with torchext.override("aten::sin", remembered):
        first, second = x.sin(), x.sin()
    assert not kept["result"].requires_grad and first is not second
    assert first.grad_fn is not second.grad_fn
    product = first * second
    kept["result"].add_(1)  # which the product has saved
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


WRONG_PAIRS = {
    "one": (lambda self, dim: self[0] * 1, "1 results, and the operator has 2"),
    "three": (lambda self, dim: [self[0] * 1] * 3, "3 results, and the operator has 2"),
    "none": (lambda self, dim: None, "0 results, and the operator has 2"),
    "dictionary": (lambda self, dim: {"values": 1}, "1 results, and the operator has 2"),
    "the same twice": (lambda self, dim: [torch.ones(3, dtype=torch.long)] * 2, "the same memory"),
    "a dtype": (lambda self, dim: (self[0] * 1, self[0] * 2), "Float .* result is a Long"),
    "left out": (lambda self, dim: (self[0] * 1, None), "'NoneType'"),
}


@pytest.mark.parametrize("wrong", WRONG_PAIRS)
def test_wrong_results_of_an_operator_that_has_two(wrong):
    body, message = WRONG_PAIRS[wrong]
    with torchext.override("aten::max.dim", body):
        with pytest.raises(RuntimeError, match=message):
            A.max(0)


def test_two_results_in_any_sequence():
    indices = torch.zeros(3, dtype=torch.long)
    for make in (tuple, list, torch.return_types.max):
        with torchext.override("aten::max.dim", lambda s, d: make((s[0] * 5, indices.clone()))):
            values, found = A.max(0)
        assert torch.equal(values, A[0] * 5) and torch.equal(found, indices)


WRONG_LISTS = {
    "fewer": (lambda a, b, alpha=1: [a[0] + 1], "1 tensors, and the operator's result has 2"),
    "a size": (lambda a, b, alpha=1: [a[0] + 1, torch.ones(2)], r"of size \[2\], and"),
    "one twice": (lambda a, b, alpha=1: [a[0] + 1] * 2, "the same memory twice"),
    "overlapping": (
        lambda a, b, alpha=1: [*torch.ones(12).as_strided((2, 2, 3), (3, 3, 1))],
        "twice",
    ),
    "an argument": (lambda a, b, alpha=1: [a[0] + 1, b[1]], "the argument 'other'"),
    "no list": (lambda a, b, alpha=1: None, "'NoneType'"),
    "nothing in it": (lambda a, b, alpha=1: [None, None], "'list'"),
}


@pytest.mark.parametrize("wrong", WRONG_LISTS)
def test_wrong_results_of_an_operator_that_has_a_list(wrong):
    body, message = WRONG_LISTS[wrong]
    with torchext.override("aten::_foreach_add.List", body):
        with pytest.raises(RuntimeError, match=message):
            torch._foreach_add([A, A], [B, B])


def test_lists_of_results_and_lists_that_are_written_to():
    def halves(left, right, alpha=1):
        both = torch.empty(4, 3)
        torch.add(left[0], right[0], out=both[:2])
        torch.add(left[1], right[1], out=both[2:])
        return list(both.split(2))

    def add_(left, right, alpha=1):
        for x, y in zip(left, right):
            x.copy_((x + y) * 2)

    written = [A.clone(), B.clone()]
    with torchext.override("aten::_foreach_add.List", halves):
        with torchext.override("aten::_foreach_add_.List", add_):
            results = torch._foreach_add([A, B], [B, B])
            torch._foreach_add_(written, [B, B])
    assert torch.equal(results[0], SUM) and torch.equal(results[1], B + B)
    assert torch.equal(written[0], SUM * 2) and torch.equal(written[1], (B + B) * 2)


# What a kernel writes to


def rebind(self, other, *, alpha=1):
    self.data = self + other


def become_double(self, other, *, alpha=1):
    self.data = (self + other).double()


def resize(self, other, *, alpha=1):
    self.resize_(7)


def transpose(self, other, *, alpha=1):
    self.t_()


def take_memory(self, other, *, alpha=1):
    self.set_(other.clone())


@pytest.mark.parametrize("body", [rebind, become_double, resize, transpose, take_memory])
@pytest.mark.parametrize("form", ["in-place", "foreach"])
def test_what_is_written_to_stays_the_same_tensor(body, form):
    def foreach(left, right, alpha=1):
        body(left[1], right[1])

    name = "foreach" if form == "foreach" else body.__name__
    with pytest.raises(RuntimeError, match=f"{name} made another tensor of the argument 'self'"):
        if form == "in-place":
            with torchext.override("aten::add_.Tensor", body):
                A.clone().add_(B)
        else:
            with torchext.override("aten::_foreach_add_.List", foreach):
                torch._foreach_add_([A.clone(), A.clone()], [B, B])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", [(0,), (2, 3), (7,)])
def test_an_out_argument_gets_the_operators_size(size):
    def right(self, other, *, alpha=1, out):
        out.resize_(self.shape).copy_((self + other) * 3)

    def wrong(self, other, *, alpha=1, out):
        out.resize_(6).copy_((self + other).flatten())

    with torchext.override("aten::add.out", right):
        out = torch.empty(size)
        assert torch.add(A, B, out=out) is out and torch.equal(out, SUM * 3)
    with torchext.override("aten::add.out", wrong):
        with pytest.raises(RuntimeError, match="made another tensor of the argument 'out'"):
            torch.add(A, B, out=torch.empty(size))


# Operators of which Meta says something else, or nothing, keep their own results


def pass_on(op):
    return torchext.override(op, lambda *args, **kwargs: op(*args, **kwargs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("training", [False, True])
def test_statistics_are_those_of_the_kernel(dtype, training):
    """Of another dtype and size than Meta says; and a kernel that is asked for them writes none."""
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).to(dtype)
    for op in (torch.ops.aten.native_batch_norm, torch.ops.aten._batch_norm_with_update):
        found = []
        for override in (contextlib.nullcontext(), pass_on(op.default)):
            mean, var = torch.zeros(3, dtype=dtype), torch.ones(3, dtype=dtype)
            is_asked = op is torch.ops.aten.native_batch_norm
            rest = (training, 0.1, 1e-5) if is_asked else (0.1, 1e-5)
            with override:
                found.append([*op(x, None, None, mean, var, *rest), mean, var])
        for plain, overridden in zip(*found):
            assert plain.dtype == overridden.dtype and torch.equal(plain, overridden)


def test_sizes_that_depend_on_values():
    with pass_on(torch.ops.aten.nonzero.default), pass_on(torch.ops.aten._unique2.default):
        assert torch.equal(A.nonzero(), torch.nonzero(A)) and len(A.unique()) == 6
    with torchext.override("aten::nonzero", lambda self: torch.zeros(4, 2, dtype=torch.long)):
        assert torch.equal(A.nonzero(), torch.zeros(4, 2, dtype=torch.long))


def test_numbers_promote_as_numbers():
    whole, half, double = torch.arange(3), torch.arange(3).bfloat16(), torch.ones(3).double()
    pairs = [(x, y) for x in (whole, half, double) for y in (1, 1.5, whole, double, double[0])]
    plain = [x + y for x, y in pairs]
    with torchext.override(ADD, times(1)):
        overridden = [x + y for x, y in pairs]
    for expected, result in zip(plain, overridden):
        assert result.dtype == expected.dtype and torch.equal(result, expected)


def test_the_default_dtype_is_part_of_what_is_expected():
    whole, before = torch.arange(3), torch.get_default_dtype()
    with torchext.override("aten::sin", lambda self: torch.sin(self)):
        try:
            for dtype in (torch.float64, torch.float32):
                torch.set_default_dtype(dtype)
                assert whole.sin().dtype is dtype
        finally:
            torch.set_default_dtype(before)


# Errors


@pytest.mark.parametrize("kind", [ValueError, KeyError, NotImplementedError, KeyboardInterrupt])
@pytest.mark.parametrize("operator", ["==", "+", "sin"])
def test_an_error_is_the_callers(kind, operator):
    def body(*args, **kwargs):
        raise kind("from the body")

    calls = {"==": lambda: A == B, "+": lambda: A + B, "sin": A.sin}
    names = {"==": "aten::eq.Tensor", "+": ADD, "sin": "aten::sin"}
    with torchext.override(names[operator], body):
        with pytest.raises(kind, match="from the body") as error:
            calls[operator]()
    assert any(frame.name == "body" for frame in traceback.extract_tb(error.value.__traceback__))


@pytest.mark.parametrize("operator", ["==", "+", "sin"])
def test_a_type_error_is_not_what_pythons_operators_ask_for(operator):
    """`==` would be False, and `+` would say that tensors have none."""

    def body(*args, **kwargs):
        raise TypeError("from the body")

    calls = {"==": lambda: A == B, "+": lambda: A + B, "sin": A.sin}
    names = {"==": "aten::eq.Tensor", "+": ADD, "sin": "aten::sin"}
    with torchext.override(names[operator], body):
        with pytest.raises(RuntimeError, match="body raised a TypeError") as error:
            calls[operator]()
    assert isinstance(error.value.__cause__, TypeError)
    assert str(error.value.__cause__) == "from the body"


def test_an_error_in_a_backward_is_its_callers():
    x = A.clone().requires_grad_()
    y = x.sin().sum()

    def body(self):
        raise ValueError("from the backward")

    with torchext.override("aten::cos", body):
        with pytest.raises(ValueError, match="from the backward"):
            y.backward()
    y = x.sin().sum()
    torch.testing.assert_close(torch.autograd.grad(y, x)[0], A.cos())


# What is around a call


def test_kernels_of_two_operators_may_call_one_another():
    sine, cosine = A.sin(), A.cos()
    with torchext.override("aten::sin", lambda self: torch.cos(self) * 3):
        with torchext.override("aten::cos", lambda self: torch.sin(self) * 5):
            assert torch.equal(A.sin(), sine * 5 * 3) and torch.equal(A.cos(), cosine * 3 * 5)


TRANSFORMS = {
    "vmap": lambda f: torch.func.vmap(f)(A),
    "grad": lambda f: torch.func.grad(lambda x: f(x).sum())(A),
    "jvp": lambda f: torch.func.jvp(f, (A,), (B,))[1],
    "jacrev of vmap": lambda f: torch.func.jacrev(torch.func.vmap(f))(A),
    "jacfwd": lambda f: torch.func.jacfwd(f)(A),
    "vmap of grad": lambda f: torch.func.vmap(torch.func.grad(lambda x: f(x).sum()))(A),
    "functionalize": lambda f: torch.func.functionalize(f)(A),
    "no_grad": lambda f: torch.no_grad()(f)(A),
    "inference_mode": lambda f: torch.inference_mode()(f)(A).clone(),
    "autocast": lambda f: torch.autocast("cpu")(f)(A),
    "checkpoint": lambda f: torch.utils.checkpoint.checkpoint(f, A, use_reentrant=False),
}
INSIDE = {
    "vmap": lambda self: torch.func.vmap(torch.sin)(self),
    "grad": lambda self: torch.func.grad(lambda x: -x.cos().sum())(self),
    "compile": lambda self: torch.compile(torch.sin, backend="aot_eager")(self),
    "trace": lambda self: torch.jit.trace(lambda x: x.sin(), self)(self),
    "thread": lambda self: in_a_thread(torch.sin, self),
    "override": lambda self: with_override("aten::cos", torch.cos, torch.sin, self),
}


def in_a_thread(function, *args):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()


def with_override(op, kernel, function, *args):
    with torchext.override(op, kernel):
        return function(*args)


# torch.func's gradient refuses to be in a checkpoint, and was zero in inference mode before 2.13
NOT_IN_ATEN = {("checkpoint", "grad")} | (
    {("inference_mode", "grad")} if version() < (2, 13) else set()
)
PAIRS = [(x, y) for x in TRANSFORMS for y in INSIDE if (x, y) not in NOT_IN_ATEN]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("around", "inside"), PAIRS)
def test_a_kernel_that_computes_what_the_operator_does(around, inside):
    torch._dynamo.reset()
    expected = TRANSFORMS[around](torch.sin)
    calls = []

    def body(self):
        calls.append(self.shape)
        return INSIDE[inside](self)

    with torchext.override("aten::sin", body):
        found = TRANSFORMS[around](torch.sin)
    assert calls
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_kernel_is_not_compiled_with_what_is_between_graphs(backend):
    """It would not call the override around it, but what Inductor has for the operator."""
    torch._dynamo.reset()

    def function(x, y):
        z = x * y
        with torchext.override(ADD, times(3)):
            z = z + x
        return z

    expected = (A * B + A) * 2 * 3
    compiled = torch.compile(function, backend=backend)
    with torchext.override(ADD, times(2)):
        for _ in range(2):
            assert torch.equal(compiled(A, B), expected)


def test_tangents_and_gradients_are_the_operators_own():
    x = torch.arange(1.0, 5.0, dtype=torch.double, requires_grad=True)
    with torchext.override("aten::log", lambda self: torch.log(self)):
        assert torch.autograd.gradcheck(torch.log, x, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(torch.log, x, check_fwd_over_rev=True)


def test_modes_and_subclasses_stand_above_a_kernel():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Seeing(), torchext.override(ADD, times(3)):
        result = A + B
    assert torch.equal(result, SUM * 3)
    assert seen == [torch.ops.aten.add.Tensor]  # and not what the kernel or its check calls


def test_what_is_expected_is_nobodys_concern():
    """No profile, function mode or default device sees how the result is checked."""
    from torch.overrides import TorchFunctionMode

    seen = []

    class Seeing(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.randn(3, 5, 7)  # of a size that nobody has asked for
    with torchext.override("aten::sin", "aten::cos"):
        with Seeing(), torch.autograd.profiler.profile() as profile:
            torch.sin(x)
    assert seen == [torch.sin]
    assert {event.name for event in profile.function_events} == {"aten::sin", "aten::cos"}


# When an override has ended


def test_tasks_that_interleave_leave_nothing_on():
    seen = {}

    async def task(name, factor, entered, leave):
        with torchext.override(ADD, times(factor)):
            entered.set()
            await leave.wait()
            seen[name] = (A + B)[0, 0].item()

    async def both():
        entered = [asyncio.Event() for _ in range(2)]
        leave = [asyncio.Event() for _ in range(2)]
        first = asyncio.create_task(task("first", 3, entered[0], leave[0]))
        await entered[0].wait()
        second = asyncio.create_task(task("second", 5, entered[1], leave[1]))
        await entered[1].wait()
        assert torch.equal(A + B, SUM * 15)  # they hold for the thread
        leave[0].set()
        await first
        assert torch.equal(A + B, SUM * 5)
        leave[1].set()
        await second
        assert torch.equal(A + B, SUM)

    asyncio.run(asyncio.wait_for(both(), 60))
    assert seen == {"first": 2 * 15, "second": 2 * 5}


def test_a_task_that_is_cancelled_leaves_its_override():
    async def forever():
        with torchext.override(ADD, times(3)):
            await asyncio.Event().wait()

    async def cancel():
        task = asyncio.create_task(forever())
        await asyncio.sleep(0)
        assert torch.equal(A + B, SUM * 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())


def test_overrides_are_left_in_any_order():
    first, second = torchext.override(ADD, times(2)), torchext.override(ADD, times(3))
    with first:
        with second:
            first.__exit__()
            assert torch.equal(A + B, SUM * 3)
        first.__enter__()
    assert torch.equal(A + B, SUM)
    with pytest.raises(RuntimeError, match="an override is left that nobody is in"):
        first.__exit__()


def test_each_block_of_one_object_ends_its_own_entry():
    def block(override):
        with override:
            yield

    def one_more(self, other, *, alpha=1):
        return torch.add(self, other, alpha=alpha).add_(1)

    double, add = torchext.override(ADD, times(2)), torchext.override(ADD, one_more)
    blocks = [block(override) for override in (double, add, double)]
    all_three, without_the_first = (SUM * 2 + 1) * 2, (SUM + 1) * 2
    for generator in blocks:
        next(generator)
    assert torch.equal(A + B, all_three)
    in_a_thread(blocks[0].close)
    assert torch.equal(A + B, without_the_first)
    with double:
        blocks[2].close()
        assert torch.equal(A + B, without_the_first)
    blocks[1].close()


def test_an_exit_that_may_be_of_several_threads_is_an_error():
    override, inside, over = (
        torchext.override(ADD, times(2)),
        threading.Barrier(3),
        threading.Event(),
    )

    def enter_and_wait():
        with override:
            inside.wait()
            over.wait()
            assert torch.equal(A + B, SUM * 2)

    threads = [threading.Thread(target=enter_and_wait) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait()
    with pytest.raises(RuntimeError, match="on a thread that is not in it, and several are"):
        override.__exit__()
    over.set()
    for thread in threads:
        thread.join()


def doubling():
    with torchext.override(ADD, times(2)):
        yield


@pytest.mark.parametrize("end", ["close", "delete", "another thread", "exhaust"])
def test_a_generator_leaves_its_override_where_it_ends(end):
    generator = doubling()
    next(generator)
    assert torch.equal(A + B, SUM * 2)
    if end == "close":
        generator.close()
    elif end == "delete":
        del generator
        gc.collect()
    elif end == "exhaust":
        assert list(generator) == []
    else:
        in_a_thread(generator.close)
    assert torch.equal(A + B, SUM)


def test_a_pool_enters_and_leaves_on_threads_of_its_own():
    override = torchext.override(ADD, times(2))
    with (
        concurrent.futures.ThreadPoolExecutor(1) as one,
        concurrent.futures.ThreadPoolExecutor(1) as other,
    ):
        one.submit(override.__enter__).result()
        assert torch.equal(one.submit(torch.add, A, B).result(), SUM * 2)
        assert torch.equal(other.submit(torch.add, A, B).result(), SUM)
        assert torch.equal(A + B, SUM)
        other.submit(override.__exit__).result()
        assert torch.equal(one.submit(torch.add, A, B).result(), SUM)
    with pytest.raises(RuntimeError, match="nobody is in"):
        override.__exit__()


def test_a_thread_that_ends_inside_takes_its_override_along():
    override = torchext.override(ADD, times(2))
    thread = threading.Thread(target=override.__enter__)
    thread.start()
    thread.join()
    assert torch.equal(A + B, SUM)
    override.__exit__()  # the thread's
    with override:
        assert torch.equal(A + B, SUM * 2)


def test_a_kernel_may_leave_an_override_and_enter_one_that_it_does_not_leave():
    outer, late = torchext.override(ADD, times(3)), torchext.override("aten::sin", torch.cos)

    def body(self, other, *, alpha=1):
        outer.__exit__()
        late.__enter__()
        return torch.add(self, other, alpha=alpha) * 7

    with torchext.override(ADD, body):
        outer.__enter__()
        assert torch.equal(A + B, SUM * 7 * 3)  # it was on when it was called
        outer.__enter__()
    late.__exit__()
    outer.__exit__()
    assert torch.equal(A.sin(), torch.sin(A))


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_entries_and_exits(seed):
    """Beside a list of those that are on, newest last."""
    chance = random.Random(seed)
    overrides = {factor: torchext.override(ADD, times(factor)) for factor in (2, 3, 5, 7)}
    on = []
    for _ in range(60):
        if on and chance.random() < 0.5:
            factor = chance.choice(on)
            on.reverse()
            on.remove(factor)
            on.reverse()
            overrides[factor].__exit__()
        else:
            factor = chance.choice(list(overrides))
            on.append(factor)
            overrides[factor].__enter__()
        expected = SUM.clone().double()
        for factor in on:
            expected *= factor
        torch.testing.assert_close((A.double() + B.double()), expected)
    while on:
        overrides[on.pop(chance.randrange(len(on)))].__exit__()


async def coroutine():
    pass


async def asynchronous_generator():
    yield


@pytest.mark.parametrize("function", [doubling, coroutine, asynchronous_generator])
def test_what_goes_on_after_its_call_is_not_decorated(function):
    """The override would have ended before anything runs."""
    with pytest.raises(TypeError, match="an override decorates no generator or coroutine"):
        torchext.override(ADD, times(2))(function)
