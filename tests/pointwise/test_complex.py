# SPDX-License-Identifier: BSD-3-Clause
"""Expressions of complex numbers, of real ones beside them too, against torch's operators."""

import itertools
import math
import re
import sys
from pathlib import Path

import pytest
import torch
import yaml
from every_path import PATHS
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

sys.path.insert(0, str(Path(__file__).parents[1] / "fused"))
from torch_values import value_of

from codegen.fused.functions import functions
from codegen.fused.reading import read
from codegen.fused.tree import Call, in_order

SPEC = Path(__file__).parent / "pointwisetest" / "native_functions.yaml"
ENTRIES = {entry["func"].partition("(")[0]: entry for entry in yaml.safe_load(SPEC.read_text())}
OF_ONE = ("complex_one", "complex_one_more")
LINES = {name: list(map(str, ENTRIES[name]["pointwise"])) for name in (*OF_ONE, "complex_two")}
ARGUMENTS = {name: re.findall(r"Tensor (\w+)", ENTRIES[name]["func"]) for name in LINES}
RESULTS = [(name, place) for name, lines in LINES.items() for place in range(len(lines))]
COMPLEX = (torch.complex64, torch.complex128)
DTYPES = (torch.float32, torch.float64, *COMPLEX)
PARTS = [0.0, -0.0, 0.5, -1.0, 2.0, 1e-3, -90.0]
EDGES = [*PARTS, math.inf, -math.inf, math.nan]
RESULT = pytest.mark.parametrize(
    ("name", "place"), RESULTS, ids=[f"{name}: {LINES[name][place]}" for name, place in RESULTS]
)


def tree_of(name, place):
    return read(LINES[name][place], dict.fromkeys(ARGUMENTS[name], "tensor"))


def torchs(name, place):
    """A result as torch's own operators compute it. (silu has no gradient there.)"""

    def function(*given):
        return value_of(tree_of(name, place), dict(zip(ARGUMENTS[name], given, strict=True)))

    if LINES[name][place] == "silu(x)":
        return lambda x: x * torch.sigmoid(x)
    # Of a real tensor and a complex one the first refuses to be computed, the other its gradient.
    if re.match(r"lerp|x if", LINES[name][place]):
        return lambda *given: function(*(x.to(torch.result_type(*given)) for x in given))
    return function


def ours(library, name, place):
    return lambda *given: getattr(library, name)(*given)[place]


def randoms(*dtypes, size=60):
    generator = torch.Generator().manual_seed(5)
    wide = [torch.randn(size, dtype=torch.complex128, generator=generator) * 1.5 for _ in dtypes]
    return [x.to(t) if t.is_complex else x.real.to(t) for x, t in zip(wide, dtypes)]


def same(own, expected, **bounds):
    assert_close(own, expected, equal_nan=True, **bounds)


def near(dtype, factor=32):
    eps = torch.finfo(dtype).eps
    return {"rtol": factor * eps, "atol": factor * eps}


