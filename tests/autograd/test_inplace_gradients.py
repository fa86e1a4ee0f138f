# SPDX-License-Identifier: BSD-3-Clause
"""In-place operators with formulas: gradients, views, versions and errors are those of torch's."""

import inplace_calls
import pytest
import torch
from inplace_calls import both, values


def outcome(function):
    """What a function returns or raises, to compare two functions."""
    try:
        return function()
    except RuntimeError as error:
        return type(error), str(error).splitlines()[0]


def leaves():
    return [t.clone().requires_grad_() for t in values()]


VIEWS = {
    "the tensor": lambda base: base,
    "a row": lambda base: base[1],
    "a transposed view": lambda base: base.t(),
    "a view of a view": lambda base: base.view(6)[2:5],
    "a strided view": lambda base: base[:, ::2],
    "an expanded row": lambda base: base[:1].expand(1, 3),
}


def gradients_of(write, view, requires):
    """Gradients of a loss of a base and of what was written through a view of it."""
    x, y = leaves()
    x.requires_grad_(requires[0])
    y.requires_grad_(requires[1])
    base = x * 1
    written = view(base)
    factor = view(y * 1)
    result = write(written, factor)
    assert result is written
    loss = (base * base.detach()).sum() + (3 * written).sum()
    inputs = [t for t in (x, y) if t.requires_grad]
    grads = torch.autograd.grad(loss, inputs, allow_unused=True)
    return base.detach(), written.detach(), written.requires_grad, base.requires_grad, grads


# Where the base requires no grad, what reads another tensor alone has gradients.
REQUIRING = [
    (name, requires)
    for name in inplace_calls.ALL
    for requires in ((True, True), (True, False), (False, True))
    if requires[0] or name in inplace_calls.READING
]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("name", "requires"), REQUIRING, ids=str)
def test_gradients_through_bases_and_views(name, requires, view, agtest):
    found = [gradients_of(write, VIEWS[view], requires) for write in both(name, agtest)]
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_two_writes_one_after_the_other(name, agtest):
    def twice(write):
        x, y = leaves()
        base = x * 1
        write(base[0], y[0] * 1)
        write(base, y * 1)
        write(base.view(6)[1:4], y.view(6)[2:5] * 1)
        loss = (base * base.detach()).sum()
        grads = outcome(lambda: torch.autograd.grad(loss, (x, y), materialize_grads=True))
        # What one write saved as its result may be what the next one writes to.
        return "modified by" in grads[1] if grads[0] is RuntimeError else grads

    torch.testing.assert_close(*[twice(write) for write in both(name, agtest)])


@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_finite_differences(name, agtest):
    ours, _ = both(name, agtest)

    def function(x, y):
        base = x * 1
        ours(base[0], y[0])
        return base * 2, ours(x * 1, y)

    assert torch.autograd.gradcheck(function, leaves())
    assert torch.autograd.gradgradcheck(function, leaves())


@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_torch_func(name, agtest):
    x, y = values()

    def gradient(write):
        return torch.func.grad(lambda x: (write(x * 1, y) ** 2).sum())

    transforms = (
        lambda write: gradient(write)(x),
        lambda write: torch.func.vmap(gradient(write))(torch.stack([x, 2 * x])),
        lambda write: torch.func.jacrev(lambda x: write(x * 1, y))(x),
        lambda write: torch.func.grad(lambda x: gradient(write)(x).sum())(x),
    )
    for transform in transforms:
        torch.testing.assert_close(*[transform(write) for write in both(name, agtest)])


# ---- what is refused


def _leaf():
    x, y = leaves()
    return x, y.detach()


def _view_of_a_leaf():
    x, y = leaves()
    return x.view(2, 3), y.detach()


def _made_without_grad():
    x, y = leaves()
    with torch.no_grad():
        return (x * 1)[0], y[0]


def _view_made_without_grad():
    x, y = leaves()
    base = x * 1
    with torch.no_grad():
        return base[0], y[0]


def _view_made_in_inference_mode():
    x, y = leaves()
    base = x * 1
    with torch.inference_mode():
        return base[0], y[0].clone()


def _one_of_several_views():
    x, y = leaves()
    return (x * 1).unbind()[0], y.detach()[0]


def _one_of_several_views_made_without_grad():
    x, y = leaves()
    base = x * 1
    with torch.no_grad():
        return base.unbind()[0], y.detach()[0]


def _inference_tensor():
    x, y = values()
    with torch.inference_mode():
        return x.clone(), y


ODD = [
    _leaf, _view_of_a_leaf, _made_without_grad, _view_made_without_grad,
    _view_made_in_inference_mode, _one_of_several_views, _one_of_several_views_made_without_grad,
    _inference_tensor,
]  # fmt: skip


@pytest.mark.parametrize("make", ODD, ids=lambda make: make.__name__.strip("_"))
@pytest.mark.parametrize("grad_mode", [True, False])
@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_what_torch_refuses_is_refused_with_its_message(name, grad_mode, make, agtest):
    def attempt(write):
        x, y = make()
        before = x.clone()

        def run():
            with torch.set_grad_enabled(grad_mode):
                return write(x, y).detach()

        return outcome(run), torch.equal(x, before)

    (actual, ours_kept), (expected, torchs_kept) = [attempt(write) for write in both(name, agtest)]
    assert type(actual) is type(expected)
    assert ours_kept == torchs_kept
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(actual, expected)
    else:
        assert actual == expected


