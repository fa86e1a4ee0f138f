# SPDX-License-Identifier: BSD-3-Clause
"""What operators of rows return: against torch's own in double precision, rounded once."""

import itertools

import pytest
import torch
from every_path import PATHS
from rows_with_torch import FLOATS, WITH_TORCH, arguments_of, as_tuple

LENGTHS = [1, 2, 7, 16, 31, 64, 100, 1000, 4099]


def compare(found, expected, **tolerances):
    found, expected = as_tuple(found), as_tuple(expected)
    assert len(found) == len(expected)
    for own, value in zip(found, expected):
        torch.testing.assert_close(own, value.to(own.dtype), equal_nan=True, **tolerances)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", WITH_TORCH)
def test_values_are_torchs(rowstest, name, dtype):
    function = WITH_TORCH[name][0]
    for length in LENGTHS:
        given = arguments_of(name, (3, 2), length, dtype)
        wide = [a.double() if a.is_floating_point() else a for a in given]
        found = getattr(rowstest, name)(*given)
        for own in as_tuple(found):
            assert own.dtype == dtype or not own.is_floating_point()
            assert own.is_contiguous()
        compare(found, function(*wide))


@pytest.mark.parametrize("rows", [(), (1,), (0,), (2, 0, 3), (5,), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("name", WITH_TORCH)
def test_rows_of_any_number_of_dimensions(rowstest, name, rows):
    if name == "cross_entropy" and 0 in rows:
        pytest.skip("torch's cross_entropy of no rows is reshaped to one size that is not known")
    given = arguments_of(name, rows, 6)
    compare(getattr(rowstest, name)(*given), WITH_TORCH[name][0](*given))


def layouts(x):
    """The same elements, laid out in every way."""
    yield x.transpose(0, 1).contiguous().transpose(0, 1)
    yield x.transpose(0, -1).contiguous().transpose(0, -1)
    yield torch.stack([x, x], -1)[..., 0]
    yield torch.cat([x, x], -1)[..., : x.shape[-1]]


@pytest.mark.parametrize("name", WITH_TORCH)
def test_strides_do_not_matter(rowstest, name):
    given = arguments_of(name, (3, 4), 37, torch.float32)
    expected = getattr(rowstest, name)(*given)
    for laid_out in layouts(given[0]):
        compare(getattr(rowstest, name)(laid_out, *given[1:]), expected, rtol=0, atol=0)


def test_operands_broadcast(rowstest):
    torch.manual_seed(0)
    x, y = torch.randn(4, 1, 6), torch.randn(3, 1)
    w = torch.randn(6)
    compare(
        rowstest.add_rms_norm(x, y, w),
        WITH_TORCH["add_rms_norm"][0](x + torch.zeros(4, 3, 6), y.expand(4, 3, 6), w),
    )
    scale = torch.randn(3)
    compare(rowstest.scaled(x, scale), WITH_TORCH["scaled"][0](x.expand(4, 3, 6), scale))
    one = torch.randn(5, 1).expand(5, 8)
    compare(rowstest.softmax(one), one.softmax(-1))


def test_optional_tensors(rowstest):
    x, w = torch.randn(3, 5), torch.randn(5)
    norm = torch.nn.functional.layer_norm
    compare(rowstest.layer_norm(x), norm(x, (5,)))
    compare(rowstest.layer_norm(x, w), norm(x, (5,), w))
    compare(rowstest.layer_norm(x, None, w), norm(x, (5,), None, w))
    compare(rowstest.rms_norm(x), torch.nn.functional.rms_norm(x, (5,), None, 1e-6))


SPECIAL = [0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), float("nan"), 1e30, -1e30]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "largest"])
def test_special_values_are_torchs(rowstest, name, dtype):
    values = torch.tensor(SPECIAL, dtype=dtype)
    pairs = torch.cartesian_prod(values, values, values)
    for length in (3, 40):
        rows = pairs.repeat(1, 14)[:, :length]
        found, expected = getattr(rowstest, name)(rows), WITH_TORCH[name][0](rows)
        compare(found, expected)


def test_large_numbers_do_not_overflow(rowstest):
    x = torch.tensor([[1000.0, 1000.0, 999.0], [-1e4, -1e4, -1e4]])
    compare(rowstest.softmax(x), x.softmax(-1))
    compare(rowstest.logsumexp(x), x.logsumexp(-1))


