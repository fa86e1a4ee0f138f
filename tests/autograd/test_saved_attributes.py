# SPDX-License-Identifier: BSD-3-Clause
"""Attributes of tensors in formulas: their values are saved, the tensors are not."""

import gc
import weakref

import pytest
import torch

SHAPES = [(2, 3), (3, 1, 4), (5,), (1, 1), (2, 0)]
DTYPES = [torch.float32, torch.float64, torch.complex64]


def arguments(shape, dtype, requires_grad=True):
    self = torch.ones(shape, dtype=dtype, requires_grad=requires_grad)
    tensors = [torch.ones(4, 2), torch.ones(3, dtype=torch.float16), torch.ones(1)]
    return self, torch.ones(7, 6), tensors


def measure(self, maybe, tensors):
    """The sum that the formula's function makes of all attributes, by Python's own."""
    sizes, strides = list(self.shape), list(self.stride())
    return (
        sum(sizes)
        + (3 + 41) * sum(strides)
        + 7 * sizes[0]
        + 11 * sizes[-1]
        + (13 + 17) * self.numel()
        + 19 * self.dim()
        + 23 * (self.dtype == torch.float32)
        + 29
        + 31 * self.is_conj()
        + (0 if maybe is None else 37 * sum(maybe.shape))
        + 43 * sum(tensors[0].shape)
        + 47 * sum(tensors[1].shape)
        + 53 * (tensors[1].dtype == torch.float16)
    )


def gradient(ops, self, maybe, tensors):
    result = ops.measured(self, maybe, tensors)
    return torch.autograd.grad(result, self, torch.ones_like(result))[0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_attribute_reaches_the_formula(shape, dtype, agtest):
    given = arguments(shape, dtype)
    found = gradient(agtest, *given)
    assert found.dtype == dtype
    torch.testing.assert_close(found, torch.full(shape, measure(*given), dtype=dtype))


def test_attributes_of_a_missing_tensor(agtest):
    self, _, tensors = arguments((2, 3), torch.float64)
    found = gradient(agtest, self, None, tensors)
    assert found.eq(measure(self, None, tensors)).all()


def test_strides_and_conjugation_are_those_of_the_call(agtest):
    self, maybe, tensors = arguments((2, 3), torch.complex64)
    for view in (self.t(), self.conj(), self.conj().t()):
        view.retain_grad()
        result = agtest.measured(view, maybe, tensors)
        (found,) = torch.autograd.grad(result, view, torch.ones_like(result))
        torch.testing.assert_close(
            found.resolve_conj(), torch.full(view.shape, measure(view, maybe, tensors)) + 0j
        )


def test_no_tensor_is_saved_and_none_is_kept(agtest):
    self, maybe, tensors = arguments((2, 3), torch.float64)
    middle = self * 1
    saved = []
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t)
    with hooks:
        result = agtest.measured(middle, maybe, tensors)
    assert saved == []
    expected, gone = measure(middle, maybe, tensors), [weakref.ref(t) for t in (middle, maybe)]
    del middle, maybe, tensors
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
    result.sum().backward()
    assert self.grad.eq(expected).all()


def test_a_change_of_a_tensor_whose_attributes_were_saved_is_harmless(agtest):
    self, maybe, tensors = arguments((2, 3), torch.float64)
    middle = self * 1
    expected = measure(middle, maybe, tensors)
    result = agtest.measured(middle, maybe, tensors)
    middle.mul_(2)
    maybe.mul_(2)
    result.sum().backward()
    assert self.grad.eq(expected).all()


def test_a_graph_of_attributes_can_be_used_twice(agtest):
    self, maybe, tensors = arguments((2, 3), torch.float64)
    result = agtest.measured(self, maybe, tensors).sum()
    result.backward()
    result.backward()  # nothing was saved that backward frees
    assert self.grad.eq(2 * measure(self, maybe, tensors)).all()


# ---- values of lists and results


def test_zeros_of_a_geometry_are_of_its_dtype_and_device(agtest):
    x = torch.ones(2, 3, dtype=torch.float32, requires_grad=True)
    _, second = agtest.turned(x, torch.zeros(2, 3))
    (found,) = torch.autograd.grad(second.sum(), x)
    assert found.dtype == torch.float32
    assert found.eq(0).all()


def test_a_list_of_results_is_saved_without_a_cycle(agtest):
    x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
    results = agtest.each_expo([x, y])
    gone = [weakref.ref(result) for result in results]
    (results[0].sum() + 2 * results[1].sum()).backward()
    torch.testing.assert_close((x.grad, y.grad), (x.exp().detach(), 2 * y.exp().detach()))
    gc.disable()
    try:
        del results
        assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()


def test_a_changed_result_of_a_list_is_noticed(agtest):
    x = torch.ones(3, requires_grad=True)
    first, second = agtest.each_expo([x, x])
    with torch.no_grad():
        second.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        first.sum().backward()


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("requires", [(1, 1), (1, 0), (0, 1)], ids=str)
def test_formulas_for_each_element_of_lists(used, requires, agtest):
    found = []
    for multiply in (agtest.each_product, lambda x, y: [a * b for a, b in zip(x, y)]):
        x = [torch.full((3,), 2.0 + i).requires_grad_(bool(requires[0])) for i in range(2)]
        y = [torch.full((3,), 5.0 + i).requires_grad_(bool(requires[1])) for i in range(2)]
        results = multiply(x, y)
        inputs = [t for t in (*x, *y) if t.requires_grad]
        loss = sum((results[i] ** 2).sum() for i in used)
        found.append(torch.autograd.grad(loss, inputs, allow_unused=True))
    torch.testing.assert_close(*found)


def test_each_element_of_a_list_has_its_factor(agtest):
    x, y = (torch.ones(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    first, second = agtest.each_scaled([x, y], [2, -0.5])
    (first.sum() + second.sum()).backward()
    assert x.grad.eq(2).all()
    assert y.grad.eq(-0.5).all()


def test_a_list_of_gradients_from_one_call(agtest):
    tensors = [torch.full((3,), 1.0 + i, dtype=torch.float64) for i in range(3)]
    tensors = [t.requires_grad_(i != 1) for i, t in enumerate(tensors)]
    result = agtest.stacked(tensors)
    weights = torch.arange(9.0, dtype=torch.float64).view(3, 3)
    (result * weights).sum().backward()
    assert torch.equal(tensors[0].grad, weights[0])
    assert tensors[1].grad is None
    assert torch.equal(tensors[2].grad, weights[2])
