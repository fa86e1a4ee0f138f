# SPDX-License-Identifier: BSD-3-Clause
"""Columns in which the form runs as it is: in a mode, in a module, in a captured CUDA graph."""

import copy
import pickle

import torch
from cases import parts
from operators import autocast_dtype, read_policies

POLICIES = read_policies()


def eager(row):
    """Values in float64 and float32; what a form writes to is what it returns."""
    for dtype in (torch.float64, torch.float32):
        for subject in row.subjects(dtype):
            given = subject.given()
            returned = parts(subject.function(*given))
            subject.check(given, returned)
            if row.kind != "functional":
                assert all(a is b for a, b in zip(returned, subject.written(given), strict=True))


def no_grad(row):
    """On leaves that require grad, which may be written to; no graph is recorded."""
    for subject in row.subjects():
        given = subject.given()
        leaves = [t.requires_grad_() for t in given[: len(subject.call.tensors)]]
        with torch.no_grad():
            returned = parts(subject.function(*given))
        assert all(t.grad_fn is None for t in returned)
        assert [t.requires_grad for t in returned] == [row.kind == "in-place"] * len(returned)
        assert all(t.is_leaf and t.requires_grad for t in leaves)
        subject.check([t.detach() for t in given], [t.detach() for t in returned])


def inference_mode(row):
    """On inference tensors and on ordinary ones; new results are inference tensors."""
    for subject in row.subjects():
        ordinary = subject.given()
        with torch.inference_mode():
            given = subject.given()
            calls = [(tensors, subject.function(*tensors)) for tensors in (given, ordinary)]
        for tensors, returned in calls:  # not in the mode: some references are gradients
            subject.check(tensors, returned)
            is_new = row.kind == "functional" or tensors is given
            assert all(t.is_inference() == is_new for t in parts(returned))


def _autocast_call(row, subject):
    """The call that autocast makes of this one: only functional forms have a policy."""
    policy = POLICIES.get(row.operator) if row.kind == "functional" else None
    if policy is None:
        return subject.call
    dtypes = {t.dtype for t in subject.call.tensors}
    wanted = autocast_dtype(policy, dtypes, torch.bfloat16)
    return subject.call.map_tensors(lambda t: t.to(wanted))


def autocast(row):
    """float32 and bfloat16 in a region of bfloat16: casts as the operator's policy says; forms that
    write have none, as torch's own."""
    for dtype in (torch.float32, torch.bfloat16):
        for subject in row.subjects(dtype):
            given = subject.given()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                returned = parts(subject.function(*given))
            expected = subject.expected(*_autocast_call(row, subject).tensors)
            torch.testing.assert_close(returned, expected)
            if row.kind != "functional":
                torch.testing.assert_close(subject.written(given), expected)


class OperatorModule(torch.nn.Module):
    """Keeps the operator itself as an attribute, as a module of a user may."""

    def __init__(self, subject):
        super().__init__()
        self.operator = subject.row.overload
        self.subject = subject

    def forward(self, *given):
        call = self.subject.call_on(given)
        return self.operator(*call.args, **call.kwargs)


def graph_module(subject):
    """A torch.fx module of one call of the operator."""
    graph = torch.fx.Graph()
    call = subject.call_on([graph.placeholder(f"t{i}") for i, _ in enumerate(subject.given())])
    graph.output(graph.call_function(subject.row.overload, call.args, call.kwargs))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def _calls_the_operator(row, module) -> bool:
    return row.overload in [node.target for node in module.graph.nodes]


def deepcopied(row):
    """`copy.deepcopy` of a module that holds the operator, and of an FX graph that calls it."""
    for subject in row.subjects():
        for module in (OperatorModule(subject), graph_module(subject)):
            copied = copy.deepcopy(module)
            given = subject.given()
            subject.check(given, copied(*given))
        assert _calls_the_operator(row, copied)


def pickled(row):
    """`pickle` of an FX graph that calls the operator."""  # no OpOverload by itself can be pickled
    for subject in row.subjects():
        copied = pickle.loads(pickle.dumps(graph_module(subject)))
        assert _calls_the_operator(row, copied)
        given = subject.given()
        subject.check(given, copied(*given))


def cuda_graph(row):
    """Captured once, replayed on other values."""
    for subject in row.subjects(torch.float32):
        originals = subject.given()
        given = [t.cuda() for t in originals]
        # What a first call sets up must not be captured.
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            subject.function(*given)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            returned = parts(subject.function(*given))
        for static, original in zip(given, originals):
            static.copy_(original)
        graph.replay()
        subject.check([t.cpu() for t in given], [t.cpu() for t in returned])
