# SPDX-License-Identifier: BSD-3-Clause
"""`autogen:` without a rule: the declared forms do what the entry that declares them does."""

import pytest
import torch
from torch._library._out_variant import to_out_variant

from torchext.compat import version


@pytest.fixture
def ops(rulestest):
    return rulestest


def test_an_out_form_copies_the_result(ops):
    x, out = torch.arange(3.0), torch.empty(0)
    assert ops.doubled(x, out=out) is out
    assert out.tolist() == [0, 2, 4]
    view = torch.zeros(6)[::2]
    ops.doubled(x, out=view)
    assert view.tolist() == [0, 2, 4]


def test_an_out_form_refuses_another_dtype_and_device(ops):
    with pytest.raises(RuntimeError, match="must have dtype Float, got Double"):
        ops.doubled(torch.ones(2), out=torch.empty(2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="must be on cpu, got one on meta"):
        ops.doubled(torch.ones(2), out=torch.empty(2, device="meta"))


def test_a_functional_form_leaves_its_argument_alone(ops):
    x = torch.ones(2)
    assert ops.scaled(x, 3.0).tolist() == [3, 3]
    assert x.tolist() == [1, 1]
    out = torch.empty(0)
    assert ops.scaled(x, 3.0, out=out) is out
    assert (x.tolist(), out.tolist()) == ([1, 1], [3, 3])


def test_what_is_written_and_not_returned_comes_behind_self_first(ops):
    first, second = torch.ones(2), torch.zeros(2)
    total, own, other = ops.swapped_functional(first, second)
    assert (total.item(), own.tolist(), other.tolist()) == (2, [1, 1], [0, 0])
    assert (first.tolist(), second.tolist()) == ([1, 1], [0, 0])


def test_an_out_form_of_an_inplace_one_leaves_its_argument_alone(ops):
    x = torch.ones(2)
    assert ops.negated(x, out=torch.empty(0)).tolist() == [-1, -1]
    assert x.tolist() == [1, 1]


def test_a_list_is_written_to_a_list(ops):
    x, outs = torch.arange(4.0), [torch.empty(0), torch.empty(2)]
    assert ops.pieces(x, 2, out=outs) is None
    assert [out.tolist() for out in outs] == [[0, 1], [2, 3]]
    with pytest.raises(RuntimeError, match="the out= list must have 2 tensors, got 1"):
        ops.pieces(x, 2, out=outs[:1])


def test_declared_forms_are_tagged_as_generated(ops):
    assert torch.Tag.generated in ops.scaled.default.tags


@pytest.mark.skipif(version() < (2, 13), reason="torch 2.11 has no tags for these forms")
def test_inductor_finds_no_out_form_to_call_for_a_functional_one(ops):
    assert to_out_variant(ops.doubled.default) is None
    assert to_out_variant(ops.scaled.default) is None
    assert torch.Tag.inplace in ops.scaled_.default.tags


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_calls_of_every_form(ops, backend, dynamic):
    torch._dynamo.reset()

    def function(x, out):
        y = x.clone()
        ops.scaled_(y, 2.0)
        ops.scaled_(y[0], 3.0)
        ops.doubled(y, out=out)
        return y, ops.scaled(out, 2.0)

    x = torch.arange(6.0).view(2, 3)
    eager, compiled = torch.empty(2, 3), torch.empty(2, 3)
    expected = function(x, eager)
    actual = torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic)(x, compiled)
    torch.testing.assert_close((actual, compiled), (expected, eager))


def test_opcheck_passes(ops):
    x = torch.rand(3)
    torch.library.opcheck(ops.doubled.out, (x,), {"out": torch.empty(3)})
    torch.library.opcheck(ops.scaled_.default, (x.clone(), 2.0))
    torch.library.opcheck(ops.scaled.default, (x, 2.0))
    torch.library.opcheck(ops.scaled.out, (x, 2.0), {"out": torch.empty(3)})
