# SPDX-License-Identifier: BSD-3-Clause
"""Operators that return views: tensors that torch knows as views of their base."""

import pytest
import torch


def leaf():
    return torch.arange(6.0, dtype=torch.float64).reshape(2, 3).requires_grad_()


def views_of(ops, x):
    return [ops.plain_view(x), *ops.plain_views(x)]


def test_a_view_knows_its_base(agtest):
    x = torch.ones(2, 3)
    for view in views_of(agtest, x):
        assert view._is_view()
        assert view._base is x
        assert view.data_ptr() in (x.data_ptr(), x[1].data_ptr())
    assert torch.equal(agtest.plain_view(x), x.t())


def test_a_view_of_a_view_has_the_first_base(agtest):
    x = torch.ones(2, 3)
    assert agtest.plain_view(x[:1])._base is x
    assert agtest.plain_view(agtest.plain_view(x))._base is x


def test_view_and_base_share_their_version(agtest):
    x = torch.ones(2, 3)
    view = agtest.plain_view(x)
    first, _ = agtest.plain_views(x)
    x.mul_(2)
    assert (view._version, first._version) == (1, 1)
    view.mul_(2)
    assert (x._version, first._version) == (2, 2)
    agtest.plain_mul_(view, torch.ones(3, 2))
    assert x._version == 3
    assert x.eq(4).all()


def test_a_view_requires_grad_as_its_base_does(agtest):
    assert all(view.requires_grad for view in views_of(agtest, leaf()))
    assert not any(view.requires_grad for view in views_of(agtest, leaf().detach()))
    with torch.no_grad():
        assert not any(view.requires_grad for view in views_of(agtest, leaf() * 1))


def test_writing_to_a_view_of_a_leaf_is_refused(agtest):
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        agtest.plain_view(leaf()).mul_(2)


def test_writing_to_a_view_that_would_need_a_derivative_is_refused(agtest):
    with pytest.raises(RuntimeError, match="made by agtest::plain_view, which has no derivative"):
        agtest.plain_view(leaf() * 1).mul_(2)
    with pytest.raises(RuntimeError, match="a function that returns multiple views"):
        agtest.plain_views(leaf() * 1)[0].mul_(2)


def test_writing_what_requires_grad_to_a_view_is_refused_or_raises_on_backward(agtest):
    base = torch.ones(2, 3, dtype=torch.float64)
    view = agtest.plain_view(base)
    with pytest.raises(RuntimeError, match="agtest::plain_view"):
        view.mul_(leaf().t())
        (view.sum() + base.sum()).backward()


def test_writing_to_one_of_several_views_is_refused_as_torchs_are(agtest):
    for views in [agtest.plain_views(leaf() * 1), (leaf() * 1).unbind()]:
        with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
            views[0].mul_(2)


def test_a_view_made_under_no_grad_is_not_written_to_with_grad(agtest):
    base = leaf() * 1
    with torch.no_grad():
        ours, torchs = agtest.plain_view(base), base.t()
    for view in (ours, torchs):
        with pytest.raises(RuntimeError, match="no_grad mode"):
            view.mul_(2)
        with torch.no_grad():
            view.mul_(2)


def test_a_view_made_under_inference_mode_is_not_written_to_with_grad(agtest):
    base = leaf() * 1
    with torch.inference_mode():
        ours, torchs = agtest.plain_view(base), base.t()
    for view in (ours, torchs):
        assert not view.is_inference()
        with pytest.raises(RuntimeError, match="inference.mode"):
            view.mul_(2)


def test_views_of_inference_tensors(agtest):
    with torch.inference_mode():
        x = torch.ones(2, 3)
        views = views_of(agtest, x)
    assert all(view.is_inference() for view in views)


def test_writing_to_the_base_afterwards_is_noticed_in_what_the_view_was_used_for(agtest):
    base = torch.ones(2, 3, dtype=torch.float64)
    view = agtest.plain_view(base)
    weight = leaf().t().detach().requires_grad_()
    result = weight * view
    base.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()
