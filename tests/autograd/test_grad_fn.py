# SPDX-License-Identifier: BSD-3-Clause
"""grad_fn in Python: a class a node, with what the node saved, as that of torch's own nodes."""

import gc
import re

import formula_calls
import pytest
import torch

import torchext.ops

OWN = torchext.ops


def tensor(requires_grad=True):
    return torch.arange(1.0, 7.0).reshape(2, 3).requires_grad_(requires_grad)


def saved_names(node):
    return {name for name in dir(node) if "_saved_" in name}


def error_of(call):
    with pytest.raises(Exception) as info:
        call()
    return type(info.value), str(info.value)


@pytest.fixture
def pair():
    """A node of this library and the one of torch that does the same."""
    x, y = tensor(), tensor()
    return OWN.mul(x, y).grad_fn, torch.mul(x, y).grad_fn


def test_a_node_shows_its_name_as_torchs_own(pair):
    ours, theirs = pair
    address = re.compile(r"0x\w+")
    assert address.sub("", repr(ours)) == address.sub("", repr(theirs))
    assert repr(ours).startswith("<MulBackward0 object at 0x")
    assert ours.name() == theirs.name() == "MulBackward0"
    assert type(ours).__name__ == type(theirs).__name__ == "MulBackward0"
    assert type(ours).__module__ == type(theirs).__module__
    assert type(ours).__mro__[1:] == type(theirs).__mro__[1:]
    assert type(ours) is not type(theirs)


@pytest.mark.parametrize("name", formula_calls.ALL)
def test_every_node_has_a_class_of_its_name(name, agtest):
    results = formula_calls.ALL[name](agtest, tensor().double().detach().requires_grad_())
    for result in results:
        node = result.grad_fn
        assert type(node).__name__ == node.name()
        assert isinstance(node, torch.autograd.graph.Node)
        for property_ in saved_names(node):
            getattr(node, property_)


def test_a_node_has_the_methods_of_every_node(pair):
    ours, theirs = pair
    assert set(dir(ours)) - saved_names(ours) == set(dir(theirs)) - saved_names(theirs)
    assert ours._sequence_nr() < theirs._sequence_nr()
    ours._set_sequence_nr(3)
    assert ours._sequence_nr() == 3
    (our_input,), (their_input,) = ours._input_metadata, theirs._input_metadata
    assert type(our_input) is type(their_input)
    assert our_input.shape == their_input.shape
    assert ours.next_functions == theirs.next_functions
    assert ours.requires_grad is theirs.requires_grad is True
    ours.metadata["key"] = 1
    assert ours.metadata == {"key": 1}
    assert error_of(type(ours)) == error_of(type(theirs))


def test_a_node_is_one_object_while_someone_has_it(pair):
    x = tensor()
    result = OWN.mul(x, x)
    assert result.grad_fn is result.grad_fn
    assert OWN.mul(result, x).grad_fn.next_functions[0][0] is result.grad_fn


def test_saved_tensors_are_properties_of_the_same_names_and_values(pair):
    ours, theirs = pair
    assert saved_names(theirs) <= saved_names(ours)
    more = {name: getattr(ours, name) for name in saved_names(ours) - saved_names(theirs)}
    assert set(more.values()) == {torch.float32}, "upstream saves no more but the data types"
    assert ours._saved_self is theirs._saved_self
    assert ours._saved_other is theirs._saved_other
    assert type(ours._raw_saved_self) is type(theirs._raw_saved_self)


def test_properties_cannot_be_written(pair):
    ours, theirs = pair
    assert error_of(lambda: setattr(ours, "_saved_self", 1)) == error_of(
        lambda: setattr(theirs, "_saved_self", 1)
    )


def test_a_saved_result_has_the_node_as_its_history(agtest):
    x = tensor()
    ours, theirs = agtest.expo(x), torch.exp(x)
    assert ours.grad_fn._saved_result.grad_fn is ours.grad_fn
    assert theirs.grad_fn._saved_result.grad_fn is theirs.grad_fn
    assert torch.equal(ours.grad_fn._saved_result, ours)


def test_a_tensor_that_no_gradient_needs_is_none():
    x, y = tensor(), tensor(requires_grad=False)
    for function in (OWN.mul, torch.mul):
        node = function(x, y).grad_fn
        assert node._saved_self is None
        assert node._saved_other is y
    x = tensor()
    assert OWN.rms_norm(x, None).grad_fn._saved_weight is None
    assert torch.native_layer_norm(x, [3], None, None, 0.1)[0].grad_fn._saved_weight is None


ROWS = torch.tensor([0])

