# SPDX-License-Identifier: BSD-3-Clause
"""The batching rules of myns, against torch's own operators under vmap and example by example.

tests/transforms has every operator under vmap; here is what is special about the rules.
"""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import vmap

myns = torch.ops.myns
DTYPES = (torch.bool, torch.int32, torch.int64, torch.half, torch.float, torch.double, torch.cfloat)


@pytest.fixture
def only_own_rules():
    """torch's own loop raises, so that what passes is a rule of ours."""
    torch._C._functorch._set_vmap_fallback_enabled(False)
    yield
    torch._C._functorch._set_vmap_fallback_enabled(True)


@pytest.mark.parametrize(
    "dims", [d for d in itertools.product((0, 1, 2, None), (0, 1, None)) if d != (None, None)]
)
def test_every_position_of_the_batch(only_own_rules, dims) -> None:
    a, b = torch.randn(5, 5, 5), torch.randn(5, 5)
    for out_dim in (0, -1):
        result = vmap(myns.mul, dims, out_dim)(a, b)
        torch.testing.assert_close(result, vmap(torch.mul, dims, out_dim)(a, b))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_a_batch_of_scalars_promotes_as_scalars_do(only_own_rules, dtype, other) -> None:
    x = torch.ones(3, dtype=dtype)
    for y, dim in (
        (torch.ones(4, dtype=other), None),
        (torch.ones((), dtype=other), None),
        (torch.ones(3, dtype=other), 0),
        (torch.ones(3, 4, dtype=other), 0),
    ):
        result = vmap(myns.mul, (0, dim))(x, y)
        examples = [torch.mul(x[i], y if dim is None else y[i]) for i in range(3)]
        assert result.dtype == examples[0].dtype
        torch.testing.assert_close(result, torch.stack(examples))
        torch.testing.assert_close(vmap(myns.mul, (dim, 0))(y, x), result)


@pytest.mark.parametrize("outer", [(0, None), (1, 0), (None, 1)])
@pytest.mark.parametrize("inner", [(0, None), (1, 0), (None, 1), (0, 1)])
def test_nested_batches(only_own_rules, outer, inner) -> None:
    a = torch.randn((5, 5) if outer[0] is None else (5, 5, 5))
    b = torch.randn((5, 5) if outer[1] is None else (5, 5, 5))
    expected = vmap(vmap(torch.mul, inner), outer)(a, b)
    torch.testing.assert_close(vmap(vmap(myns.mul, inner), outer)(a, b), expected)


def test_a_transform_between_two_batches() -> None:
    x, y = torch.randn(3, 4, 6), torch.randn(6)

    def total(op):
        return lambda x, y: vmap(lambda row: op(row, x[0]))(y).sum()

    for transform in (torch.func.grad, torch.func.jacrev, torch.func.jacfwd):
        result = vmap(transform(total(myns.mul)), (0, None))(x, y)
        torch.testing.assert_close(result, vmap(transform(total(torch.mul)), (0, None))(x, y))


def test_rows(only_own_rules) -> None:
    x, weight = torch.randn(3, 4, 6), torch.randn(6)
    expected = F.rms_norm(x, (6,), weight, 1e-6)
    for dim in (0, 1):
        result = vmap(myns.rms_norm, (dim, None), dim)(x, weight)
        torch.testing.assert_close(result, expected)
    torch.testing.assert_close(vmap(myns.rms_norm, (0, None))(x[:, 0], weight), expected[:, 0])
    twice = vmap(vmap(myns.rms_norm, (0, None)), (1, None), 1)(x, weight)
    torch.testing.assert_close(twice, expected)
    weights = torch.stack([weight, 2 * weight, -weight])
    each = torch.stack([F.rms_norm(x[i], (6,), w, 1e-6) for i, w in enumerate(weights)])
    torch.testing.assert_close(vmap(myns.rms_norm)(x, weights), each)


def test_out_tensors(only_own_rules) -> None:
    x, y, weight = torch.randn(3, 4), torch.randn(4), torch.randn(4)
    out = torch.empty(4, 3)
    result = vmap(lambda a, b, out: myns.mul(a, b, out=out), (0, None, 1))(x, y, out)
    torch.testing.assert_close((out.t(), result), (x * y, x * y))
    vmap(lambda a, w, out: myns.rms_norm(a, w, out=out), (0, None, 1))(x, weight, out)
    torch.testing.assert_close(out.t(), F.rms_norm(x, (4,), weight, 1e-6))
    vmap(lambda a, b, out: myns.mul(a, b, out=out), (None, None, 1))(y, y, out)
    torch.testing.assert_close(out.t(), (y * y).expand(3, 4))
    empty = torch.empty(3, 0)
    vmap(lambda a, b, out: myns.mul(a, b, out=out), (0, None, 0))(x, y, empty)
    torch.testing.assert_close(empty, x * y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: vmap(myns.mul_, (None, 0))(torch.ones(4), torch.ones(3, 4)),
            "mul_ writes to 'self', which is not batched, while another argument is",
        ),
        (
            lambda: vmap(lambda a, out: myns.mul(a, a, out=out), (0, None))(
                torch.ones(3, 4), torch.ones(4)
            ),
            "`self` not being vmapped over",
        ),
        (
            lambda: vmap(myns.mul_)(torch.ones(3, 4), torch.ones(3, 1, 4)),
            "doesn't match the broadcast shape",
        ),
        # with the batch in front these look as if they broadcast
        (
            lambda: vmap(myns.mul_, (0, None))(torch.ones(3, 4), torch.ones(3, 4)),
            "'self' with shape \\[4\\] doesn't match the broadcast shape",
        ),
        (
            lambda: vmap(myns.mul_, (0, None))(torch.ones(3), torch.ones(3)),
            "doesn't match the broadcast shape",
        ),
        (lambda: vmap(myns.rms_norm)(torch.ones(3)), "input has no dimension, and no rows"),
        (lambda: vmap(myns.mul)(torch.ones(3, 4), torch.ones(3, 5)), "must match the size"),
    ],
)
def test_what_cannot_be(call, message) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()


def test_a_tensor_that_left_its_vmap() -> None:
    left = []
    vmap(lambda x: (left.append(x), x)[1])(torch.ones(3, 4))
    for operator in (myns.neg, myns.rms_norm):
        with pytest.raises(RuntimeError, match="used outside of the vmap that made it"):
            operator(left[0])


def test_one_graph_for_all_batch_sizes() -> None:
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph

    batched = vmap(lambda x, w: myns.mul(myns.rms_norm(x, w), x), (0, None))
    compiled = torch.compile(batched, fullgraph=True, dynamic=True, backend=backend)
    weight = torch.randn(6)
    for size in (3, 5, 8):
        x = torch.randn(size, 4, 6)
        torch.testing.assert_close(compiled(x, weight), F.rms_norm(x, (6,), weight, 1e-6) * x)
    assert len(graphs) == 1
