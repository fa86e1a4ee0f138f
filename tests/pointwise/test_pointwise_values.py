# SPDX-License-Identifier: BSD-3-Clause
"""What operators that are expressions compute, and in which dtypes and layouts, beside torch's."""

import itertools
import math

import pytest
import torch
import written_with_torch as written
from every_path import PATHS
from torch.testing import assert_close, make_tensor

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
# Sizes of the tensors, which broadcast; long enough for several vectors, and some elements more.
CALLS = {
    "swiglu": ([(3, 70), (70,)], {}),
    "scaled": ([(3, 70), (3, 1)], {"alpha": 2.5}),
    "affine": ([(3, 70), (70,), ()], {}),
    "huber": ([(3, 70), (3, 70)], {"delta": 0.5}),
    "rotate": ([(3, 70), (3, 70), (70,)], {}),
    "larger": ([(3, 70), (70,)], {}),
    "chosen": ([(3, 70), (70,), (3, 1)], {}),
    "powered": ([(3, 70)], {"n": 3, "twice": True}),
    "same": ([(3, 70)], {}),
    "positive": ([(3, 70)], {}),
    "wrapped": ([(3, 70), (70,)], {}),
    "adam": ([(3, 70)] * 4, {"lr": 0.125}),
}
OF_INTEGERS = ("affine", "larger", "chosen", "same", "positive", "powered")


def tensors(name, dtype, low=None):
    torch.manual_seed(7)
    sizes, options = CALLS[name]
    low = 0.1 if name == "adam" else low
    made = [make_tensor(s, dtype=dtype, device="cpu", low=low, high=4) for s in sizes]
    return made, options


def listed(results):
    return list(results) if isinstance(results, tuple) else [results]


def compare(found, expected, **tolerance):
    assert len(listed(found)) == len(listed(expected))
    for own, other in zip(listed(found), listed(expected), strict=True):
        assert own.dtype == other.dtype
        assert_close(own, other, equal_nan=True, **tolerance)


def in_float64(name, given, options):
    """The results of torch's operators, computed in float64 and rounded once."""
    results = getattr(written, name)(*(x.double() for x in given), **options)
    own = getattr(written, name)(*given, **options)
    return tuple(r.to(o.dtype) for r, o in zip(listed(results), listed(own), strict=True))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_values_are_those_of_torch(pointwisetest, name, dtype):
    given, options = tensors(name, dtype)
    compare(getattr(pointwisetest, name)(*given, **options), in_float64(name, given, options))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", OF_INTEGERS)
def test_integers_are_those_of_torch(pointwisetest, name, dtype):
    given, options = tensors(name, dtype, low=0)
    expected = getattr(written, name)(*given, **options)
    compare(getattr(pointwisetest, name)(*given, **options), expected, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["wrapped", "affine", "larger", "swiglu"])
def test_dtypes_are_promoted_as_torch_does(pointwisetest, name):
    sizes, _ = CALLS[name]
    dtypes = (*FLOATS, torch.int32, torch.uint8, torch.bool)
    for first, second in itertools.product(dtypes, dtypes):
        for size in ((3,), ()):  # a tensor without dimensions promotes by its kind alone
            if name == "swiglu" and not (first.is_floating_point and size):
                continue  # torch's sigmoid makes float32 first; all are promoted together here
            others = [make_tensor(size, dtype=second, device="cpu", low=1, high=4)] * 2
            x = make_tensor((3,), dtype=first, device="cpu", low=1, high=4)
            given = [x, *others][: len(sizes)]
            try:
                expected = getattr(written, name)(*given)
            except (RuntimeError, NotImplementedError):  # as torch refuses bools
                with pytest.raises((RuntimeError, NotImplementedError)):
                    getattr(pointwisetest, name)(*given)
                continue
            compare(getattr(pointwisetest, name)(*given), expected, rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("alpha", [2, 2.5, True])
@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.bool], ids=str)
def test_numbers_promote_as_torchs(pointwisetest, dtype, alpha):
    x = make_tensor((5,), dtype=dtype, device="cpu", low=0, high=3)
    compare(pointwisetest.scaled(x, alpha=alpha), written.scaled(x, alpha=alpha))


