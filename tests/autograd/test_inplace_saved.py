# SPDX-License-Identifier: BSD-3-Clause
"""What in-place operators save: the value before the write only where a formula reads it."""

import inplace_calls
import pytest
import torch
from inplace_calls import both, values

REQUIRES = [(True, True), (True, False), (False, True)]


def saved_by(write, requires):
    """The values that a write saves, as they are when it is over."""
    x, y = [t.requires_grad_(r) for t, r in zip(values(), requires)]
    base = x * 1
    saved = []
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t)
    with hooks:
        write(base, y)
    return sorted(t.clone().flatten().tolist() for t in saved)


@pytest.mark.parametrize("requires", REQUIRES, ids=str)
@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_what_torch_saves_is_saved_and_nothing_else(name, requires, agtest):
    ours, torchs = [saved_by(write, requires) for write in both(name, agtest)]
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(torchs))


@pytest.mark.parametrize(
    ("name", "requires", "count"),
    [
        ("product_", (True, False), 1),
        ("product_", (False, True), 1),
        ("product_", (True, True), 2),
        ("decay_", (True, False), 1),
        ("decay_", (False, True), 1),
        ("expo_", (True, False), 1),
        ("root_", (True, False), 1),
        ("squared_", (True, False), 1),
        ("neg_", (True, False), 0),
        ("scaled_sum_", (True, True), 0),
    ],
)
def test_how_many_tensors_are_saved(name, requires, count, agtest):
    assert len(saved_by(both(name, agtest)[0], requires)) == count


def test_the_value_before_the_write_is_a_copy_of_its_own(agtest):
    x, y = values()
    y.requires_grad_()
    before, place = x.clone(), x.data_ptr()
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        agtest.product_(x, y)
    (original,) = saved
    assert torch.equal(original, before)
    assert original.data_ptr() != place == x.data_ptr()


@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_nothing_is_saved_where_nothing_is_recorded(name, agtest):
    write, _ = both(name, agtest)
    assert saved_by(write, (False, False)) == []
    with torch.no_grad():
        assert saved_by(write, (True, True)) == []


# ---- what is changed afterwards


def _second_write(x, y, z):
    with torch.no_grad():
        z.mul_(2)


def _change_other(x, y, z):
    with torch.no_grad():
        y.mul_(2)


def _change_through_a_view(x, y, z):
    with torch.no_grad():
        z[0].mul_(2)


def _second_write_with_grad(x, y, z):
    z.mul_(2)


CHANGES = [_second_write, _change_other, _change_through_a_view, _second_write_with_grad]


def after_change(write, change, through_view):
    x, y = [t.requires_grad_() for t in values()]
    base, other = x * 1, y * 1
    z = base[:1] if through_view else base
    write(z, other[:1] if through_view else other)
    total = z.sum() + base.sum()
    change(x, other, base)
    total = total + base.sum()
    try:
        return torch.autograd.grad(total, (x, y), allow_unused=True)
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
        return None


@pytest.mark.parametrize("through_view", [False, True], ids=["whole", "view"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_a_change_of_a_saved_value_raises_where_torch_raises(name, change, through_view, agtest):
    ours, torchs = [after_change(write, change, through_view) for write in both(name, agtest)]
    assert (ours is None) == (torchs is None)
    if torchs is not None:
        torch.testing.assert_close(ours, torchs)


def test_a_second_in_place_call_on_a_saved_result_is_noticed(agtest):
    x, _ = [t.requires_grad_() for t in values()]
    z = x * 1
    agtest.expo_(z)
    agtest.neg_(z)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_second_in_place_call_that_saved_the_old_value_is_harmless(agtest):
    x, y = [t.requires_grad_() for t in values()]
    z = x * 1
    agtest.squared_(z)
    agtest.neg_(z)
    agtest.product_(z, y)
    z.sum().backward()
    torch.testing.assert_close(x.grad, (-2 * x * y).detach())
    torch.testing.assert_close(y.grad, -(x**2).detach())


@pytest.mark.parametrize("name", ["expo_", "root_"])
def test_a_result_saved_by_a_write_to_a_view_survives_its_base(name, agtest):
    def gradient(write):
        x, y = [t.requires_grad_() for t in values()]
        base = x * 1
        view = base[1]
        write(view, y[1])
        base[0].mul_(3)  # the same version counter
        return (base * 2).sum(), x

    found = []
    for write in both(name, agtest):
        loss, x = gradient(write)
        try:
            found.append(torch.autograd.grad(loss, x))
        except RuntimeError as error:
            found.append("modified by an inplace operation" in str(error))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_a_second_backward_raises_the_usual_error_where_something_was_saved(name, agtest):
    def attempt(write):
        x, y = [t.requires_grad_() for t in values()]
        z = x * 1
        write(z, y * 1)
        total = z.sum()
        total.backward()
        try:
            total.backward()
        except RuntimeError as error:
            return str(error).splitlines()[0]
        return x.grad

    ours, torchs = [attempt(write) for write in both(name, agtest)]
    assert type(ours) is type(torchs)
    assert isinstance(torchs, torch.Tensor) or ours == torchs


@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_the_bytes_that_a_graph_holds_are_those_of_torchs(name, agtest):
    def held(write):
        x, y = [t.requires_grad_() for t in values()]
        base = x + 0
        other = y + 0
        storages = {t.untyped_storage().data_ptr() for t in (x, y, base, other)}
        extra = []

        def pack(tensor):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in storages:
                storages.add(storage.data_ptr())
                extra.append(storage.nbytes())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            write(base, other)
        return sum(extra)

    ours, torchs = [held(write) for write in both(name, agtest)]
    assert ours == torchs