# ---- versions


@pytest.mark.parametrize("name", inplace_calls.ALL)
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_versions_rise_as_torchs_do(name, requires_grad, mode, agtest):
    def versions(write):
        x, y = leaves()
        base = x.requires_grad_(requires_grad) * 1
        view = base[0]
        with mode():
            write(base, y.detach())
            write(base[1], y.detach()[0])
        return base._version, view._version, y._version

    assert versions(both(name, agtest)[0]) == versions(both(name, agtest)[1]) == (2, 2, 0)


# ---- graphs


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("product_", "ProductBackward0"), ("expo_", "ExpoBackward0"), ("neg_", "NegBackward0"),
        ("squared_", "SquaredBackward0"), ("decay_", "DecayBackward0"),
        ("root_", "RootBackward0"),
    ],
)  # fmt: skip
def test_an_in_place_form_records_the_node_of_its_functional_form(name, node, agtest):
    x, y = leaves()
    z = x * 1
    both(name, agtest)[0](z, y)
    assert z.grad_fn.name() == node
    assert z.grad_fn.next_functions[0][0].name() == "MulBackward0"
    assert not z.is_leaf


def test_a_tensor_that_required_no_grad_requires_it_after_a_write(agtest):
    x, y = values()
    y.requires_grad_()
    agtest.product_(x, y)
    assert x.requires_grad and x.grad_fn.name() == "ProductBackward0"
    with torch.no_grad():
        z, _ = values()
        agtest.product_(z, y)
    assert not z.requires_grad


def test_two_arguments_that_are_written_to(agtest):
    def torchs(x, y):
        x.add_(y)
        y.pow_(2)
        return x, y

    for weights in ((1, 0), (0, 1), (2, 3)):
        found = []
        for function in (agtest.accumulate, torchs):
            x, y = leaves()
            written = x * 1, y * 1
            results = function(*written)
            assert results[0] is written[0] and results[1] is written[1]
            loss = sum(w * (r**2).sum() for w, r in zip(weights, results) if w)
            grads = torch.autograd.grad(loss, (x, y), materialize_grads=True)
            found.append(([r.detach() for r in results], [r._version for r in results], grads))
        torch.testing.assert_close(*found)


@pytest.mark.parametrize("requires", [(True, False), (False, True), (True, True)], ids=str)
@pytest.mark.parametrize("name", ["weighed_", "own_weighed_"])
def test_the_history_of_what_is_overwritten_ends(name, requires, agtest):
    x, y = (t.detach().requires_grad_(r) for t, r in zip(leaves(), requires))
    written = x * 1
    result = getattr(agtest, name)(written, y)
    assert result is written and written.requires_grad
    grads = torch.autograd.grad(written.sum(), [t for t in (x, y) if t.requires_grad],
                                allow_unused=True)  # fmt: skip
    assert [None if g is None else g.tolist() for g in grads] == [
        expected
        for expected, required in zip((None, x.tolist()), requires)
        if required
    ]  # fmt: skip
    leaf = values()[0].requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        getattr(agtest, name)(leaf, y)


def test_a_condition_that_does_not_hold_keeps_the_history(agtest):
    x, _ = leaves()
    for yes in (True, False):
        written = x * 1
        agtest.doubled_if_(written, yes)
        (grad,) = torch.autograd.grad(written.sum(), x)
        assert grad.eq(2 if yes else 1).all()
    agtest.doubled_if_(x, False)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        agtest.doubled_if_(x, True)


def test_two_arguments_that_are_written_to_cannot_be_views(agtest):
    for position, name in enumerate(("self", "other")):
        x, y = leaves()
        written = [x * 1, y * 1]
        before = written[position].detach().clone()
        written[position] = written[position][:]
        with pytest.raises(RuntimeError, match=f"accumulate: '{name}' is a view"):
            agtest.accumulate(*written)
        assert torch.equal(written[position], before)
        with torch.no_grad():
            agtest.accumulate(*written)


# ---- out=


def test_out_refuses_what_requires_grad_as_torch_does(agtest):
    def attempts(multiply):
        for requiring in range(3):
            tensors = [*values(), torch.empty(2, 3, dtype=torch.float64)]
            tensors[requiring].requires_grad_()
            yield outcome(lambda: multiply(tensors[0], tensors[1], out=tensors[2]))

    found = list(attempts(agtest.product)), list(attempts(torch.mul))
    for ours, torchs in zip(*found):
        assert ours[0] is torchs[0] is RuntimeError
        for words in ("functions with out=... arguments", "one of the arguments requires grad"):
            assert words in ours[1] and words in torchs[1]


def test_out_works_where_no_gradient_is_recorded(agtest):
    x, y = leaves()
    out = torch.empty(2, 3, dtype=torch.float64)
    with torch.no_grad():
        assert agtest.product(x, y, out=out) is out
    assert not out.requires_grad
    torch.testing.assert_close(out, (x * y).detach())
    assert agtest.product(x.detach(), y.detach(), out=out) is out
    assert out._version == 2