def test_a_condition_decides_on_no_dtype_and_is_not_rounded(pointwisetest):
    mask = torch.tensor([1e-300, -1e-300, 0.0], dtype=torch.float64)
    x, y = torch.ones(3), torch.zeros(3)
    found = pointwisetest.chosen(mask, x, y)
    assert found.dtype == torch.float32
    assert found.tolist() == [1, 0, 0]


def layouts(x):
    """The tensor in memory of other strides: transposed, with gaps, from behind an odd start, and
    expanded where it has one row alone."""
    yield x
    yield x.t().contiguous().t()
    yield torch.stack([x, x + 1], -1)[..., 0]
    yield torch.cat([x.new_zeros(1), x.flatten()])[1:].view(x.shape)
    yield x[:1].expand_as(x)


def without_memory(x):
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int16], ids=str)
def test_an_element_does_not_depend_on_where_it_lies(pointwisetest, dtype):
    torch.manual_seed(7)
    for size in ((3, 70), (1, 5), (33, 1), (2, 16)):
        x, a, b = (make_tensor(size, dtype=dtype, device="cpu", low=-3, high=4) for _ in range(3))
        for x_, a_, b_ in itertools.product(layouts(x), layouts(a), layouts(b)):
            found = pointwisetest.affine(x_, a_, b_)
            dense = pointwisetest.affine(x_.contiguous(), a_.contiguous(), b_.contiguous())
            assert torch.equal(found, dense)
            assert found.stride() == torch.addcmul(x_, a_, b_).stride()
            on_meta = pointwisetest.affine(*map(without_memory, (x_, a_, b_)))
            assert on_meta.stride() == found.stride()


def test_meta_and_another_device_are_refused_together(pointwisetest):
    x, y = torch.randn(3, 5), torch.randn(5)
    functions = [
        (pointwisetest.rotate, lambda a, b: (a, a, b)),
        (pointwisetest.huber, lambda a, b: (a, b)),
        (pointwisetest.huber_backward, lambda a, b: (a, a, b, 1.0, [True, True])),
    ]
    for function, given in functions:
        for a, b in [(x.to("meta"), y), (x, y.to("meta"))]:
            with pytest.raises(
                RuntimeError, match="expected all tensors on one device|on meta|meta,"
            ):
                function(*given(a, b))
    found = pointwisetest.rotate(x.to("meta"), y.to("meta"), torch.tensor(2.0))  # one number
    assert all(part.is_meta and part.shape == x.shape for part in found)


@pytest.mark.parametrize("size", [(), (0,), (1,), (2, 0, 3), (1, 1, 7), (2, 3, 1, 5, 1, 2)])
def test_every_number_of_dimensions_is_served(pointwisetest, size):
    x, y = torch.randn(size), torch.randn(size)
    compare(pointwisetest.huber(x, y), written.huber(x, y))
    compare(pointwisetest.rotate(x, y, x), written.rotate(x, y, x))


SPECIAL = [0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), float("nan"), 1e-40, 3e38]


@pytest.mark.parametrize("name", ["wrapped", "larger", "affine", "positive", "same", "chosen"])
def test_special_values_are_those_of_torch(pointwisetest, name):
    x, y = map(torch.tensor, zip(*itertools.product(SPECIAL, SPECIAL), strict=True))
    count = len(CALLS[name][0])
    given = [x, y, torch.ones_like(x)][:count]
    found, expected = getattr(pointwisetest, name)(*given), getattr(written, name)(*given)
    if name == "wrapped":  # torch's vectors have no remainder where the quotient overflows
        expected = torch.stack([written.wrapped(*pair) for pair in zip(x, y, strict=True)])
    compare(found, expected, rtol=0, atol=0)
    for own, other in zip(listed(found), listed(expected), strict=True):
        is_zero = other == 0
        assert torch.equal(torch.signbit(own[is_zero]), torch.signbit(other[is_zero]))