# Values of one type in a node of ours and in a node of torch's, given the same arguments.
SAME_TYPES = {
    "int": lambda x, ops: (
        OWN.softmax(x, -1).grad_fn._saved_dim,
        torch.softmax(x, -1).grad_fn._saved_dim,
    ),
    "Scalar, int": lambda x, ops: (
        OWN.add(x, x, alpha=-2).grad_fn._saved_alpha,
        torch.add(x, x, alpha=-2).grad_fn._saved_alpha,
    ),
    "Scalar, bool; bool": lambda x, ops: (
        ops.product.Scalar(x, True).grad_fn._saved_other,
        torch.logsumexp(x, [0], keepdim=True).grad_fn._saved_keepdim,
    ),
    "Scalar, float": lambda x, ops: (
        ops.product.Scalar(x, 0.1).grad_fn._saved_other,
        torch.add(x, x, alpha=0.1).grad_fn._saved_alpha,
    ),
    "Scalar, complex": lambda x, ops: (
        ops.product.Scalar(x, 1 + 2j).grad_fn._saved_other,
        torch.add(x + 0j, x, alpha=1 + 2j).grad_fn._saved_alpha,
    ),
    "SymInt[]": lambda x, ops: (
        ops.total(x).grad_fn._saved_self_sym_sizes,
        x.sum().grad_fn._saved_self_sym_sizes,
    ),
    "int[]": lambda x, ops: (
        formula_calls.ALL["typed"](ops, x.double())[0].grad_fn._saved_d,
        torch.logsumexp(x[..., None, None, None, None], [4, 5]).grad_fn._saved_dim,
    ),
    "float": lambda x, ops: (
        OWN.rms_norm(x, eps=0.25).grad_fn._saved_eps,
        torch.nn.functional.elu(x, 0.25).grad_fn._saved_alpha,
    ),
    "Tensor[]": lambda x, ops: (
        ops.squares([x, x], 1.0).grad_fn._saved_tensors,
        (x, x),
    ),
    "Tensor?[]": lambda x, ops: (
        ops.times_present(x, [None, ROWS]).grad_fn._saved_others,
        torch.ops.aten.index(x, [None, ROWS]).grad_fn._saved_indices,
    ),
}


@pytest.mark.parametrize("name", SAME_TYPES)
def test_a_value_is_that_of_torchs_own_node(name, agtest):
    ours, theirs = SAME_TYPES[name](tensor(), agtest)
    assert type(ours) is type(theirs)
    if isinstance(ours, tuple):
        assert len(ours) == len(theirs)
        assert all(a is b or a == b for a, b in zip(ours, theirs))
    else:
        assert ours == theirs


def test_values_of_every_type(agtest):
    arguments = formula_calls.typed_arguments()
    node = formula_calls.ALL["typed"](agtest, tensor().double())[0].grad_fn
    for name, given in arguments.items():
        value = getattr(node, f"_saved_{name}")
        expected = tuple(given) if isinstance(given, list) else given
        if not isinstance(given, torch.Generator):
            assert (type(value), value) == (type(expected), expected), name
    assert isinstance(node._saved_z, torch.Generator)


def test_properties_have_the_names_of_the_schema(agtest):
    names = {"default", "self", "lock", "ranges", "keys", "node", "guard", "register"}
    node = formula_calls.ALL["clash"](agtest, tensor().double())[0].grad_fn
    assert {f"_saved_{name}" for name in names} <= saved_names(node)
    node = formula_calls.ALL["clash_list"](agtest, tensor().double())[0].grad_fn
    assert (node._saved_needs, node._saved_store) == (2.0, 3.0)


def test_a_missing_optional_value_is_none(agtest):
    missing = dict.fromkeys("hjklnopqrstvyz")
    arguments = {**formula_calls.typed_arguments(), **missing}
    node = agtest.typed(tensor().double(), **arguments).grad_fn
    assert {name: getattr(node, f"_saved_{name}") for name in missing} == missing


def test_sizes_may_be_symbolic(agtest):
    from torch.fx.experimental.proxy_tensor import make_fx

    def look(x):
        x.requires_grad_()
        ours, theirs = agtest.total(x).grad_fn, x.sum().grad_fn
        sizes = ours._saved_self_sym_sizes
        assert [type(size) for size in sizes] == [torch.SymInt] * 2
        assert all(size == other for size, other in zip(sizes, theirs._saved_self_sym_sizes))
        return x

    with torch.library._scoped_library("agtest", "IMPL") as library:
        library.impl("total", lambda self: self.new_empty(()), "Meta")
        make_fx(look, tracing_mode="symbolic")(tensor(requires_grad=False))


# What torch's own nodes say of the same; the Tensor[] is a list that backward frees.
FREED = {
    "product": ("_saved_self", "_saved_other"),
    "expo": ("_saved_result",),
    "squares": ("_saved_tensors", "_raw_saved_tensors"),
    "times_present": ("_saved_others", "_raw_saved_others"),
}


