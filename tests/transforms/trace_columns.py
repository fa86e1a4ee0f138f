# SPDX-License-Identifier: BSD-3-Clause
"""Columns in which the form is traced into a graph, which is what then runs."""

import warnings

import torch
from cases import loss_of, scripted
from operators import OPERATORS
from samples import SAMPLES
from torch._dynamo.testing import CompileCounterWithBackend
from torch.export import Dim
from torch.fx.experimental.proxy_tensor import make_fx


def _joined(functions):
    """All calls of a form as one function: one graph, whose cost is mostly not in its calls."""

    def function(*inputs):
        return [call(*tensors) for call, tensors in zip(functions, inputs)]

    return function


def _check(subjects, function):
    """Assert that `function`, made from all the calls, gives what the references give."""
    inputs = [subject.given() for subject in subjects]
    for subject, given, returned in zip(subjects, inputs, function(*inputs), strict=True):
        subject.check(given, returned)


def compile_static(row):
    """`fullgraph=True` by Inductor."""
    subjects = row.subjects(torch.float32)
    function = _joined([subject.function for subject in subjects])
    _check(subjects, torch.compile(function, backend="inductor", fullgraph=True, dynamic=False))


def _check_gradients(subjects, function):
    """The same for gradients, of all the calls at once: they share one backward graph."""
    inputs = [[t.clone().requires_grad_() for t in s.call.tensors] for s in subjects]
    leaves = [t for given in inputs for t in given]
    expected = [subject.expected(*given) for subject, given in zip(subjects, inputs)]
    grads = [
        torch.autograd.grad(sum(map(loss_of, results)), leaves, materialize_grads=True)
        for results in (function(*inputs), expected)
    ]
    torch.testing.assert_close(*grads)


def _compiled_once(functions, check, row):
    """Check on three sets of sizes what is compiled for the first of them."""
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(_joined(functions), backend=counter, fullgraph=True, dynamic=True)
    counts = []
    for factor in (1, 2, 3):
        shape = tuple(factor * size for size in SAMPLES[row.operator].small_shape)
        check(row.subjects(shape=shape), compiled)
        counts.append(counter.frame_count)
    assert counts == counts[:1] * 3


def compile_dynamic(row):
    """`fullgraph=True, dynamic=True` by aot_eager: one graph for three sets of sizes. Forms with a
    formula are compiled with their gradients too."""
    subjects = row.subjects()
    _compiled_once([subject.function for subject in subjects], _check, row)
    if row.kind != "out" and OPERATORS[row.operator].has_formula:
        torch._dynamo.reset()
        _compiled_once([subject.pure for subject in subjects], _check_gradients, row)


class _Joined(torch.nn.Module):
    def __init__(self, functions):
        super().__init__()
        self.function = _joined(functions)

    def forward(self, *inputs):
        return self.function(*inputs)


def export(row):
    """`torch.export` with a dynamic size; the program runs on a larger one than it saw."""
    subjects = row.subjects()
    small = SAMPLES[row.operator].small_shape
    rows = Dim("rows", min=2, max=64)
    inputs = tuple(subject.given() for subject in subjects)
    shapes = [[{0: rows} if t.dim() == len(small) else None for t in given] for given in inputs]
    module = _Joined([subject.function for subject in subjects])
    program = torch.export.export(module, inputs, dynamic_shapes=(tuple(shapes),))
    _check(row.subjects(shape=(9, *small[1:])), program.module())


def jit_script(row):
    """A TorchScript function, called until the profiling executor has optimized it."""
    subject = row.subjects()[0]  # others ask for missing results, which TorchScript cannot return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*torch.jit.*", DeprecationWarning)
        function = scripted(subject.call, row.overload)
    for _ in range(3):
        given = subject.given()
        subject.check(given, function(*given))


def functionalize(row):
    """`torch.func.functionalize`, views removed and not; its trace holds no form that writes."""
    subjects = row.subjects()
    function = _joined([subject.function for subject in subjects])
    for remove in ("mutations", "mutations_and_views"):
        functional = torch.func.functionalize(function, remove=remove)
        _check(subjects, functional)
        graph = make_fx(functional)(*[subject.given() for subject in subjects]).graph
        assert row.kind == "functional" or row.overload not in [n.target for n in graph.nodes]


def opcheck(row):
    """All tests of `torch.library.opcheck`."""
    for subject in row.subjects(torch.float32):
        given = subject.given()
        call = subject.call_on(given)
        torch.library.opcheck(row.overload, call.args, call.kwargs)