def test_integers_are_not_divided_by_zero(pointwisetest):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        pointwisetest.wrapped(torch.tensor([1, 2]), torch.tensor([1, 0]))


def test_a_result_is_a_tensor_of_its_own(pointwisetest):
    x = torch.randn(5)
    found = pointwisetest.same(x)
    assert torch.equal(found, x)
    assert found.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("path", PATHS)
def test_no_result_is_another_one(pointwisetest, path):
    x = torch.randn(3, 5)
    first, second = PATHS[path](pointwisetest.doubled)(x)
    first.add_(1)
    assert_close(second, x * 2)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_what_is_more_exact_than_16_bits_is_not_rounded(pointwisetest, path, dtype):
    """What does not decide on the dtype is computed in float32 as all is, and rounded once."""
    x = torch.randn(40).to(dtype) / 1024
    zero = torch.zeros((), dtype=dtype)
    for a in (
        torch.tensor(65536.0),
        torch.tensor(0.1),
        torch.tensor(100000),
        torch.arange(40) * 9999,
    ):
        found = PATHS[path](pointwisetest.affine)(x, a, zero)
        assert found.dtype == dtype
        assert_close(found, (x.float() * a).to(dtype))
    y = x.clone()
    scale = torch.tensor(65536.0)
    expected = (torch.nn.functional.silu(x.float()) * scale).to(dtype)
    assert pointwisetest.swiglu_(y, scale) is y
    assert_close(y, expected)
    for other in (dtype, torch.float32, torch.float64):
        out = torch.empty(0, dtype=other)
        assert_close(pointwisetest.swiglu.out(x, scale, out=out), expected.to(other))


def test_sizes_that_do_not_broadcast_are_named(pointwisetest):
    with pytest.raises(RuntimeError, match=r"pointwisetest::huber: y has size 4 where x has 3"):
        pointwisetest.huber(torch.ones(2, 3), torch.ones(4))
    with pytest.raises(RuntimeError, match=r"rotate: angle has size 4 where y has 3, \[4\] and"):
        pointwisetest.rotate(torch.ones(1), torch.ones(2, 3), torch.ones(4))


def test_a_dtype_that_no_expression_takes_is_refused_by_name(pointwisetest):
    with pytest.raises(NotImplementedError, match="pointwisetest::same: not implemented for Compl"):
        pointwisetest.same(torch.ones(2, dtype=torch.complex64))
    with pytest.raises(NotImplementedError, match="pointwisetest::wrapped: .* for Bool"):
        pointwisetest.wrapped(torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.bool))