@pytest.mark.parametrize("name", FREED)
def test_what_backward_freed_raises_the_usual_error(name, agtest):
    x = tensor().double().detach().requires_grad_()
    theirs = torch.exp(x)
    own = theirs.grad_fn
    theirs.sum().backward()
    usual = error_of(lambda: own._saved_result)
    assert "Trying to backward through the graph a second time" in usual[1]
    result = formula_calls.ALL[name](agtest, x)[0]
    if name == "product":
        result = agtest.product(x, x)
    node = result.grad_fn
    before = {attribute: getattr(node, attribute) for attribute in FREED[name]}
    assert None not in before.values()
    del before
    result.sum().backward()
    for attribute in FREED[name]:
        assert error_of(lambda: getattr(node, attribute)) == usual
    assert node.name() == type(node).__name__


def test_values_that_are_no_tensors_outlive_backward():
    result = OWN.softmax(tensor(), 1)
    node = result.grad_fn
    result.sum().backward()
    assert node._saved_dim == 1


def test_hooks_of_a_raw_saved_tensor_run_in_backward_and_in_the_property(pair):
    for node in pair:
        node._raw_saved_other.register_hooks(lambda t: t.detach() * 10, lambda t: t + 1)
        assert torch.equal(node._saved_other, tensor(False) * 10 + 1)
        with pytest.raises(RuntimeError, match="hooks have already been set"):
            node._raw_saved_other.register_hooks(lambda t: t, lambda t: t)
    x, y = tensor(), tensor()
    result = OWN.mul(x, y)
    result.grad_fn._raw_saved_other.register_hooks(lambda t: t.detach() * 10, lambda t: t + 1)
    result.sum().backward()
    assert torch.equal(x.grad, tensor(False) * 10 + 1)
    assert torch.equal(y.grad, tensor(False))


def test_hooks_of_raw_saved_tensors_of_a_list(agtest):
    x = tensor()
    result = agtest.squares([x, x], 1.0)
    for raw in result.grad_fn._raw_saved_tensors:
        raw.register_hooks(lambda t: t.detach(), lambda t: t * 0)
    assert all(saved.eq(0).all() for saved in result.grad_fn._saved_tensors)
    result.sum().backward()
    assert x.grad.eq(0).all()


def test_registering_hooks_too_late_or_on_nothing_raises_what_torch_raises():
    def errors(function):
        result = function(tensor(), tensor(requires_grad=False))
        raw = result.grad_fn._raw_saved_self, result.grad_fn._raw_saved_other
        yield error_of(lambda: raw[0].register_hooks(lambda t: t, lambda t: t))
        result.sum().backward()
        yield error_of(lambda: raw[1].register_hooks(lambda t: t, lambda t: t))

    assert list(errors(OWN.mul)) == list(errors(torch.mul))


def test_a_raw_saved_tensor_keeps_its_node():
    x = tensor()
    raw = OWN.mul(x, x).grad_fn._raw_saved_self
    gc.collect()
    seen = []
    raw.register_hooks(lambda t: seen.append(t) or t.detach(), lambda t: t)
    assert torch.equal(seen[0], x)


def test_saved_tensor_hooks_unpack_for_the_property():
    x, y = tensor(), tensor()
    for function in (OWN.mul, torch.mul):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: ("packed", t * 2), lambda p: p[1]):
            node = function(x, y).grad_fn
        assert torch.equal(node._saved_self, 2 * x)
        assert torch.equal(node._saved_other, 2 * y)


def test_the_error_of_a_hook_reaches_the_reader():
    def unpack(packed):
        raise KeyError("no such tensor")

    for function in (OWN.mul, torch.mul):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
            node = function(tensor(), tensor()).grad_fn
        assert error_of(lambda: node._saved_self) == (KeyError, "'no such tensor'")


def test_a_change_in_place_is_noticed_by_the_property():
    for function in (OWN.mul, torch.mul):
        x, y = tensor() * 1, tensor()
        node = function(x, y).grad_fn
        x.add_(1)
        assert "modified by an inplace operation" in error_of(lambda: node._saved_self)[1]


def test_the_graph_can_be_walked():
    x, y = tensor(), tensor()
    result = OWN.add(OWN.mul(x, y), OWN.sin(x))
    names = [node.name() for node, _ in result.grad_fn.next_functions]
    assert names == ["MulBackward0", "SinBackward0"]
    leaf = result.grad_fn.next_functions[0][0].next_functions[0][0]
    assert leaf.variable is x


def test_nodes_of_several_libraries_of_one_name_have_their_own_classes(agtest):
    x = tensor()
    nodes = [torch.mul(x, x).grad_fn, OWN.mul(x, x).grad_fn, agtest.product(x, x).grad_fn]
    assert len({type(node) for node in nodes}) == 3
    assert all(node._saved_self is x for node in nodes)