def test_long_sums_are_exact_enough(rowstest):
    x = torch.rand(2, 300_001) + 1
    (total, _, _), expected = rowstest.moments(x), x.double().sum(-1)
    assert (total.double() / expected - 1).abs().max() < 1e-6
    ones = torch.ones(1, 300_001, dtype=torch.bfloat16)
    assert rowstest.largest(ones)[2].item() == 300_001
    assert rowstest.largest(ones)[1].item() == 0
    ones[0, 271_828] = 2
    assert rowstest.largest(ones)[1].item() == 271_828


def test_the_first_of_equal_ones_is_the_largest(rowstest):
    for row in ([1.0, 3, 3, 2], [float("nan"), 3, float("nan"), 4], [-float("inf")] * 3):
        x = torch.tensor([row])
        assert torch.equal(rowstest.largest(x)[1], x.argmax(-1))


def test_results_do_not_depend_on_the_number_of_threads(rowstest):
    x = torch.randn(257, 999)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = rowstest.softmax(x)
        torch.set_num_threads(4)
        assert torch.equal(one, rowstest.softmax(x))
    finally:
        torch.set_num_threads(threads)


def test_an_ignored_index_may_be_no_place_of_the_row(rowstest):
    x, target = torch.randn(3, 5), torch.tensor([4, -100, 0])
    expected = torch.nn.functional.cross_entropy(x, target, reduction="none")
    compare(rowstest.cross_entropy(x, target), expected)
    compare(rowstest.cross_entropy(x, target.int()), expected)
    compare(rowstest.chosen(x, target), WITH_TORCH["chosen"][0](x, target))
    with pytest.raises(IndexError, match="index has -100, and rows have 5 elements"):
        rowstest.element(x, target)
    compare(
        rowstest.cross_entropy(x, torch.tensor([4, 7, 0]), ignore_index=7),
        torch.nn.functional.cross_entropy(
            x, torch.tensor([4, 7, 0]), ignore_index=7, reduction="none"
        ),
    )


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (lambda ns, x: ns.cross_entropy(x, torch.tensor([0, 5, 1])), IndexError,
         "rowstest::cross_entropy: target has 5, and rows have 5 elements"),
        (lambda ns, x: ns.cross_entropy(x, torch.tensor([0, -1, 1])), IndexError,
         "target has -1, and rows have 5 elements"),
        (lambda ns, x: ns.cross_entropy(x, torch.ones(3)), RuntimeError,
         "rowstest::cross_entropy: target is an index, and has Float"),
        (lambda ns, x: ns.cross_entropy(x, torch.ones(2, dtype=torch.int64)), RuntimeError,
         "target has 2 where the tensors before it have 3: they do not broadcast"),
        (lambda ns, x: ns.rms_norm(x, torch.ones(4)), RuntimeError,
         "rowstest::rms_norm: weight has 4 where the tensors before it have 5"),
        (lambda ns, x: ns.softmax(torch.tensor(1.0)), RuntimeError,
         "rowstest::softmax: input has no dimension, and no rows"),
        (lambda ns, x: ns.largest(torch.ones(3, 0)), IndexError,
         "rowstest::largest: rows without elements have no largest or least one"),
        (lambda ns, x: ns.softmax(torch.ones(3, 2, dtype=torch.complex64)), NotImplementedError,
         "rowstest::softmax: not implemented for ComplexFloat"),
        (lambda ns, x: ns.rms_norm(x, eps="small"), RuntimeError, "eps"),
        (lambda ns, x: ns.silu_and_mul(x), RuntimeError,
         "input has rows of 5 elements, which are not 2 slices of one length"),
        (lambda ns, x: ns.rotary(torch.ones(3, 2), x, x), RuntimeError,
         "rowstest::rotary: slices of x have 1 elements where rows have 5"),
        (lambda ns, x: ns.rotary(torch.ones(3, 8), x, x), RuntimeError,
         "rowstest::rotary: cos has 5 where the tensors before it have 4: they do not broadcast"),
        (lambda ns, x: ns.silu_and_mul(torch.tensor(1.0)), RuntimeError,
         "rowstest::silu_and_mul: input has no dimension, and no rows"),
    ],
)  # fmt: skip
def test_bad_input_is_an_error_that_names_it(rowstest, arguments, error, words):
    for device in ("cpu", "meta"):
        if device == "meta" and "elements" in words and "target has" in words:
            continue  # which has no elements to look at
        with pytest.raises(error, match=words):
            x = torch.randn(3, 5)
            with torch.device(device):
                arguments(rowstest, x.to(device))