def test_integers_are_not_computed_as_floats(pointwisetest):
    """2**24 + 1 is no float32."""
    large = torch.tensor([2**24 + 1, 2**24])
    with pytest.raises(NotImplementedError, match="a result of Long would be computed in Float"):
        pointwisetest.chosen(torch.ones(2), large, large)
    with pytest.raises(NotImplementedError, match="tensors of Long would be compared in Float"):
        pointwisetest.chosen(large, torch.ones(2), torch.zeros(2))
    for dtype in (torch.float16, torch.bfloat16):
        both = torch.ones(2, dtype=dtype), torch.zeros(2, dtype=dtype)
        with pytest.raises(NotImplementedError, match="tensors of Long would be compared in"):
            pointwisetest.chosen(large, *both)
    both = torch.ones(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    assert pointwisetest.chosen(large.int() - 2**24, *both).tolist() == [1, 0]
    found = pointwisetest.chosen(large - 2**24, large, large + 1)
    assert found.tolist() == [2**24 + 1, 2**24 + 1]
    found = pointwisetest.chosen(torch.tensor([True, False]), torch.ones(2), torch.zeros(2))
    assert found.tolist() == [1, 0]


def test_numbers_that_are_none_of_the_dtype_are_refused(pointwisetest):
    """torch's operators refuse some of them, and take others for what is left of their bits."""
    x = torch.ones(2, dtype=torch.int8)
    with pytest.raises(RuntimeError, match="pointwisetest::scaled: 300 is no Char, in which"):
        pointwisetest.scaled(x, alpha=300)
    assert torch.equal(pointwisetest.scaled(x, alpha=-128), written.scaled(x, alpha=-128))
    with pytest.raises(RuntimeError, match="pointwisetest::shifted: 400 is no Char, in which"):
        pointwisetest.shifted(x, 200)
    assert pointwisetest.shifted(x, 3).tolist() == [7, 7]
    assert pointwisetest.shifted(x, 0.25).tolist() == [1.5, 1.5]


SPECIAL = [-0.0, 0.0, -math.inf, math.inf, math.nan, 4.0, -4.0] * 9


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("exponent", [0.5, -0.5, 1.5, 2.5, 2, 3, -1, -2, 1, 0])
def test_powers_by_numbers_are_torchs(pointwisetest, exponent, dtype, path):
    """The square root of -0 and of minus infinity is not the power."""
    x = torch.tensor(SPECIAL, dtype=dtype, requires_grad=True)
    found = []
    for function in (PATHS[path](lambda x: pointwisetest.powered_by(x, exponent)), torch.pow):
        own = function(x) if function is not torch.pow else function(x, exponent)
        found.append((own, *torch.autograd.grad(own.sum(), x)))
    own = pointwisetest.powered_by_(x.detach().clone(), exponent)
    for mine, torchs in (*zip(*found, strict=True), (own, found[1][0])):
        assert_close(mine, torchs, equal_nan=True)
        is_number = ~torchs.isnan()
        assert torch.equal(mine[is_number].signbit(), torchs[is_number].signbit())


@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_powers_of_float16_are_those_of_float32(pointwisetest, exponent):
    """torch's kernel for the CPU has the power here, and that for CUDA the square root."""
    x = torch.tensor(SPECIAL, dtype=torch.float16)
    own, wide = (pointwisetest.powered_by(given, exponent) for given in (x, x.float()))
    assert_close(own.float(), wide, equal_nan=True)
    assert torch.equal(own.signbit(), wide.signbit())


@pytest.mark.parametrize("path", PATHS)
def test_between_integers_nothing_is_rounded(pointwisetest, path):
    x = torch.tensor([2**53 + 1, 2**62 + 1, -3, 7])
    for weight in (torch.tensor([0, 1, 2, -1]), torch.tensor([1, 1, 0, 3])):
        own = PATHS[path](pointwisetest.between)(x, x + 2, weight)
        assert torch.equal(own, x + 2 * weight)


def test_integers_have_no_negative_powers(pointwisetest):
    for own in (pointwisetest.powered, written.powered):
        with pytest.raises(RuntimeError, match="negative"):
            own(torch.tensor([1, 2]), -1)
    with pytest.raises(RuntimeError, match="inverse_square: integers have no negative powers"):
        pointwisetest.inverse_square(torch.tensor([0, 2]))
    assert pointwisetest.inverse_square(torch.tensor([2.0])).item() == 0.25


def test_complex_numbers_are_refused_by_name(pointwisetest):
    with pytest.raises(NotImplementedError, match="scaled: not implemented for complex numbers"):
        pointwisetest.scaled(torch.ones(2), alpha=1 + 2j)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_a_result_of_numbers_alone_is_not_rounded_to_what_decides(pointwisetest, dtype, path):
    for default in (torch.float32, torch.float64):
        before = torch.get_default_dtype()
        torch.set_default_dtype(default)
        try:
            x = torch.tensor([1.0, -1.0, 0.5], dtype=dtype)
            root = torch.where(x > 0, 3.0, 2.0).sqrt()
            alone, product = PATHS[path](pointwisetest.roots)(x)
        finally:
            torch.set_default_dtype(before)
        assert_close(alone, root)
        assert_close(product, (x * root).to(dtype))


@pytest.mark.parametrize("path", ["kernel", "compiled"])
def test_a_condition_of_a_tensor_without_dimensions_is_not_rounded(pointwisetest, path):
    """Which takes no part in the dtype, and may have a larger one."""

    def called(mask, dtype):
        x, y = torch.tensor([1, 2]).to(dtype), torch.tensor([3, 4]).to(dtype)
        return PATHS[path](lambda *given: pointwisetest.chosen(*given))(mask, x, y)

    for mask, dtype in (
        (torch.tensor(1e-60, dtype=torch.float64), torch.float32),
        (torch.tensor(2**40), torch.int32),
        (torch.tensor(-4), torch.uint8),
        (torch.tensor(2**24 + 1), torch.float32),
    ):
        with pytest.raises(Exception, match="would be compared in"):
            called(mask, dtype)
    for mask, dtype in (
        (torch.tensor(1e-60, dtype=torch.float64), torch.float64),
        (torch.tensor(1e-30), torch.bfloat16),
        (torch.tensor(2**40), torch.int64),
        (torch.tensor(True), torch.float32),
        (torch.tensor(7, dtype=torch.int16), torch.float32),
    ):
        assert called(mask, dtype).tolist() == [1, 2]


def test_gradients_are_not_refused_for_bounds_without_dimensions(pointwisetest):
    x = torch.tensor([-2.0, 0.1, 2.0], requires_grad=True)
    bounds = [torch.tensor(bound, dtype=torch.float64) for bound in (-1.0, 1.0)]
    own = [f(x, *bounds) for f in (pointwisetest.clamped, torch.clamp)]
    assert_close(*own)
    assert_close(*(torch.autograd.grad(value.sum(), x)[0] for value in own))


def test_a_result_of_integers_and_a_number_is_not_rounded_to_others(pointwisetest):
    """Beside a tensor of 16 bits, which the result does not depend on."""
    for x, y in itertools.product(
        [torch.zeros(3, dtype=torch.bfloat16), torch.zeros((), dtype=torch.float16)],
        [torch.tensor([1, 100, 200], dtype=torch.uint8), torch.tensor([True, False, True])],
    ):
        for path in PATHS.values():
            first, second = path(pointwisetest.decayed)(x, y)
            assert_close(first, y * 0.99 + 0.01, rtol=0, atol=0)
            assert_close(second, x + y, rtol=0, atol=0)


def test_a_result_of_float64_is_computed_in_it(pointwisetest):
    """Beside tensors of float32 that have more dimensions."""
    third = torch.tensor(1 / 3, dtype=torch.float64)
    for path in PATHS.values():
        first, _ = path(pointwisetest.decayed)(torch.ones(4), third)
        assert_close(first, (third * 0.99 + 0.01).expand(4), rtol=1e-15, atol=0)


def test_an_integer_that_tensors_do_not_have_is_refused_where_it_is_a_result(pointwisetest):
    x = torch.tensor([4, 0, 200], dtype=torch.uint8)
    for a in (7, 255):
        expected = torch.where(x > 0, torch.tensor(a), 2)
        for path in PATHS.values():
            assert_close(path(lambda x, a=a: pointwisetest.number_where(x, a)[0])(x), expected)
    for a in (-1, -130, 256, 2**40):
        for path in PATHS.values():
            with pytest.raises(Exception, match=f"{a} is no (Byte|unsigned char)"):
                path(lambda x, a=a: pointwisetest.number_where(x, a))(x)
    assert_close(pointwisetest.number_where(x.short(), -130)[0], torch.where(x > 0, -130, 2))


@pytest.mark.parametrize("path", PATHS)
def test_integers_are_not_computed_in_smaller_ones(pointwisetest, path):
    """Where tensors only choose, a result has 64 bits, and 200 + 100 is no uint8."""
    numbers = PATHS[path](lambda x, y: pointwisetest.number_sum(x, 200, y))
    x, small = torch.tensor([0, 4, 12]), torch.tensor([1, 2, 3], dtype=torch.int8)
    found, twice = numbers(x, small)  # a smaller one beside it is no hindrance
    assert found.tolist() == [5, 203, 300]
    assert (twice.tolist(), twice.dtype) == ([2, 4, 6], torch.int8)
    for dtype in (torch.uint8, torch.int16, torch.int32):
        with pytest.raises(Exception, match="of Long would be computed in (Byte|Short|Int)"):
            numbers(x.to(dtype), x.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_quotients_that_overflow(pointwisetest, dtype):
    largest, least = torch.finfo(dtype).max, torch.finfo(dtype).smallest_normal
    values = [largest, 1e5, 1.0, 0.1, 1e-8, 3 * least, 0.0, float("inf"), float("nan")]
    every = torch.tensor([*itertools.product(values, [*values, -0.1, -largest])], dtype=dtype)
    x, y = every.unbind(-1)
    one_by_one = [
        torch.remainder(*pair) for pair in zip(x, y)
    ]  # not torch's vectors, which are NaN
    for path in PATHS.values():
        quotient, rest = path(pointwisetest.divided)(x, y)
        assert_close(quotient, torch.div(x, y, rounding_mode="floor"), equal_nan=True)
        if path is PATHS["kernel"]:
            assert_close(rest, torch.stack(one_by_one), equal_nan=True, rtol=0, atol=0)


def test_between_numbers_whose_product_overflows(pointwisetest):
    values = [0.97, 3e38, -3e38, 0.0, 1e-30]
    every = torch.tensor([*itertools.product(values, values, [-1.0, 0.25, 0.5, 2.0])])
    x, y, weight = every.unbind(-1)
    assert_close(pointwisetest.between(x, y, weight), torch.lerp(x, y, weight), equal_nan=True)


@pytest.mark.parametrize("dtype", (torch.bool, *INTEGERS), ids=str)
def test_elements_without_vectors_lie_anywhere(pointwisetest, dtype):
    """Dense, with steps, the same number everywhere, and written over what is read."""
    generator = torch.Generator().manual_seed(3)
    high = 2 if dtype == torch.bool else 9
    x, a, b = (torch.randint(high, (6, 70), generator=generator).to(dtype) for _ in range(3))
    layouts = {
        "dense": lambda t: t,
        "transposed": lambda t: t.t(),
        "steps": lambda t: t[::2, ::3],
        "turned": lambda t: t.flip(1)[:, 1:],
        "the same": lambda t: t[:, :1].expand(6, 70),
    }
    for (name, one), (other, two) in itertools.product(layouts.items(), repeat=2):
        given = one(x), two(a), one(b)
        if given[0].shape != given[1].shape:
            given = one(x), one(a)[:1], two(b)[0, 0]
        expected = written.affine(*given)
        found = pointwisetest.affine.Tensor(*given)
        assert found.dtype == dtype and torch.equal(found, expected), (name, other)
        out = one(torch.zeros(6, 70, dtype=dtype).clone())
        if name != "the same" and out.shape == expected.shape:
            assert torch.equal(pointwisetest.affine.out(*given, out=out), expected)
            own = one(x.clone())
            assert torch.equal(
                pointwisetest.affine_.Tensor(own, own, own), written.affine(one(x), one(x), one(x))
            )


def test_a_byte_of_a_bool_is_not_0_or_1(pointwisetest):
    x, a = (torch.tensor([v] * 40, dtype=torch.uint8).view(torch.bool) for v in (2, 1))
    assert pointwisetest.affine.Tensor(x, a, torch.tensor(False)).all()


@pytest.mark.parametrize("path", PATHS)
def test_numbers_beyond_int64_are_computed_with(pointwisetest, path):
    x = torch.tensor([1.5, -2.0])
    for number in (2**63, 2**64 - 1):
        found = PATHS[path](lambda x, n=number: pointwisetest.scaled(x, alpha=n))(x)
        assert_close(found, x + number)
    with pytest.raises(RuntimeError, match="is no Long"):
        pointwisetest.scaled(torch.ones(2, dtype=torch.int64), alpha=2**63)


def test_integers_that_no_expression_takes_are_refused_by_name(pointwisetest):
    with pytest.raises(NotImplementedError, match="affine: not implemented for UInt32"):
        pointwisetest.affine.Tensor(*(torch.ones(2, dtype=torch.uint32) for _ in range(3)))