def test_every_function_of_complex_numbers_stands_in_one_of_the_operators():
    trees = (tree_of(name, place) for name, place in RESULTS)
    called = {p.function for p in in_order(*trees) if isinstance(p, Call)}
    known = {name for name, f in functions().items() if f.takes_complex}
    assert called == known - {"handle_r_to_c", "broadcast_with"}  # which derivatives have


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@RESULT
def test_values(pointwisetest, name, place, dtype):
    given = randoms(*[dtype] * len(ARGUMENTS[name]))
    found, expected = (f(*given) for f in (ours(pointwisetest, name, place), torchs(name, place)))
    same(found, expected, **({} if expected.dtype == torch.bool else near(dtype)))


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize(("name", "place"), [one for one in RESULTS if one[0] in OF_ONE])
def test_zeros_and_their_signs(pointwisetest, name, place, dtype):
    """On both sides of every cut: the sign of a zero says which."""
    x = torch.tensor([complex(*both) for both in itertools.product(PARTS, PARTS)], dtype=dtype)
    found = ours(pointwisetest, name, place)(x)
    # that of complex128 is what torch has, and that of complex64 near it
    expected = torchs(name, place)(x.to(torch.complex128)).to(found.dtype)
    one_by_one = torch.stack([torchs(name, place)(one) for one in x])
    is_same = torch.isclose(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
    is_same |= torch.isclose(found, one_by_one, rtol=1e-5, atol=1e-6, equal_nan=True)
    assert is_same.all(), (LINES[name][place], x[~is_same], found[~is_same])


def is_smooth(name, place):
    if LINES[name][place] == "x ** 0":  # which torch has a gradient of, zeros
        return False
    given = [x.requires_grad_() for x in randoms(*[torch.complex64] * len(ARGUMENTS[name]))]
    return torchs(name, place)(*given).requires_grad


SMOOTH = [(name, place) for name, place in RESULTS if is_smooth(name, place)]
SMOOTH_RESULT = pytest.mark.parametrize(
    ("name", "place"), SMOOTH, ids=[f"{name}: {LINES[name][place]}" for name, place in SMOOTH]
)
# torch.lerp takes no real tensor beside a complex one.
OF_BOTH = [(name, place) for name, place in SMOOTH if not LINES[name][place].startswith("lerp")]


def derivatives(function, given, outer, along):
    """The gradients, and along some tensors the gradients of these; zeros where there are none."""
    leaves = [x.detach().requires_grad_() for x in given]
    result = function(*leaves)
    outer = outer.to(result.dtype) if result.is_complex() else outer.real.to(result.dtype)
    first = torch.autograd.grad(result, leaves, outer, create_graph=True, materialize_grads=True)
    smooth = [(g, a) for g, a in zip(first, along) if g.requires_grad]
    if along and not smooth:
        return [*first, *map(torch.zeros_like, leaves)]
    if not along:
        return [*first]
    outputs, along = zip(*smooth)
    return [*first, *torch.autograd.grad(outputs, leaves, along, materialize_grads=True)]


def kinds(name):
    """Of one argument the complex dtypes, of two every pair of which some is complex."""
    if len(ARGUMENTS[name]) == 1:
        return [(dtype,) for dtype in COMPLEX]
    return [both for both in itertools.product(DTYPES, DTYPES) if set(both) & set(COMPLEX)]


def bounds(dtypes):
    is_single = not {torch.float32, torch.complex64}.isdisjoint(dtypes)
    return near(torch.float32 if is_single else torch.float64, 512)


@pytest.mark.parametrize("path", PATHS)
@SMOOTH_RESULT
def test_gradients_and_their_gradients(pointwisetest, name, place, path):
    """Those of real arguments are real, in their own dtypes."""
    for dtypes in kinds(name) if path == "kernel" else kinds(name)[-3:]:
        given, along = randoms(*dtypes), [x.flip(0) for x in randoms(*dtypes)]
        along = [] if path == "compiled" else along  # which has no double backward in torch
        outer = randoms(torch.complex128)[0].flip(0)
        own = derivatives(PATHS[path](ours(pointwisetest, name, place)), given, outer, along)
        expected = derivatives(torchs(name, place), given, outer, along)
        assert [g.dtype for g in own] == [g.dtype for g in expected]
        for mine, other in zip(own, expected, strict=True):
            same(mine, other, **bounds(dtypes))


@SMOOTH_RESULT
def test_tangents(pointwisetest, name, place):
    for dtypes in kinds(name):
        given, along = randoms(*dtypes), [x.flip(0) for x in randoms(*dtypes)]
        own, expected = (
            torch.func.jvp(f, tuple(given), tuple(along))
            for f in (ours(pointwisetest, name, place), torchs(name, place))
        )
        for mine, other in zip(own, expected, strict=True):
            same(mine, other, **bounds(dtypes))


@SMOOTH_RESULT
def test_numerical_derivatives(pointwisetest, name, place):
    for dtypes in kinds(name):
        if not {torch.float32, torch.complex64}.isdisjoint(dtypes):
            continue
        given = [
            x * 0.3 + 0.6 if x.is_complex() else x.abs() + 1.1 for x in randoms(*dtypes, size=3)
        ]
        given = [x.requires_grad_() for x in given]
        function = ours(pointwisetest, name, place)
        assert gradcheck(function, given, check_forward_ad=True, check_batched_grad=True)
        assert gradgradcheck(function, given, check_fwd_over_rev=True)


REAL = [-2.0, 0.0, -0.0, math.inf, -math.inf, math.nan, 0.5]


def test_backward_operators_by_themselves(pointwisetest):
    """In both modes, with any of their arguments real: none is the gradient of another's there."""
    for dtypes in itertools.product((torch.float64, torch.complex128), repeat=3):
        given = [x.requires_grad_() for x in randoms(*dtypes, size=3)]

        def backward(grad, x, y):
            wanted = [True, True, False]
            return pointwisetest.complex_gated_backward(grad, x, y, None, 1.5, wanted)[:2]

        assert gradcheck(backward, given, check_forward_ad=True)


@pytest.mark.parametrize("path", PATHS)
def test_real_numbers_are_computed_as_such_beside_complex_ones(pointwisetest, path):
    """A logarithm of a negative number is NaN, a quotient by 0 infinite, as where torch computes
    each operator by itself."""
    x = torch.tensor(REAL, dtype=torch.float64)
    y = torch.tensor([1 + 2j], dtype=torch.complex128).expand_as(x)
    for place, line in enumerate(LINES["complex_two"]):
        for given in ((x, y), (y, x)):
            function = PATHS[path](lambda *g, at=place: ours(pointwisetest, "complex_two", at)(*g))
            found, expected = function(*given), torchs("complex_two", place)(*given)
            if found.is_complex() and re.search("[+-]", line):
                # torch.add multiplies by 1 first, which makes NaN of an infinity's other part
                kept = ~(expected.real.isinf() & expected.imag.isnan())
                found, expected = found[kept], expected[kept]
            same(found, expected, msg=lambda words, line=line: f"{line}\n{words}")


@pytest.mark.parametrize(("name", "place"), OF_BOTH)
def test_gradients_of_real_numbers_beside_complex_ones(pointwisetest, name, place):
    """At poles as well: that of a real part is real before anything is divided by it."""
    is_acosh = LINES[name][place] == "acosh(x)"  # which has no value below 1
    x = torch.tensor([abs(x) if is_acosh else x for x in REAL], dtype=torch.float64)
    z = torch.tensor([1 + 2j], dtype=torch.complex128).expand_as(x)
    given = [x, z][: len(ARGUMENTS[name])]
    leaves = [x.clone().requires_grad_(), *given[1:]]
    found = []
    for function in (ours(pointwisetest, name, place), torchs(name, place)):
        result = function(*leaves)
        outer = torch.full_like(result, 1 + 1j if result.is_complex() else 1)
        (gradient,) = torch.autograd.grad(result, leaves[:1], outer, materialize_grads=True)
        assert not gradient.is_complex()
        found.append(gradient)
    same(*found)


def test_results_are_dense_and_as_precise_as_said(pointwisetest):
    x, z = randoms(torch.float32, torch.complex64)
    meta = pointwisetest.complex_two(x.to("meta"), z.to("meta"))
    for own, said in zip(pointwisetest.complex_two(x, z), meta, strict=True):
        assert (own.dtype, own.stride()) == (said.dtype, said.stride())
        assert own.untyped_storage().nbytes() == own.numel() * own.itemsize
    number = torch.tensor(0.1, dtype=torch.float64)
    (own,) = pointwisetest.complex_two(number, z)[LINES["complex_two"].index("2 * x") :][:1]
    assert own.dtype == torch.float64
    same(own, (2 * number).expand(60))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("c", [0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5, 0j, 1 + 0j, 2 - 1j], ids=str)
def test_powers(pointwisetest, c, path):
    x = torch.tensor([0j, 1 + 1j, -2 + 0j, 3j], dtype=torch.complex128)
    n = c if isinstance(c, int) and c >= 0 else 2
    found = PATHS[path](lambda x: pointwisetest.complex_powers(x, c, n))(x)
    same(found[0], x**c)
    same(found[1], x.conj() ** n)
    if path == "kernel" and c in (0, 1, 2, 2.5):
        leaf = x.clone().requires_grad_()
        outer = torch.full_like(x, 1 - 2j)
        (own,) = torch.autograd.grad(pointwisetest.complex_powers(leaf, c, n)[0], leaf, outer)
        (expected,) = torch.autograd.grad(leaf**c, leaf, outer)
        same(own, expected)


@pytest.mark.parametrize("path", PATHS)
def test_numbers_of_numbers(pointwisetest, path):
    """Each is complex where it is computed of one that is: a root of -2 is NaN, of -2+0j not."""
    for dtype in (torch.float64, torch.complex128):
        for c, d in itertools.product((2.0, -2.0, -2 + 0j, 1j), (1.5, 1j)):
            x = torch.tensor([-1.0, 2.0, 0.5], dtype=dtype)
            wide = torch.complex128 if isinstance(c, complex) else torch.float64
            root = torch.tensor(c, dtype=wide).sqrt()
            expected = root * d * x + root * x + torch.log(c * x)
            if path == "compiled" and root.isnan():
                continue  # torch writes no complex NaN into a graph
            found = PATHS[path](lambda x, c=c, d=d: pointwisetest.complex_numbers(x, c, d))(x)
            same(found.to(expected.dtype), expected, msg=f"{dtype} {c} {d}")


@pytest.mark.parametrize("path", PATHS)
def test_what_is_chosen_once_a_call_is_real_where_it_is(pointwisetest, path):
    x = torch.tensor([-2 + 0j, 1j], dtype=torch.complex128)
    w = torch.tensor([-2.0, 3.0], dtype=torch.float64)
    for given, twice in itertools.product(((x, w), (w, x), (x, None), (w, None)), (False, True)):
        first, second = given
        log = torch.log(first if second is None else second) * first
        root = torch.sqrt(2 * first if second is None or twice else second) * first
        found = PATHS[path](lambda *g, t=twice: pointwisetest.complex_chosen(*g, t))(*given)
        for own, expected in zip(found, (log, root), strict=True):
            same(own, expected.to(own.dtype))


def gated(x, y, w=None, c=1, f=0.5):
    added = math.sqrt(f) if c == 0 else c * f
    return x * torch.sigmoid(y) * (1 if w is None else w) + c**2 * y + added


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("c", [0, 2, -1.5, 1 - 2j, 0.25j], ids=str)
def test_numbers_may_be_complex(pointwisetest, c, path):
    own = PATHS[path](lambda *given: pointwisetest.complex_gated(*given, c))
    for dtypes in itertools.product((torch.int32, torch.float32, torch.complex128), repeat=3):
        x, y, w = (torch.ones(60).to(t) if t == torch.int32 else randoms(t)[0] for t in dtypes)
        for given in ((x, y, w), (x, y, None)):
            found, expected = own(*given), gated(*given, c)
            assert found.dtype == expected.dtype, dtypes
            same(found, expected, **near(torch.float32))


def test_forms(pointwisetest):
    x, y = randoms(torch.complex64, torch.float32)
    expected, bounds = gated(x, y, c=2j), near(torch.float32)
    wide = torch.empty(60, dtype=torch.complex128)
    assert pointwisetest.complex_gated.out(x, y, c=2j, out=wide) is wide
    same(wide, expected.to(wide.dtype), **bounds)
    same(pointwisetest.complex_gated_(x.clone(), y, c=2j), expected, **bounds)
    lazy = torch.empty(60, dtype=torch.complex64).conj()
    same(pointwisetest.complex_gated.out(x, y, c=2j, out=lazy), expected, **bounds)
    with pytest.raises(RuntimeError, match="ComplexFloat can't be cast to .* Float"):
        pointwisetest.complex_gated_(y.clone(), x)
    with pytest.raises(RuntimeError, match="ComplexFloat can't be cast to .* Float"):
        pointwisetest.complex_gated.out(y, y, c=1j, out=torch.empty(60))


def test_views_that_conjugate_or_negate(pointwisetest):
    x, y = randoms(torch.complex64, torch.complex64)
    for view in (torch.conj, lambda t: t.conj().imag, lambda t: t.view(6, 10).t().conj()):
        given = view(x), view(y)
        same(pointwisetest.complex_gated(*given), gated(*given), **near(torch.float32))


def test_what_has_no_complex_dtype_refuses_complex_numbers(pointwisetest):
    half = torch.ones(2, dtype=torch.float16)
    with pytest.raises(NotImplementedError, match="complex_gated: not implemented for ComplexHalf"):
        pointwisetest.complex_gated(half, half, c=1j)
    with pytest.raises(RuntimeError, match="x must have dtype .*, got complex32"):
        pointwisetest.complex_two(half.to(torch.complex32), half.to(torch.complex32))


@pytest.mark.parametrize("name", OF_ONE)
def test_complex_halfs_are_computed_in_complex64(pointwisetest, name):
    x = randoms(torch.complex64)[0].to(torch.complex32)
    wide = getattr(pointwisetest, name)(x.to(torch.complex64))
    for own, expected in zip(getattr(pointwisetest, name)(x), wide, strict=True):
        assert own.dtype == (torch.bool if expected.dtype == torch.bool else torch.complex32)
        same(own.to(expected.dtype), expected.to(own.dtype).to(expected.dtype))


def test_meta(pointwisetest):
    for dtypes in itertools.product(DTYPES, DTYPES):
        given = [torch.empty(3, dtype=t, device="meta") for t in dtypes]
        dtype = torch.result_type(*given)
        assert pointwisetest.complex_gated(*given).dtype == dtype
        of_number = pointwisetest.complex_gated(*given, c=1j).dtype
        assert of_number == torch.promote_types(dtype, torch.complex64)
