# SPDX-License-Identifier: BSD-3-Clause
"""`layout:`: kernels that refuse other strides than they ask for, given every kind of tensor."""

import pytest
import torch

from torchext.compat import version

# A tensor with the values of another, and with other strides.
LAYOUTS = {
    "contiguous": lambda t: t.clone(),
    "transposed": lambda t: t.transpose(0, -1).contiguous().transpose(0, -1),
    "every other row": lambda t: torch.stack([t, t], 1).flatten(0, 1)[::2],
    "every other column": lambda t: torch.stack([t, t], -1).flatten(-2)[..., ::2],
    "offset": lambda t: torch.cat([t[:1], t])[1:],
    "channels last": lambda t: t[None].contiguous(memory_format=torch.channels_last)[0],
}


def tensor(*shape: int) -> torch.Tensor:
    return torch.arange(torch.Size(shape).numel(), dtype=torch.double).reshape(shape)


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS.keys())
def lay_out(request):
    return request.param


def test_a_plain_kernel_and_its_meta_kernel(argtest, lay_out) -> None:
    a, b = tensor(4, 6, 8), tensor(4, 6, 8) + 1
    torch.testing.assert_close(argtest.plain(lay_out(a), lay_out(b), torch.ones(2)), a + b)
    meta = argtest.plain(lay_out(a).to("meta"), lay_out(b).to("meta"), b)
    assert (meta.shape, meta.device.type) == (a.shape, "meta")


def test_nothing_is_copied_that_nobody_asks_for(argtest) -> None:
    a = tensor(4, 6)
    torch.testing.assert_close(argtest.plain(a, a, tensor(8, 8).t()[::3]), 2 * a * 3)
    padded = tensor(4, 8)[:, :6]  # stride 1 in the last dimension is all that is asked for
    torch.testing.assert_close(argtest.plain(a, padded, torch.ones(1)), a + padded)


@pytest.mark.parametrize("shape", [(4, 6, 8), (3, 1, 4), (1, 1, 1), (0, 4, 2)])
def test_a_kernel_that_is_given_its_results(argtest, lay_out, shape) -> None:
    x, weight = tensor(*shape), tensor(*shape) + 1
    torch.testing.assert_close(argtest.ruled(lay_out(x)), x)
    torch.testing.assert_close(argtest.ruled(lay_out(x), lay_out(weight)), x * weight)
    out = lay_out(torch.zeros(shape, dtype=torch.double))
    assert argtest.ruled(lay_out(x), lay_out(weight), out=out) is out
    torch.testing.assert_close(out, x * weight)


def test_a_tensor_of_no_dimension(argtest) -> None:
    assert argtest.ruled(torch.tensor(3.0), torch.tensor(2.0)).item() == 6


def test_the_forms_of_a_structured_operator(argtest, lay_out) -> None:
    x = tensor(4, 6, 8)
    torch.testing.assert_close(argtest.classed(lay_out(x), 3), x * 3)
    out = lay_out(torch.zeros_like(x))
    torch.testing.assert_close(argtest.classed(lay_out(x), 3, out=out), x * 3)
    own = lay_out(x)
    strides = own.stride()
    assert argtest.classed_(own, 3) is own
    torch.testing.assert_close(own, x * 3)
    assert own.stride() == strides


def test_lists(argtest, lay_out) -> None:
    x = tensor(4, 6, 8)
    total = argtest.listed([lay_out(x), x], [None, lay_out(x)])
    assert total == 3 * x.sum()


def test_a_composite_kernel_differentiates_through_the_copy(argtest, lay_out) -> None:
    x = lay_out(tensor(4, 6, 8)).requires_grad_()
    argtest.through_parts(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(x, 2))


def test_what_is_written_to_a_copy_is_written_back(argtest, lay_out) -> None:
    x, y = tensor(4, 6, 8), tensor(4, 6, 8) + 5
    own = lay_out(x)
    strides, pointer, version = own.stride(), own.data_ptr(), own._version
    assert argtest.changed_(own, lay_out(y)) is own
    torch.testing.assert_close(own, x + y)
    assert (own.stride(), own.data_ptr()) == (strides, pointer)
    assert own._version > version

    tensors = [lay_out(x) for _ in range(4)]
    assert argtest.all_changed(tensors[0], tensors[1], tensors[2:]) is None
    for changed, step in zip(tensors, (1, 2, 3, 3)):
        torch.testing.assert_close(changed, x + step)
    argtest.all_changed(tensors[0], None, [])
    torch.testing.assert_close(tensors[0], x + 2)

    only = lay_out(x)
    torch.testing.assert_close(argtest.changed_beside(only), (x + 1) * 2)
    torch.testing.assert_close(only, x + 1)


def test_a_view_is_written_through(argtest) -> None:
    base = tensor(6, 4)
    argtest.changed_(base.t()[1:3], torch.ones(2, 6, dtype=torch.double))
    expected = tensor(6, 4)
    expected[:, 1:3] += 1
    torch.testing.assert_close(base, expected)


def test_an_expanded_tensor_is_refused_and_stays(argtest) -> None:
    base = tensor(1, 4)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers"):
        argtest.changed_(base.expand(3, 4), torch.ones(3, 4, dtype=torch.double))
    torch.testing.assert_close(base, tensor(1, 4))


def test_a_kernel_that_fails_changes_nothing(argtest) -> None:
    base = tensor(6, 4)
    with pytest.raises(RuntimeError, match="must match the size"):
        argtest.changed_(base.t(), torch.ones(5, dtype=torch.double))
    torch.testing.assert_close(base, tensor(6, 4))


@pytest.mark.skipif(
    version() < (2, 13), reason="torch 2.11 asks for a Meta kernel of an operator that only writes"
)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_with_what_the_compiler_computes(argtest, backend) -> None:
    def f(x, y):
        x = (x * 2).t()
        argtest.changed_(x, y.t() + 1)
        return argtest.ruled(argtest.plain(x, x, x), x).sin()

    x, y = torch.randn(4, 6), torch.randn(4, 6)
    torch._dynamo.reset()
    compiled = torch.compile(f, fullgraph=True, backend=backend)
    torch.testing.assert_close(compiled(x, y), f(x, y))


def test_inductor_is_told_where_all_arguments_are_contiguous(argtest) -> None:
    tag = torch.Tag.needs_contiguous_strides
    assert tag in argtest.listed.default.tags
    assert tag in argtest.through_parts.default.tags
    assert tag not in argtest.plain.default.tags  # one of two
    assert tag not in argtest.changed_.default.tags  # Inductor's copy would not be written back