def test_rows_without_elements(rowstest):
    x = torch.empty(3, 0)
    assert torch.equal(rowstest.moments.default(torch.ones(3, 2))[0], torch.full((3,), 2.0))
    assert rowstest.rms_norm(x).shape == (3, 0)
    assert torch.equal(rowstest.logsumexp(x), x.logsumexp(-1))
    with pytest.raises(IndexError, match="rows without elements"):
        rowstest.largest(x)


MIXED = {
    "rms_norm": lambda *given: given,
    "cross_entropy": lambda x, w: (x, torch.tensor([1, 2, 0], device=w.device)),
    "rms_norm_backward": lambda x, w: (x, x, w, 0.5, [True, True]),
    "column_sums": lambda x, w: (x, x[:, 0], w),
    "column_sums of a number": lambda x, w: (x[0], w[0], x[1]),
}


@pytest.mark.parametrize("case", MIXED)
def test_meta_and_another_device_are_refused_together(rowstest, case):
    function = getattr(rowstest, case.partition(" ")[0])
    x, w = torch.randn(3, 5), torch.randn(5)
    for a, b in [(x.to("meta"), w), (x, w.to("meta"))]:
        with pytest.raises(RuntimeError, match="expected all tensors on one device, but '"):
            function(*MIXED[case](a, b))
    function(*MIXED[case](x.to("meta"), w.to("meta")))


def test_mixed_dtypes_are_promoted(rowstest):
    x = torch.randn(3, 5, dtype=torch.bfloat16)
    w = torch.randn(5)
    found = rowstest.rms_norm(x, w)
    assert found.dtype == torch.float32
    compare(found, WITH_TORCH["rms_norm"][0](x.float(), w))
    with pytest.raises(NotImplementedError, match="scaled: not implemented for Long"):
        rowstest.scaled(torch.arange(4), torch.tensor(2))
    compare(rowstest.softmax(torch.arange(4)), torch.arange(4.0).softmax(-1))
    assert rowstest.l2_normalize(torch.arange(4)).dtype == torch.float32


def test_slices_are_not_copied(rowstest):
    x = torch.randn(64, 1 << 14)
    with torch.profiler.profile(profile_memory=True) as profile:
        rowstest.silu_and_mul(x)
    made = [event.cpu_memory_usage for event in profile.events() if event.cpu_memory_usage > 0]
    assert max(made) == x.nbytes // 2
    assert {event.key for event in profile.key_averages()} >= {"rowstest::silu_and_mul"}
    assert not {"aten::copy_", "aten::cat"} & {event.key for event in profile.key_averages()}


def test_forms(rowstest):
    x = torch.randn(3, 5)
    expected = x.softmax(-1)
    out = torch.empty(0)
    assert rowstest.softmax.out(x, out=out) is out
    compare(out, expected)
    again = x.clone()
    assert rowstest.softmax_(again) is again
    compare(again, expected)


@pytest.mark.parametrize("path", PATHS)
def test_a_sum_of_the_size_of_another_has_its_own_dtype(rowstest, path):
    """As torch.Tensor.sum_to_size has it."""
    dtypes = [torch.bfloat16, torch.float32, torch.float64]
    for first, second in itertools.product(dtypes, dtypes):
        x, y = torch.randn(2, 3).to(first), torch.randn(1, 3).to(second)
        found = PATHS[path](rowstest.to_size)(x, y)
        expected = (x * y).sum_to_size(1, 3), (x * x).sum_to_size(1, 3)
        assert [r.dtype for r in found] == [r.dtype for r in expected]
        torch.testing.assert_close(found, expected, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("size", [(3, 0), (0, 0), (0, 4)])
def test_softmax_without_elements_is_torchs(rowstest, path, size):
    torch._dynamo.reset()
    results = []
    for function in (PATHS[path](rowstest.softmax), lambda x: x.softmax(-1)):
        x = torch.ones(size, requires_grad=True)
        found = function(x)
        results.append((found, *torch.autograd.grad(found.sum(), x)))
    compare(*results)
